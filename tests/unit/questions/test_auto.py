"""`method="auto"`: what it chooses from public numbers, what it says, and what it refuses before anything is spent."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.datasets import synth
from counterveil.errors import ParameterError
from counterveil.questions.ate import AteArguments
from counterveil.questions.auto import choose, expected_widths
from counterveil.session import SeededNoise

KAPPA = cv.settings.Auto(kappa=0.25)


def chosen(result):
    return result.details["chosen_by_auto"].partition(":")[0]


def ask(data, study, protects="record", epsilon=1, delta=0, **words):
    return cv.ate(data, study, protects=protects, epsilon=epsilon, delta=delta, noise=SeededNoise(3), **words)


def trial(rows, covariates=1, seed=0, **extra):
    generator = np.random.default_rng(seed)
    data = {"t": generator.permutation([0, 1] * (rows // 2)), "y": generator.uniform(size=rows)}
    names = [f"x{place}" for place in range(covariates)]
    data |= {name: generator.uniform(size=rows) for name in names}
    domains = dict.fromkeys(names, cv.Range(0, 1))
    return data, study_of("t", "y", (0, 1), domains, control=0, **({"randomised": True} | extra))


@pytest.mark.parametrize(
    ("rows", "method"),
    [
        (300, "difference in means (centred contrast)"),
        (1000, "unadjusted contrast"),
        (8000, "contrast; covariates explain too little"),
    ],
)
def test_a_trial_of_records_is_compared_plainly_or_after_a_model_that_pays(rows, method):
    result = ask(*trial(rows))
    assert chosen(result) == "trial"
    assert result.method == method
    assert result.condition is None
    assert result.interval_target is None


@pytest.mark.parametrize(("covariates", "method"), [(0, "difference_in_means"), (2, "weighting"), (9, None)])
def test_public_covariates_of_a_trial_are_used_where_rows_are_many(covariates, method):
    result = ask(*trial(200, covariates), protects="outcome")
    assert chosen(result) == (method or "difference_in_means")


def test_pure_noise_is_taken_where_few_numbers_are_released_and_the_law_is_open():
    data = trial(1000)
    pure, open_noise = ask(*data), ask(*data, delta="1e-6")
    assert open_noise.details["mechanism"] == "staircase"
    assert open_noise.estimate == pure.estimate
    assert open_noise.spent.delta > 0
    named = ask(*data, delta="1e-6", mechanism="gaussian")
    assert named.details["mechanism"] == "gaussian"
    assert named.std_error.noise > pure.std_error.noise


def test_a_ledger_that_adds_up_gaussian_noise_gets_gaussian_noise():
    data, study = trial(1000)
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("trial", cv.Budget(3, "1e-6"), rule="gaussian")
        with cv.Session(data, study, ledger=ledger, dataset="trial", noise=SeededNoise(0)) as session:
            result = session.ate(protects="record", epsilon=1, delta="1e-7")
    assert result.details["mechanism"] == "gaussian"
    assert chosen(result) == "trial"


@pytest.mark.parametrize(
    ("rows", "epsilon", "delta", "method"),
    [
        (1000, 4, "1e-6", "doubly_robust"),
        (10_000, 8, 0, "doubly_robust"),
        (4000, 8, 0, "sample_and_aggregate"),
        (4000, 4, 0, "sample_and_aggregate"),
        (1000, 8, 0, "sample_and_aggregate"),
        (1000, 4, 0, "doubly_robust"),
        (1000, 1, 0, "doubly_robust"),
        (200, 1, 0, "doubly_robust"),
    ],
)
def test_records_with_a_declared_bound(rows, epsilon, delta, method):
    data = synth(seed=1, n=rows)
    result = ask(data.frame, data.study, epsilon=epsilon, delta=delta, settings=KAPPA)
    assert chosen(result) == method
    adjusted = method == "sample_and_aggregate" or delta != 0 or rows * epsilon > 4000
    assert (result.condition is None) == adjusted
    assert adjusted or result.condition.kappa == 0.25


@pytest.mark.parametrize(
    ("covariates", "rows", "epsilon", "method"),
    [
        (6, 500, "0.1", "stratified"),
        (7, 2500, "0.1", "stratified"),
        (7, 2500, 4, "doubly_robust"),
        (7, 1500, "0.1", None),
    ],
)
def test_many_strata_are_compared_where_they_hold_many_rows_and_no_model_is_affordable(
    covariates, rows, epsilon, method
):
    data, study = trial(rows, covariates, randomised=False)
    names = list(study.covariates)
    data |= {name: (data[name] > 0.5).astype(int) for name in names}
    study = study._changed(covariates=dict.fromkeys(names, cv.Binary()))
    if method is None:
        with pytest.raises(ParameterError, match="CV-P404"):
            ask(data, study, epsilon=epsilon)
    else:
        assert chosen(ask(data, study, epsilon=epsilon)) == method


def test_without_a_declared_bound_what_is_not_affordable_is_refused_and_free():
    data = synth(seed=1, n=1000)
    with cv.Session(data.frame, data.study, budget=cv.Budget(2), noise=SeededNoise(0)) as session:
        with pytest.raises(ParameterError, match="CV-P404"):
            session.ate(protects="record", epsilon=1)
        assert session.remaining().epsilon == 2
        folds = session.ate(
            protects="record", epsilon=2, settings=None, mechanism="laplace", method="sample_and_aggregate"
        )
        assert folds.interval_target is None


def test_folds_serve_where_no_bound_is_declared_and_their_noise_is_small():
    data = synth(seed=1, n=4000)
    assert chosen(ask(data.frame, data.study)) == "sample_and_aggregate"
    with pytest.raises(ParameterError, match="CV-P404"):
        ask(data.frame, data.study, estimand="ATT")


def test_the_choice_reads_no_rows():
    for seed in (1, 2):
        data = synth(seed=seed, n=600)
        frame = data.frame | {"y": np.zeros(600) + seed}
        assert chosen(ask(frame, data.study, epsilon=4, settings=KAPPA)) == "doubly_robust"


def test_more_features_than_one_release_holds_leave_the_declared_bound():
    names = [f"x{k}" for k in range(150)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(200) for name in names} | {"t": [0, 1] * 100, "y": rng.random(200)}
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), dict.fromkeys(names, cv.Range(0, 1))
    )
    words = {"protects": "record", "epsilon": 1, "delta": "1e-6"}
    with pytest.raises(ParameterError, match="CV-P405"):
        cv.ate(frame, study, **words)
    found = cv.ate(frame, study, settings=cv.settings.Auto(kappa=0.2), **words)
    assert found.details["adjusted"] is False
    assert found.details["kappa"] == 0.2


@pytest.mark.parametrize("covariates", [1, 8, 20])
@pytest.mark.parametrize("kappa", [None, 0.25])
def test_of_private_records_the_shortest_expected_interval_is_taken(covariates, kappa):
    study = cv.Study(
        "t", cv.Outcome("y", (0, 10)), {f"x{place}": cv.Range(0, 1) for place in range(covariates)}
    )
    taken = set()
    for rows, epsilon, delta in product((300, 1000, 4000, 16_000, 60_000), (0.5, 1, 2, 4, 8), (0, "1e-6")):
        session = SimpleNamespace(study=study, batches=SimpleNamespace(rows=rows))
        words = {"protects": "record", "epsilon": epsilon, "delta": delta}
        settings = None if kappa is None else cv.settings.Auto(kappa=kappa)
        question = AteArguments(**words, settings=settings).about(study)
        widths = expected_widths(session, question)
        # Where none is affordable the doubly robust form refuses, or compares under the declared bound.
        wanted = min(widths, key=widths.get) if widths else "doubly_robust"
        assert choose(session, question).question.method == wanted
        assert all(width >= 1 for width in widths.values())
        taken.add(wanted)
    assert taken == {"doubly_robust", "sample_and_aggregate"}


def test_a_named_method_has_the_noise_that_auto_gives_it():
    data = synth(seed=1, n=1000)
    auto, named = (
        ask(data.frame, data.study, epsilon=4, method=name) for name in ("auto", "sample_and_aggregate")
    )
    assert chosen(auto) == "sample_and_aggregate"
    assert auto.estimate == named.estimate
    with_delta = ask(data.frame, data.study, epsilon=4, delta="1e-6", method="sample_and_aggregate")
    assert with_delta.estimate == named.estimate

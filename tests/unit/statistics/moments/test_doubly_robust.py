"""The orthogonal private effect through the front door."""

import json

import numpy as np
import pytest
from tests.unit.statistics.moments.robust_data import (
    DELTA,
    EFFECT,
    ask,
    columns,
    confounded,
    covered,
    difference,
    least_squares,
    mixed,
)

import counterveil as cv
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy.caveats import ConfoundingBeyond, NotAdjusted
from counterveil.session import SeededNoise


@pytest.mark.parametrize(("epsilon", "delta"), [(2, DELTA), (8, 0)])
def test_it_removes_confounding_and_covers(epsilon, delta):
    found = [ask(confounded(), seed, epsilon=epsilon, delta=delta) for seed in range(12)]
    errors = np.array([one.estimate - EFFECT for one in found])
    assert np.sqrt((errors**2).mean()) < 0.15 * abs(difference(confounded()) - EFFECT)
    assert covered(found, least_squares(*columns(confounded()))[0]) >= 11
    assert all(one.details["adjusted"] is True for one in found)


def test_with_a_vast_budget_it_is_ordinary_least_squares():
    reference, error = least_squares(*columns(confounded()))
    sharp = ask(confounded(), epsilon=2000)
    assert sharp.estimate == pytest.approx(reference, abs=3e-4)
    assert sharp.std_error.total == pytest.approx(error, rel=0.1)
    assert sharp.std_error.noise < 0.1 * sharp.std_error.sampling


def test_numbers_labels_and_categories_are_adjusted_for():
    frame, study = mixed()
    t, y = frame["t"] == 1, frame["y"]
    raw = y[t].mean() - y[~t].mean()
    assert raw - EFFECT > 0.8
    found = [
        cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            estimand="ATO",
            epsilon=1,
            delta=DELTA,
            settings=cv.settings.DoublyRobust(degree=1),
            noise=SeededNoise(s),
        )
        for s in range(8)
    ]
    assert np.abs([one.estimate - EFFECT for one in found]).mean() < 0.1 * (raw - EFFECT)
    assert found[0].details["features"] == 4
    flags = np.column_stack([frame["x"], frame["b"], frame["c"] == "u", frame["c"] == "v"])
    assert covered(found, least_squares(flags, frame["t"], y)[0]) == 8


def test_degree_two_removes_what_lines_cannot():
    frame, study = mixed()
    x = (frame["x"] - 41.5) / 23.5
    rng = np.random.default_rng(0)
    t = rng.random(len(x)) < 1 / (1 + np.exp(-3 * (x**2 - 0.33)))
    bent = frame | {"t": t.astype(int), "y": 4 + 2 * x**2 + EFFECT * t + rng.normal(0, 0.3, len(x))}
    found = {}
    for degree in (1, 2, "auto"):
        settings = cv.settings.DoublyRobust(degree=degree)
        found[degree] = cv.ate(
            bent,
            study,
            protects="record",
            method="doubly_robust",
            estimand="ATO",
            epsilon=8,
            delta=DELTA,
            settings=settings,
            noise=SeededNoise(3),
        )
    assert abs(found[1].estimate - EFFECT) > 0.3
    assert abs(found[2].estimate - EFFECT) < 0.05
    # Four features, their squares where they are numbers, and products across covariates.
    assert found[2].details["features"] == found["auto"].details["features"] == 4 + 1 + 5


def test_targets_are_named_and_differ_where_effects_vary():
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.uniform(-1, 1, n)
    e = 1 / (1 + np.exp(-1.5 * x))
    t = rng.random(n) < e
    y = 1 + x + (0.5 + 0.5 * x) * t + rng.normal(0, 0.2, n)
    frame = {"x": x, "t": t.astype(int), "y": y}
    study = cv.Study("t", "y", (-2, 4), {"x": cv.Range(-1, 1)}, control=0)
    found = {}
    for name in ("ATO", "ATE", "ATT", "ATC"):
        found[name] = cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=2,
            delta=DELTA,
            estimand=name,
            noise=SeededNoise(6),
        )
    assert [one.estimand for one in found.values()] == ["ATO", "ATE", "ATT", "ATC"]
    assert "overlap-weighted" in str(found["ATO"])
    assert "overlap-weighted" not in str(found["ATE"])
    assert "on those who received it" in " ".join(str(found["ATT"]).split())
    assert all(one.interval_target is None for one in found.values())
    tau = 0.5 + 0.5 * x
    assert found["ATE"].estimate == pytest.approx(tau.mean(), abs=0.03)
    assert found["ATT"].estimate == pytest.approx(tau[t].mean(), abs=0.04)
    assert found["ATC"].estimate == pytest.approx(tau[~t].mean(), abs=0.04)
    assert found["ATC"].estimate < found["ATE"].estimate < found["ATT"].estimate


@pytest.mark.parametrize(
    ("method", "protects"),
    [(method, "record") for method in ("sample_and_aggregate", "stratified", "trial")]
    + [
        (method, "outcome")
        for method in ("auto", "weighting", "matching", "difference_in_means", "stratified")
    ],
)
def test_other_methods_refuse_the_overlap_weighted_effect(method, protects):
    with pytest.raises(ParameterError, match="CV-P401"):
        ask(confounded(), estimand="ATO", method=method, protects=protects)


def test_an_unaffordable_adjustment_is_refused_and_nothing_is_spent():
    data = synth(1, 1000)
    with cv.Session(data.frame, data.study, budget=cv.Budget(3, DELTA)) as session:
        with pytest.raises(ParameterError, match="too small to adjust") as refusal:
            session.ate(protects="record", epsilon=1, delta=DELTA, method="doubly_robust")
        assert refusal.value.code == "CV-P404"
        assert session.remaining().epsilon == 3
    assert "rows" in str(refusal.value)


def test_a_declared_bound_buys_an_unadjusted_answer_that_says_so_first():
    data = synth(1, 1000)
    settings = cv.settings.DoublyRobust(kappa=0.25)
    result = ask(data, epsilon=1, settings=settings)
    assert result.details["adjusted"] is False
    assert str(result).splitlines()[1].startswith("*** NOT ADJUSTED: adjusted=False")
    assert result.condition == NotAdjusted(0.25)
    assert result.not_covered[0] == ConfoundingBeyond(0.25)
    low, high = result.interval()
    assert high - low > 2 * result.details["confounding_bound"]
    assert low <= EFFECT <= high
    narrower = ask(data, epsilon=1, settings=cv.settings.DoublyRobust(kappa=0.05))
    ends = narrower.interval()
    assert ends[1] - ends[0] < high - low
    again = type(result).from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result


def test_covariates_are_needed():
    study = cv.Study("t", "y", (0, 1), control=0)
    frame = {"t": [0, 1] * 50, "y": [0.0, 1.0] * 50}
    with pytest.raises(StudyError, match="needs covariates"):
        cv.ate(frame, study, protects="record", method="doubly_robust", epsilon=1)


def test_too_many_features_are_refused_before_anything_is_read():
    names = [f"x{k}" for k in range(60)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(100) for name in names} | {"t": [0, 1] * 50, "y": rng.random(100)}
    study = cv.Study("t", "y", (0, 1), dict.fromkeys(names, cv.Range(0, 1)), control=0)
    with pytest.raises(ParameterError, match="CV-P405"):
        cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            estimand="ATO",
            epsilon=1,
            settings=cv.settings.DoublyRobust(degree=2),
        )

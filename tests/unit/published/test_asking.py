"""Published forms are asked of data or of an open session, whose ledger they charge; what their releases draw."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import dataset_1, synth
from counterveil.errors import InternalError, LedgerError, ParameterError, StudyError
from counterveil.privacy import ApproximateEvent, Budget, LaplaceEvent, Proof
from counterveil.published.asking import (
    ClassicalPlan,
    release_classical,
    release_scaled,
    release_twice,
    release_vector_scaled,
    textbook_constant,
)
from counterveil.session import Gate, Kind, Plan, SeededNoise

DATA = synth(seed=2, n=400, covariates=3)
# Models of both halves need more rows.
MORE = synth(seed=2, n=8000, covariates=3)
PEOPLE = {"x1": [0.1, 0.9], "x2": [0.5, 0.2]}
QUICK = {"outcome": "linear", "propensity": "logistic"}
FORMS = {name: getattr(cv.published, name) for name in cv.published.__all__ if not name.endswith("Settings")}


def asked(name, form, *source, **more):
    """Return a form's answer; queries and quick learners where effects at points are asked for."""
    given = {"epsilon": 1, "accept": "unproved"} | more
    if name.startswith("cate_"):
        search = {"starts": 2, "points": 400} if name == "cate_finite" else {}
        kinds = {
            "cate_finite": cv.published.InfluenceSettings,
            "cate_functional": cv.published.KernelSettings,
        }
        learners = kinds[name](**QUICK, **search)
        return form(*source, delta=1e-6, queries=PEOPLE, settings=learners, **given)
    return form(*source, delta=0 if "_matching" in name else 1e-6, **given)


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("smooth_matching")])
def test_a_session_gives_the_same_answer_and_its_ledger_is_charged(name):
    form = FORMS[name]
    data = dataset_1(400, 5) if name.startswith("cate_") else MORE if "cross_fit" in name else DATA
    budget, seed = cv.Budget(50, "1e-4"), cv.SeededNoise
    alone = asked(name, form, dict(data.frame), data.study, noise=seed(7))
    with cv.Session(dict(data.frame), data.study, budget=budget, noise=seed(7)) as session:
        answer = asked(name, form, session)
        account = session.account()
    assert answer.to_dict() == alone.to_dict()
    assert account.requests == 1
    assert account.unproved == (0 if name.endswith("_proved") else 1)
    assert account.spent.epsilon >= answer.spent.epsilon


def test_a_session_brings_its_own_study_ledger_and_noise():
    with cv.Session(dict(DATA.frame), DATA.study, budget=cv.Budget(5)) as session:
        for more in ({"study": DATA.study}, {"noise": cv.SeededNoise(1)}, {"dataset": "data"}):
            with pytest.raises(ParameterError) as refused:
                cv.published.record_matching(session, epsilon=1, accept="unproved", **more)
            assert refused.value.code == "CV-P565"
            assert next(iter(more)) in refused.value.got
        assert session.account().requests == 0


@pytest.mark.parametrize("form", [cv.published.ipw, cv.published.cate_finite])
def test_data_need_a_study(form):
    with pytest.raises(StudyError, match="CV-S015"):
        form(dict(DATA.frame), epsilon=1, accept="unproved")


def test_an_access_policy_names_a_published_form_apart_from_the_method(tmp_path):
    access_policy = cv.drafting.AccessPolicy(methods=["ipw", "published.record_matching"], unproved=True)
    with cv.open_ledger(tmp_path / "ledger.db", create=True) as book:
        book.register("people", cv.Budget(50, "1e-4"), access_policy=access_policy)
        given = {"epsilon": 1, "accept": "unproved", "ledger": book}
        with pytest.raises(LedgerError, match="CV-L044"):
            cv.published.ipw(dict(DATA.frame), DATA.study, delta=1e-6, **given)
        found = cv.published.record_matching(dict(DATA.frame), DATA.study, **given)
        assert found.guarantee.proof is Proof.REFUTED
        assert book.account("people").unproved == 1


def test_core_questions_have_no_way_to_a_published_form():
    for question in (cv.ate, cv.cate, cv.Session.ate, cv.Session.cate, cv.plan):
        assert not {"variant", "accept"} & set(inspect.signature(question).parameters)


ONE = Fraction(1)


def plan(*names):
    return Plan.split(Budget(len(names)), dict.fromkeys(names, Fraction(1, len(names))), "laplace")


def test_textbook_releases_are_charged_what_they_claim():
    thirds = dict.fromkeys(("a", "b", "c"), Fraction(1, 3))
    made = ClassicalPlan.of(Plan.split(Budget(3, "3e-6"), thirds, "laplace"), "c")
    assert made.charge.events == (
        LaplaceEvent(ONE),
        LaplaceEvent(ONE),
        ApproximateEvent(ONE, Fraction(1, 10**6)),
    )
    assert made.shares == "a 33%, b 33%, c 33%"
    asked = Gate(made, SeededNoise(1))
    # The textbook's constant, for a third of delta.
    assert release_classical(asked, "c", ONE, ONE).noise.variance == pytest.approx(2 * np.log(1.25 / 1e-6))
    with pytest.raises(InternalError, match="CV-X003"):
        release_classical(asked, "c", ONE, ONE)


def test_the_textbook_constant():
    assert textbook_constant(1e-5) == pytest.approx(4.8448, abs=1e-4)


def test_what_was_not_planned_is_not_released():
    with pytest.raises(InternalError, match="CV-X002"):
        release_scaled(Gate(plan("x"), SeededNoise(1)), "y", ONE, ONE, ONE)
    with pytest.raises(InternalError, match="CV-X002"):
        release_vector_scaled(Gate(plan("x"), SeededNoise(1)), "x", [ONE], ONE, ONE)


def test_two_draws_have_the_variance_of_both():
    values = [
        float(release_twice(Gate(plan("x"), SeededNoise(seed)), "x", ONE, ONE, ONE / 2))
        for seed in range(1500)
    ]
    noise = release_twice(Gate(plan("x"), SeededNoise(0)), "x", ONE, ONE, ONE / 2).noise
    assert noise.variance == pytest.approx(2 * (1 + 1 / 4))
    assert np.var(values) == pytest.approx(noise.variance, rel=0.2)  # 3.5 standard errors
    assert np.mean(values) == pytest.approx(1, abs=0.1)


def test_the_grid_of_a_private_scale_is_public():
    """However large the private bound, answers lie on the same grid: its step would disclose the bound."""
    for bound in (ONE, 1000 * ONE, ONE / 1000):
        value = release_scaled(Gate(plan("x"), SeededNoise(3)), "x", ONE, bound, ONE)
        assert (value * 2**24).denominator == 1


def test_a_vector_at_a_private_scale_is_drawn_once_on_a_grid_that_the_scale_does_not_set():
    split = Plan.split(Budget(1, 1e-6), {"vector": ONE}, "gaussian", {"vector": Kind.VECTOR})
    asked, least = Gate(split, SeededNoise(3)), Fraction(1, 2**10)
    noisy = release_vector_scaled(asked, "vector", [Fraction(5)] * 2000, Fraction(7, 10), least)
    values = np.array([float(value) for value in noisy])
    assert values.mean() == pytest.approx(5, abs=0.06)
    assert values.std() == pytest.approx(0.7, rel=0.05)
    again = Gate(split, SeededNoise(3))
    other = release_vector_scaled(again, "vector", [Fraction(5)], Fraction(1, 3), least)
    steps = {value.denominator for value in (*noisy, *other)}
    assert max(steps) <= 2**40
    assert all(size & (size - 1) == 0 for size in steps)
    with pytest.raises(InternalError, match="CV-X003"):
        release_vector_scaled(asked, "vector", [ONE], ONE, least)

"""Whatever noise makes of moments or intervals, a charged question is answered and resent, without false bounds."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.inference import uncertainty
from counterveil.session import Gate, SeededNoise

ROWS = 60
STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0),
    outcome=cv.Outcome("y", (0, 1)),
    covariates={"a": cv.Range(0, 1), "b": cv.Binary()},
    assignment=cv.Trial(),
)
ASKED = {
    "difference in means": lambda session, **rest: session.ate(
        protects="outcome", method="difference_in_means", **rest
    ),
    "trial": lambda session, **rest: session.ate(protects="record", method="trial", **rest),
    "matching": lambda session, **rest: session.ate(protects="outcome", method="matching", **rest),
    "groups": lambda session, **rest: session.groups(protects="outcome", by="b", **rest),
}


def people():
    draw = np.random.default_rng(0)
    t = np.arange(ROWS) % 2
    return {"a": draw.random(ROWS), "b": draw.integers(0, 2, ROWS), "t": t, "y": draw.random(ROWS)}


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_answer_is_kept_before_any_interval_is_computed(asked, failure, monkeypatch):
    def fail(*_):
        raise failure

    with cv.Session(people(), STUDY, budget=cv.Budget(1), noise=SeededNoise(1)) as session:
        with monkeypatch.context() as broken:
            for name in ("half_width", "tail", "inflation"):
                broken.setattr(uncertainty, name, fail)
            with pytest.raises(failure):
                asked(session, epsilon=1, request_id="once").to_dict()
        again = asked(session, epsilon=1, request_id="once")
        assert session.account().spent.epsilon == 1
        assert session.account().requests == 1
        assert again.to_dict() == asked(session, epsilon=1, request_id="once").to_dict()


MOMENTS_STUDY = cv.Study(
    "t",
    cv.Outcome("y", (0, 20)),
    {"age": cv.Range(20, 80), "dose": cv.Binary(), "offer": cv.Binary()},
    assignment=cv.Trial(),
)
MOMENTS_ASKED = ("y ~ t", "y ~ t + age + dose", "y ~ 0 + age", "y ~ [dose ~ offer + t]")
HOSTILE = {
    "zeros": lambda values, _: [Fraction(0)] * len(values),
    "negative": lambda values, _: [-abs(value) - 1 for value in values],
    "huge": lambda values, _: [value + (-1) ** place * 10**100 for place, value in enumerate(values)],
    "tiny": lambda values, _: [value / 10**200 for value in values],
    "no moments": lambda values, rng: [Fraction(int(each), 7) for each in rng.integers(-9, 9, len(values))],
    "one weight": lambda values, _: [Fraction(place == 0, 10**30) for place in range(len(values))],
    "equal": lambda values, _: [Fraction(1)] * len(values),
}


def moments_people(n=2000):
    rng = np.random.default_rng(1)
    t, offer, age = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.uniform(20, 80, n)
    dose = np.where(rng.random(n) < 0.7, offer, 1 - offer)
    return {"t": t, "offer": offer, "age": age, "dose": dose, "y": 5 + t + dose + rng.normal(0, 2, n)}


def tampered(monkeypatch, kind, last_only):
    """Replace what the gate lets through: every release, or the last one alone."""
    rng = np.random.default_rng(3)
    for name in ("release_vector", "release_cells"):
        real = getattr(Gate, name)

        def release(self, name, values, sensitivity, real=real):
            found = real(self, name, values, sensitivity)
            if last_only and name != "moments":
                return found
            return type(found)(tuple(HOSTILE[kind](found.values, rng)), found.variance)

        monkeypatch.setattr(Gate, name, release)


@pytest.mark.parametrize("last_only", [True, False])
@pytest.mark.parametrize("protects", ["record", "outcome"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_every_reader_of_moments_is_total(kind, protects, last_only, monkeypatch, tmp_path):
    tampered(monkeypatch, kind, last_only)
    asked = {"protects": protects, "epsilon": 1, "delta": "1e-6", "request_id": "one"}
    if protects == "record":
        asked["outcomes"] = ["dose"]
    with cv.Session(moments_people(), MOMENTS_STUDY, budget=cv.Budget(1, "1e-6")) as session:
        found = session.moments(**asked)
        assert session.moments(**asked) == found
    assert type(found).load(found.save(tmp_path / "moments.json")) == found
    for text in (str(found), found.full(), found._repr_html_(), json.dumps(found.to_dict(), allow_nan=False)):
        assert text
    for low, high in found.interval().values():
        assert low <= high
    regressions = [
        found.regress(formula) for formula in MOMENTS_ASKED if protects == "record" or "[" not in formula
    ]
    if protects == "record":
        answer = found.compliance("dose", assigned="offer", controls=["age"])
        assert answer.full()
        assert json.dumps(answer.to_dict(), allow_nan=False)
        regressions += [answer.on_outcome, answer.on_receipt, answer.two_stage]
    for regression in regressions:
        assert regression.summary()
        assert regression.full()
        assert json.dumps(regression.to_dict(), allow_nan=False)
        for one in regression.coefficients:
            assert math.isfinite(one.estimate)
            assert one.interval()[0] <= one.interval()[1]
            assert 0 <= one.p_value <= 1
            assert not math.isnan(one.std_error.total)


def test_without_weight_nothing_is_known(monkeypatch):
    tampered(monkeypatch, "negative", last_only=True)
    found = cv.moments(moments_people(), MOMENTS_STUDY, protects="record", epsilon=1, delta="1e-6")
    assert found.matrix[0][0] < 0
    regression = found.regress("y ~ t + age")
    assert not regression.identified
    assert set(regression.interval().values()) == {(-math.inf, math.inf)}
    assert "UNBOUNDED" in str(regression)
    assert all(row["se_noise"] == math.inf for row in found.tidy())


FORCED = {
    "zeros": lambda _: 0,
    "large": lambda _: 10**6,
    "negative": lambda _: -(10**6),
    "huge": lambda _: 10**18,
    "alternating": lambda place: (-1) ** place * 10**6,
    "alternating, huge": lambda place: (-1) ** place * 10**18,
}
FORMS = [
    ("record", "doubly_robust", "ATE"),
    ("record", "doubly_robust", "ATO"),
    ("record", "doubly_robust", "ATT"),
    ("record", "trial", "ATE"),
    ("treatment and outcome", "auto", "ATE"),
    ("outcome", "weighting", "ATE"),
    ("outcome", "matching", "ATE"),
    ("outcome", "stratified", "ATE"),
]


def forced(monkeypatch, kind):
    """Replace every number that the gate lets through."""
    for name in ("release", "release_vector", "release_cells"):
        real = getattr(Gate, name)

        def release(self, *given, real=real, several=name != "release"):
            found = real(self, *given)
            places = range(len(found.values)) if several else (1,)
            values = tuple(Fraction(FORCED[kind](place)) for place in places)
            return replace(found, values=values) if several else replace(found, value=values[0])

        monkeypatch.setattr(Gate, name, release)


@pytest.mark.parametrize("kind", FORCED)
@pytest.mark.parametrize(
    ("protects", "method", "estimand"), thinned_rows(FORMS, FORMS[0], FORMS[1], FORMS[3])
)
def test_an_effect_is_computed_from_whatever_was_released(kind, protects, method, estimand, monkeypatch):
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"a": cv.Range(0, 1).cut("1/2"), "b": cv.Binary()},
        assignment=cv.Trial(),
    )
    forced(monkeypatch, kind)
    asked = {"protects": protects, "method": method, "estimand": estimand, "epsilon": 1, "delta": "1e-6"}
    data = {name: np.tile(column, 3) for name, column in people().items()}
    found = cv.ate(data, study, noise=SeededNoise(1), **asked)
    low, high = found.interval()
    assert -1 <= low <= high <= 1
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert found.full()


@pytest.mark.parametrize("method", ["weighting", "matching"])
def test_covariates_of_a_large_public_range_are_balanced_or_refused(method):
    draw = np.random.default_rng(0)
    data = people() | {"a": draw.random(ROWS) * 1e100}
    declared = {"protects": "outcome", "method": method, "epsilon": 1, "noise": SeededNoise(1)}
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"a": cv.Range(0, "1e100"), "b": cv.Binary()},
    )
    assert math.isfinite(cv.ate(data, study, **declared).estimate)
    for ends in ((0, "1e101"), ("-1e300", 0)):
        with pytest.raises(cv.CounterveilError, match="CV-S162"):
            cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"a": cv.Range(*ends)})

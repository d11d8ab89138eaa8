"""Cut points of a range: public, exact, kept by every document."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest

from counterveil.data import Binary, Range, Study
from counterveil.errors import StudyError

AGE = Range(18, 90).cut(30, Decimal("45.5"), "60")


def test_a_cut_range_is_a_range_with_cut_points():
    assert AGE.cuts == (30, Fraction(91, 2), 60)
    assert (AGE.lo, AGE.hi, AGE.width) == (18, 90, 72)
    assert AGE.floats() == Range(18, 90).floats()
    assert repr(AGE) == "Range(18, 90).cut(30, 45.5, 60)"
    assert Range(18, 90) != AGE
    assert Range(18, 90).cuts == ()
    assert AGE.cut(50).cuts == (50,)
    assert pickle.loads(pickle.dumps(AGE)) == AGE


def test_thresholds_are_the_least_doubles_that_are_not_below_the_cut():
    for text in ("1/10", "1/3", "3/10", "2/3", "7/10", "1/2"):
        (threshold,) = Range(0, 1).cut(text).thresholds()
        assert Fraction(threshold) >= Fraction(text) > Fraction(math.nextafter(threshold, 0))


@pytest.mark.parametrize(
    "points",
    [(), (18,), (90,), (17,), (45, 30), (30, 30), (30, 91), ("x",), (float("nan"),), (None,), (True, "1/0")],
)
def test_cut_points_that_are_not_usable(points):
    with pytest.raises(StudyError) as caught:
        Range(18, 90).cut(*points)
    assert caught.value.code in ("CV-S070", "CV-S003")


def test_every_bin_must_hold_a_double():
    tiny = Fraction(1, 2**80)
    third = Range("1/3", "2/3")
    low, high = third.floats()
    empty = [
        (Range(0, 1), (Fraction(1, 2) + tiny, Fraction(1, 2) + 2 * tiny)),
        (third, (third.lo + (Fraction(low) - third.lo) / 2,)),
        (third, (third.hi - (third.hi - Fraction(high)) / 2,)),
    ]
    for bounds, points in empty:
        with pytest.raises(StudyError, match="CV-S070"):
            bounds.cut(*points)
    assert Range(0, 1).cut(tiny, 1 - tiny).thresholds() == (float(tiny), 1.0)


def test_documents_keep_cut_points(tmp_path):
    study = Study("t", "y", (0, 1), {"age": AGE, "x": Range(0, 1).cut("1/3"), "b": Binary()})
    document = study.to_dict()
    assert document["covariates"]["age"] == {"range": [18, 90], "cuts": [30, 45.5, 60]}
    assert Study.from_dict(document) == study
    assert pickle.loads(pickle.dumps(study)) == study
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml(), encoding="utf-8")
    assert Study.from_toml(path) == study
    plain = Study("t", "y", (0, 1), {"age": Range(18, 90), "x": Range(0, 1), "b": Binary()})
    assert study != plain
    assert study.fingerprint() != plain.fingerprint()


@pytest.mark.parametrize(
    "domain",
    [
        {"range": [18, 90], "cuts": "30"},
        {"range": [18], "cuts": [30]},
        {"cuts": [30]},
        {"range": [18, 90], "cuts": [30], "more": 1},
    ],
)
def test_documents_that_are_not_understood(domain):
    with pytest.raises(StudyError, match="CV-S013"):
        Study.from_dict(
            {"treatment": "t", "outcome": "y", "outcome_range": [0, 1], "covariates": {"age": domain}}
        )

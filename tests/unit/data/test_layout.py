"""Layouts: which covariates make strata, and how many."""

from fractions import Fraction

import pytest

from counterveil.data import Binary, Categories, Layout, Range, Study
from counterveil.errors import StudyError

STUDY = Study(
    "t",
    "y",
    (0, 1),
    {
        "age": Range(18, 90).cut(30, 60),
        "sex": Binary(),
        "site": Categories(list("abcde")),
        "bmi": Range(10, 60),
    },
)


def refused(code, *arguments):
    with pytest.raises(StudyError) as caught:
        Layout.of(*arguments)
    assert caught.value.code == code
    return caught.value


def test_strata_are_the_cells_of_the_chosen_covariates():
    layout = Layout.of(STUDY, ("age", "sex", "site"))
    assert layout.names == ("age", "sex", "site")
    assert layout.sizes == (3, 2, 5)
    assert layout.public == 30
    text = layout.describe()
    assert text == "30 strata by 'age' (3 bins, cut at 30, 60), 'sex' (2 labels), 'site' (5 labels)"


def test_other_cut_points_take_the_place_of_the_declared_ones():
    layout = Layout.of(STUDY, ("age", "bmi"), {"age": (Fraction(40),), "bmi": (Fraction(20), Fraction(30))})
    assert layout.sizes == (2, 3)
    assert Layout.of(STUDY, ("age",), {"age": ()}).describe() == "1 stratum by 'age' (not cut)"
    refused("CV-S070", STUDY, ("age",), {"age": (Fraction(5),)})


def test_a_range_without_cut_points_makes_no_strata():
    error = refused("CV-S071", STUDY)
    assert "'bmi'" in str(error)
    assert "Range(10, 60).cut(...)" in error.fix


def test_names_that_cannot_make_strata():
    assert "'sex'" in refused("CV-S072", STUDY, ("sexx",)).fix
    refused("CV-S072", STUDY, ("sex", "sex"))
    refused("CV-S072", STUDY, ("t",))
    refused("CV-S072", STUDY, "sex,site")
    assert Layout.of(STUDY, "sex").names == ("sex",)


def test_cut_points_for_what_is_not_a_range_in_the_layout():
    refused("CV-S073", STUDY, ("sex",), {"sex": (Fraction(1, 2),)})
    refused("CV-S073", STUDY, ("sex",), {"age": (Fraction(40),)})


def test_too_many_strata():
    many = {f"c{place}": Categories(range(16)) for place in range(16)}
    study = Study("t", "y", (0, 1), many)
    assert Layout.of(study, tuple(many)[:15]).public == 16**15
    assert "2^64" in refused("CV-S074", study).got

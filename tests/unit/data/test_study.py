"""Studies: validation, documents, fingerprints, public facts, layouts, times to an event, columns that rules see."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import (
    Binary,
    Categories,
    Drop,
    Fill,
    Layout,
    Range,
    Study,
    Table,
    columns_as_written,
    covariate_columns,
    public_points,
)
from counterveil.data.follow_up import joined_entries
from counterveil.errors import DataError, StudyError
from counterveil.privacy import Unit


def full_study() -> Study:
    return Study(
        treatment=cv.Treatment("arm", treated="new", control="old"),
        outcome=cv.Outcome("score", (0, "1/3")),
        covariates={
            "age": Range(18, 90.5),
            "smoker": Binary(one="yes", zero="no"),
            "site of care": Categories(["rural", 'the "city"', 3]),
        },
        assignment=cv.Trial(share=0.5),
        missing={"age": Drop(), "smoker": Fill("no"), "score": Fill(Decimal("0.1"))},
    )


def test_bounds_are_the_rationals_that_were_written():
    study = Study("t", cv.Outcome("y", (0.1, "1/3")), {"x": Range(Decimal("0.7"), 1)})
    assert study.outcome_range == (Fraction(1, 10), Fraction(1, 3))
    assert study.covariates["x"] == Range("7/10", 1)
    assert study.outcome_bounds.width == Fraction(7, 30)


def test_the_study_cannot_be_changed():
    study = full_study()
    with pytest.raises(FrozenInstanceError):
        study.outcome = "other"
    with pytest.raises(TypeError):
        study.covariates["age"] = Binary()
    given = {"age": Range(0, 1)}
    study = Study("t", cv.Outcome("y", (0, 1)), given)
    given["more"] = Range(0, 1)
    assert study.columns == ("t", "y", "age")


def refused(code, **changes):
    arguments = {"treatment": "t", "outcome": "y", "outcome_range": (0, 1)} | changes
    with pytest.raises(StudyError) as caught:
        study_of(**arguments)
    assert caught.value.code == code
    return caught.value


NAN = float("nan")
REFUSED = {
    "CV-S001": [{"outcome_range": bad} for bad in (None, 1, (0,), (0, 1, 2), "01")],
    "CV-S002": [{"outcome_range": bad} for bad in ((1, 0), (2, 2))],
    "CV-S003": [
        {"outcome_range": bad}
        for bad in (
            *((0, bad) for bad in (float("inf"), None, 1e301, True)),
            (NAN, 1),
            ("low", 1),
            (1e17, 10**17 + 1),
        )
    ],
    "CV-S004": [
        one
        for bad in ("", "  ", None, 3)
        for one in ({"treatment": bad}, {"outcome": bad}, {"covariates": {bad: Binary()}})
    ],
    "CV-S005": [{"treatment": "y"}, *({"covariates": {name: Range(0, 1)}} for name in "ty")],
    "CV-S007": [{"control": 1}, {"treated": "1", "control": 1}, {"treated": NAN}],
    # A range, or two labels.
    "CV-S008": [{"covariates": bad} for bad in ({"x": [18, 90]}, {"x": Range}, ["x"])],
    "CV-S009": [{"missing": bad} for bad in ({"yy": Drop()}, {"y": "drop"}, {"y": Drop}, "drop")],
    "CV-S011": [
        *({"treated_share": bad, "randomised": True} for bad in (0, 1, -0.5, "half", NAN)),
    ],
}


@pytest.mark.parametrize("code", REFUSED)
def test_declarations_that_are_refused(code):
    for changes in REFUSED[code]:
        refused(code, **changes)


@pytest.mark.parametrize(
    "labels", [[], ["one"], ["a", "a"], [1, "1"], [1, 1.0], [0, "0.0"], [1, True], "ab", 5]
)
def test_categories(labels):
    with pytest.raises(StudyError, match="CV-S006"):
        Categories(labels)
    with pytest.raises(StudyError, match="CV-S006"):
        Binary(one=0)
    with pytest.raises(StudyError, match="CV-S007"):
        Categories(["a", ["b"]])


@pytest.mark.parametrize(
    ("column", "value"),
    [("y", 2), ("y", "x"), ("y", float("nan")), ("b", 2), ("c", "z"), ("x", -1), ("t", 0)],
)
def test_fill_stays_inside_what_is_declared(column, value):
    covariates = {"b": Binary(), "c": Categories(["u", "v"]), "x": Range(0, 5)}
    refused("CV-S010", covariates=covariates, missing={column: Fill(value)})


def documented(**more):
    return study_of("arm", **({"outcome": "y", "outcome_range": (0, 1)} | more))


TIMES = {"outcome": "days", "outcome_range": None, "event": "died", "randomised": True}
SCHOOLS = {"cluster": "school", "covariates": {"age": Range(0, 9)}, "control": 0}
DOCUMENTED = {
    "full": full_study(),
    "arms": documented(
        arms=("low", "placebo", "high"), reference="placebo", missing={"arm": Fill("low")}, randomised=True
    ),
    "cuts": documented(covariates={"age": Range(18, 90).cut(30, "45.5"), "x": Range(0, 1).cut("1/3")}),
    "horizon": documented(**TIMES, horizon=360),
    "cells": documented(**TIMES, horizon="7/3", grid=3),
    "grid": documented(**TIMES, grid=[30, "91.25", 365]),
    "cluster": documented(**SCHOOLS),
    "assigned": documented(**SCHOOLS, assigned_by_cluster=True),
    "people": documented(**SCHOOLS, person="id"),
    "whole clusters": documented(
        **SCHOOLS, protects_cluster=True, per_cluster={"y": "sum"}, order="day", max_rows_per_person=3
    ),
    "where": documented(where="age >= 18", control=0, treated=1, others="drop"),
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documents_give_the_study_back(name, tmp_path):
    study = DOCUMENTED[name]
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml(), encoding="utf-8")
    for again in (Study.from_dict(study.to_dict()), Study.from_toml(path), pickle.loads(pickle.dumps(study))):
        assert again == study
        assert hash(again) == hash(study)
        assert again.fingerprint() == study.fingerprint()
        assert list(again.covariates) == list(study.covariates)
    assert copy.deepcopy(study) == study
    assert len({one.fingerprint() for one in DOCUMENTED.values()}) == len(DOCUMENTED)


def test_a_file_written_by_hand(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        """
        treatment = "train"
        missing = "drop"
        [outcome]
        column = "re78"
        range = [0, 60.5]
        [covariates]
        age = { range = [16, 60] }
        black = "binary"
        hisp = { binary = true }
        """,
        encoding="utf-8",
    )
    study = Study.from_toml(path)
    known = {"age": Range(16, 60), "black": Binary(), "hisp": Binary()}
    assert study == Study("train", cv.Outcome("re78", (0, 60.5)), known, missing=Drop())


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"outcom": [0, 1]}, "outcome"),
        ({"covariates": {"x": [0, 1]}}, "range = [0, 1]"),
        ({"covariates": ["x"]}, "[covariates]"),
        ({"covariates": {"x": {"range": [0, 1], "binary": True}}}, "binary"),
        ({"missing": {"y": "ignore"}}, "drop"),
        ({"missing": 5}, "drop"),
        ({"covariates": {"age": {"range": [18, 90], "cuts": "30"}}}, ""),
        ({"covariates": {"age": {"range": [18], "cuts": [30]}}}, ""),
        ({"covariates": {"age": {"cuts": [30]}}}, ""),
        ({"covariates": {"age": {"range": [18, 90], "cuts": [30], "more": 1}}}, ""),
    ],
)
def test_documents_that_are_not_understood(change, hint):
    with pytest.raises(StudyError) as caught:
        Study.from_dict({"treatment": "t", "outcome": {"column": "y", "range": [0, 1]}} | change)
    assert caught.value.code == "CV-S013"
    assert hint in caught.value.fix


def test_documents_without_roles():
    with pytest.raises(StudyError, match="CV-S013"):
        Study.from_dict({"treatment": "t"})
    with pytest.raises(StudyError, match="CV-S013"):
        Study.from_dict([("treatment", "t")])
    for bare in ("y", {"column": "y"}):
        with pytest.raises(StudyError, match="CV-S170"):
            Study.from_dict({"treatment": "t", "outcome": bare})


def test_study_files_that_cannot_be_read(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("treatment = ", encoding="utf-8")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'treatment = "\xe9"')
    for path in (broken, latin, tmp_path / "none.toml"):
        with pytest.raises(StudyError) as caught:
            Study.from_toml(path)
        assert caught.value.code == "CV-S014"
        assert str(tmp_path) not in str(caught.value)


def test_fingerprints_follow_the_meaning():
    one = Study(
        cv.Treatment("t", treated=np.int64(1)),
        cv.Outcome("y", (0, 0.5)),
        {"a": Range(0, 1), "b": Binary(True, False)},
    )
    two = Study("t", cv.Outcome("y", ("0", "1/2")), {"b": Binary(), "a": Range(0.0, 1.0)})
    other = Study("t", cv.Outcome("y", (0, 0.5)), {"a": Range(0, 1), "b": Binary()}, missing={"a": Fill(0)})
    assert one == two
    assert one.fingerprint() == two.fingerprint()
    assert len(one.fingerprint()) == 64
    assert one.fingerprint() != other.fingerprint()


def test_public_facts_name_what_is_public():
    study = full_study()
    outcome, record = (" | ".join(study.public_facts(unit)) for unit in (Unit.OUTCOME, Unit.RECORD))
    assert "every person's treatment 'arm'" in outcome
    assert "every person's" not in record
    # Attaching refuses other rows.
    for facts in (outcome, record):
        assert "the rows fit the study and each arm of 'arm' has at least 2 rows" in facts
    for text in (outcome, record):
        assert "number of rows" in text
        assert "clamped" in text
        assert "pattern of missing values is public" in text
        assert "probability 0.5" in text
        assert "'rural'" in text


def test_a_known_score_is_a_bounded_covariate_and_contradicts_other_designs():
    chance = {"chance": Range("0.1", "0.9")}
    study = Study("t", cv.Outcome("y", (0, 1)), chance, assignment=cv.Propensity("chance"))
    assert Study.from_dict(study.to_dict()) == study
    assert any("'chance'" in fact and "probability" in fact for fact in study.public_facts(Unit.OUTCOME))
    for domain in (Range(0, "0.9"), Range("0.1", 1), Binary()):
        refused("CV-S027", covariates={"chance": domain}, score="chance")
    refused("CV-S027", score="chance")
    refused("CV-S004", score=3)
    for more in (
        {"arms": (0, 1, 2), "reference": 0},
        {"missing": {"chance": Fill("0.5")}},
    ):
        refused("CV-S027", covariates=chance, score="chance", **more)


def test_a_score_outside_its_range_is_refused_not_clamped():
    study = Study(
        "t", cv.Outcome("y", (0, 1)), {"chance": Range("0.1", "0.9")}, assignment=cv.Propensity("chance")
    )
    rows = {"t": [0, 1, 0, 1], "y": [0, 1, 1, 0]}
    assert Table.attach(rows | {"chance": [0.1, 0.9, 0.5, 0.5]}, study).score[0] == 0.1
    with pytest.raises(DataError) as caught:
        Table.attach(rows | {"chance": [0.1, 0.91, 0.5, 0.5]}, study)
    assert caught.value.code == "CV-D022"


DOSES = {"arms": ("low", "placebo", "high"), "reference": "placebo"}


def study(**changes):
    return study_of("arm", "y", (0, 1), **(DOSES | changes))


def rows(labels):
    return {"arm": labels, "y": np.linspace(0, 1, len(labels))}


EACH_TWICE = ["high", "placebo", "low"] * 2


def test_the_reference_comes_first_and_the_others_keep_their_order():
    declared = study()
    assert declared.arms == ("placebo", "low", "high")
    assert declared.reference == "placebo"
    assert declared.treatment_labels == declared.arms
    assert declared.treated is None
    assert declared.control is None
    assert declared == study(arms=["placebo", "low", "high"])
    assert declared.fingerprint() == study(arms=["placebo", "low", "high"]).fingerprint()
    assert declared != study(reference="low")
    assert declared.fingerprint() != study(reference="low").fingerprint()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"arms": ("placebo", "low")}, "CV-S060"),
        ({"arms": "abc"}, "CV-S060"),
        ({"arms": ("placebo", "low", "low")}, "CV-S060"),
        ({"arms": (1, "1.0", 2), "reference": 1}, "CV-S060"),
        ({"arms": ("placebo", "low", None)}, "CV-S007"),
        ({"treated": "low"}, "CV-S061"),
        ({"control": "placebo"}, "CV-S061"),
        ({"treated_share": 0.5, "randomised": True}, "CV-S061"),
        ({"reference": None}, "CV-S062"),
        ({"reference": "middle"}, "CV-S062"),
        ({"arms": None}, "CV-S062"),
        ({"missing": {"arm": Fill("middle")}}, "CV-S010"),
    ],
)
def test_declarations_that_do_not_fit(changes, code):
    with pytest.raises(StudyError, match=code):
        study(**changes)


def test_a_table_holds_the_place_of_each_arm():
    table = Table.attach(rows(EACH_TWICE), study())
    assert table.arm.tolist() == [2, 0, 1, 2, 0, 1]
    assert table.arm.dtype == np.intp
    assert table.treated.tolist() == [True, False, True, True, False, True]
    assert not table.arm.flags.writeable
    assert "high" not in repr(table)


def test_numbers_serve_as_labels(tmp_path):
    doses = Study(cv.Treatment("dose", arms=(0, 5, 10), reference=0), cv.Outcome("y", (0, 1)))
    path = tmp_path / "doses.csv"
    path.write_text("dose,y\n0,0\n5.0,1\n10,0\n0,1\n5,0\n10,1\n", encoding="utf-8")
    in_memory = {"dose": np.array([0.0, 5.0, 10.0] * 2), "y": [0, 1] * 3}
    for source in (in_memory, path):
        assert Table.attach(source, doses).arm.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([*EACH_TWICE, "middle"], "CV-D017"),
        (["placebo", "low"] * 2, "CV-D018"),
        ([*EACH_TWICE[:4], "placebo"], "CV-D009"),
        ([*EACH_TWICE, None], "CV-D003"),
    ],
)
def test_data_that_do_not_fit_name_the_column_only(labels, code):
    with pytest.raises(DataError) as refusal:
        Table.attach(rows(labels), study())
    assert refusal.value.code == code
    assert "'arm'" in str(refusal.value)
    assert "middle" not in str(refusal.value)


def test_missing_arms_follow_their_rule():
    gapped = rows([*EACH_TWICE, None])
    assert Table.attach(gapped, study(missing={"arm": Fill("low")})).arm.tolist()[-1] == 1
    assert Table.attach(gapped, study(missing=Drop())).rows == 6


STUDY = Study(
    "t",
    cv.Outcome("y", (0, 1)),
    {
        "age": Range(18, 90).cut(30, 60),
        "sex": Binary(),
        "site": Categories(list("abcde")),
        "bmi": Range(10, 60),
    },
)


def layout_refused(code, *arguments):
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
    layout_refused("CV-S070", STUDY, ("age",), {"age": (Fraction(5),)})


def test_a_range_without_cut_points_makes_no_strata():
    error = layout_refused("CV-S071", STUDY)
    assert "'bmi'" in str(error)
    assert "Range(10, 60).cut(...)" in error.fix


def test_names_that_cannot_make_strata():
    assert "'sex'" in layout_refused("CV-S072", STUDY, ("sexx",)).fix
    layout_refused("CV-S072", STUDY, ("sex", "sex"))
    layout_refused("CV-S072", STUDY, ("t",))
    layout_refused("CV-S072", STUDY, "sex,site")
    assert Layout.of(STUDY, "sex").names == ("sex",)


def test_cut_points_for_what_is_not_a_range_in_the_layout():
    layout_refused("CV-S073", STUDY, ("sex",), {"sex": (Fraction(1, 2),)})
    layout_refused("CV-S073", STUDY, ("sex",), {"age": (Fraction(40),)})


def test_too_many_strata():
    many = {f"c{place}": Categories(range(16)) for place in range(16)}
    study = Study("t", cv.Outcome("y", (0, 1)), many)
    assert Layout.of(study, tuple(many)[:15]).public == 16**15
    assert "2^64" in layout_refused("CV-S074", study).got


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


TIME_STUDY = cv.Study(
    cv.Treatment("arm", control=0), outcome=cv.TimeToEvent("days", "died", grid=[1, 2.5, 4])
)


def test_every_row_has_the_entry_of_the_definition():
    times = [0, 0.5, 1, 1.1, 2.5, 2.6, 4, 4.1, 99]
    expected = {1: [0, 0, 0, 1, 1, 2, 2, 6, 6], 0: [3, 3, 3, 4, 4, 5, 6, 6, 6]}
    for died, entries in expected.items():
        arms = [place % 2 for place in range(len(times))]
        table = Table.attach({"arm": arms, "days": times, "died": [died] * len(times)}, TIME_STUDY)
        assert joined_entries(3, 1)[table.outcome].tolist() == entries
        # By the finest parts: a sixteenth of the cell in which the time lies, of which the right end belongs to it.
        place = [0, 7, 15, 17, 31, 33, 47, 96, 96]
        assert table.outcome.tolist() == (place if died else [*(48 + one for one in place[:6]), 96, 96, 96])


def test_a_number_of_cells_makes_cells_of_one_length():
    study = cv.Study("arm", outcome=cv.TimeToEvent("days", "died", horizon=1, grid=4))
    assert study.event.grid == tuple(Fraction(place, 4) for place in (1, 2, 3, 4))


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 1, "grid": 0},
        {"horizon": 1, "grid": 201},
        {"grid": [2, 1]},
        {"grid": [0, 1]},
        {"grid": "12"},
        {},
        {"horizon": 3, "grid": [1, 2]},
        {"horizon": "x"},
        {"horizon": 1, "arms": (0, 1, 2), "reference": 0},
        {"horizon": 1, "cluster": "site", "protects_cluster": True},
    ],
)
def test_what_cannot_be_is_refused(given):
    with pytest.raises(cv.CounterveilError, match="CV-S090"):
        study_of("arm", **({"outcome": "days", "event": "died"} | given))


def test_other_codes_of_events_are_refused():
    with pytest.raises(cv.CounterveilError, match="CV-D090"):
        Table.attach({"arm": [0, 1, 0, 1], "days": [1, 1, 2, 2], "died": [1, 2, 1, 1]}, TIME_STUDY)


def test_rows_of_a_person_end_with_the_last():
    study = cv.Study(
        cv.Treatment("arm", control=0),
        outcome=cv.TimeToEvent("days", "died", grid=[1, 2.5, 4]),
        people="id",
    )
    rows = {"id": [1, 1, 2, 3, 4], "arm": [0, 0, 1, 0, 1], "days": [1, 3, 1, 2, 2], "died": [0, 1, 1, 0, 0]}
    assert joined_entries(3, 1)[Table.attach(rows, study).outcome].tolist() == [2, 0, 4, 4]


COLUMNS_STUDY = Study(
    treatment="t",
    outcome=cv.Outcome("y", (0, 1)),
    covariates={
        "age": Range(20, 60),
        "smoker": Binary("yes", "no"),
        "site": Categories(["north", "south", "east"]),
        "old": Binary(),
    },
)
ROWS = {
    "t": [0, 1, 0, 1],
    "y": [0.0, 1.0, 0.5, 0.25],
    "age": [10.0, 35.5, 60.0, 99.0],
    "smoker": ["yes", "no", "no", "yes"],
    "site": ["east", "north", "south", "north"],
    "old": [1, 0, 0, 1],
}


def test_numbers_are_clamped_and_labels_are_as_declared() -> None:
    found = covariate_columns(Table.attach(ROWS, COLUMNS_STUDY))
    assert list(found) == ["age", "smoker", "site", "old"]
    assert found["age"].tolist() == [20.0, 35.5, 60.0, 60.0]
    assert found["smoker"].tolist() == ["yes", "no", "no", "yes"]
    assert found["site"].tolist() == ["east", "north", "south", "north"]
    assert found["old"].tolist() == [1, 0, 0, 1]


def test_labels_of_several_types_keep_them() -> None:
    study = Study(
        treatment="t",
        outcome=cv.Outcome("y", (0, 1)),
        covariates={"dose": Categories([1, 2.5, "many"])},
    )
    table = Table.attach({"t": [0, 1, 0, 1], "y": [0, 1, 0, 1], "dose": ["1", "2.5", "many", "1"]}, study)
    assert covariate_columns(table)["dose"].tolist() == [1, 2.5, "many", 1]


def test_public_points_fill_the_domains_evenly_and_are_always_the_same() -> None:
    found = public_points(COLUMNS_STUDY, 600)
    again = public_points(COLUMNS_STUDY, 600)
    assert all((found[name] == again[name]).all() for name in COLUMNS_STUDY.covariates)
    assert found["age"].min() >= 20
    assert found["age"].max() <= 60
    counts = np.histogram(found["age"], bins=10, range=(20, 60))[0]
    assert counts.min() > 50
    assert np.bincount(found["site"].astype(int), minlength=3).min() > 180
    written = columns_as_written(found, COLUMNS_STUDY)
    assert set(written["site"]) == {"north", "south", "east"}
    # Covariates are not tied to each other.
    assert abs(np.corrcoef(found["age"], found["site"])[0, 1]) < 0.15

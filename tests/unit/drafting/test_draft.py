"""Drafts: every column has a place, open questions are marked, and no row is read."""

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.drafting import Entry

BOOK = {
    "arm": Entry("categories", labels=(("drug", ""), ("placebo", ""))),
    "age": Entry("range", 18, 90, title="Age in years"),
    "bmi": Entry("range", low=10),
    "site": Entry("categories", labels=(("A", "Aachen"), ("B", "Bonn"))),
    "relapse": Entry("binary", labels=((1, "yes"), (0, "no"))),
    "born": Entry("date"),
}
NAMES = ["patient_id", "arm", "age", "bmi", "site", "relapse", "born", "shoe"]
ANSWERS = {"treatment": "arm", "treated": "drug", "outcome": "relapse", "randomised": True}


def test_every_column_has_a_place():
    made = cv.drafting.draft(NAMES, BOOK, ANSWERS)
    assert made.places == {
        "patient_id": "ignored",
        "arm": "treatment",
        "age": "covariate",
        "bmi": "covariate",
        "site": "covariate",
        "relapse": "outcome",
        "born": "ignored",
        "shoe": "covariate",
    }
    assert [each.column for each in made.open_questions] == ["bmi", "shoe"]
    assert 'bmi = { range = "?" }  # the codebook says 10 to ?' in made.toml
    with pytest.raises(cv.CounterveilError, match="CV-S120"):
        made.study()


def test_answers_close_it():
    told = {"bmi": (10, 60), "shoe": cv.Range(20, 60)}
    study = cv.drafting.draft(NAMES, BOOK, ANSWERS | {"covariates": told}).study()
    assert study == cv.Study(
        "arm",
        "relapse",
        (0, 1),
        {
            "age": cv.Range(18, 90),
            "bmi": cv.Range(10, 60),
            "site": cv.Categories(["A", "B"]),
            "shoe": cv.Range(20, 60),
        },
        treated="drug",
        control="placebo",
        randomised=True,
    )


def test_treatment_and_outcome_are_never_guessed():
    made = cv.drafting.draft(["treatment", "outcome", "treated"])
    assert made.document["treatment"] == made.document["outcome"] == "?"
    assert {"which column holds the treatment?", "which column holds the outcome?"} <= {
        each.what.removeprefix("open question: ") for each in made.open_questions
    }


def test_a_codebook_may_name_the_roles():
    roles = {
        "a": Entry("binary", role="treatment"),
        "b": Entry("binary", role="outcome"),
        "c": Entry(role="ignored"),
    }
    made = cv.drafting.draft(["a", "b", "c"], roles, {"randomised": False})
    assert made.places == {"a": "treatment", "b": "outcome", "c": "ignored"}
    assert made.study() == cv.Study("a", "b", (0, 1), control=0, randomised=False)


def test_types_say_the_kind_and_nothing_of_the_values():
    frame = pd.DataFrame(
        {"x": [1.5], "flag": [True], "word": ["private"], "day": [pd.Timestamp("2020-01-01")]}
    )
    made = cv.drafting.draft(frame)
    assert made.document["covariates"] == {"x": {"range": "?"}, "flag": "binary", "word": {"categories": "?"}}
    assert made.places["day"] == "ignored"
    assert "private" not in made.toml


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "arrays"])
def test_no_row_is_read(tmp_path, form, monkeypatch):
    frame = pd.DataFrame({"arm": [0, 1] * 50, "y": np.arange(100.0), "site": ["secret"] * 100})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    sources = {
        "csv": str(tmp_path / "t.csv"),
        "parquet": str(tmp_path / "t.parquet"),
        "frame": frame,
        "arrays": {name: frame[name].to_numpy() for name in frame},
    }
    for module in ("counterveil.data.sources.relations.fetch", "counterveil.data.sources.frames.column_of"):
        monkeypatch.setattr(module, _forbidden)
    made = cv.drafting.draft(sources[form])
    assert list(made.places) == ["arm", "y", "site"]
    assert "secret" not in made.toml


def _forbidden(*_args, **_more):
    raise AssertionError("a row was read")


def test_the_text_survives_hostile_names_and_titles():
    names = ['a"b', "c\nd", "é", "x = 1", "#", "a.b", "\u202e"]
    titles = {name: Entry("range", 0, 1, title='end\n[covariates]\nx = "y"') for name in names}
    made = cv.drafting.draft(
        [*names, "t", "y"], titles, {"treatment": "t", "outcome": "y", "treated": 1, "outcome_range": (0, 1)}
    )
    assert set(made.document["covariates"]) == set(names)


def test_impossible_entries_stay_open():
    book = {"x": Entry("range", 9, 1), "z": Entry("categories", labels=((1, ""), ("1", "")))}
    made = cv.drafting.draft(["x", "z", "t", "y"], book, {"treatment": "t", "outcome": "y"})
    assert made.document["covariates"] == {"x": {"range": "?"}, "z": {"categories": "?"}}


def test_more_arms_than_two():
    book = {"t": Entry("categories", labels=(("low", ""), ("high", ""), ("placebo", "")))}
    answers = {"treatment": "t", "outcome": "y", "outcome_range": (0, 1), "randomised": True}
    two = cv.drafting.draft(["t", "y"], book, answers | {"treated": "high", "control": "placebo"})
    assert two.study().where.text == "t in ['high', 'placebo']"
    three = cv.drafting.draft(
        ["t", "y"], book, answers | {"arms": ("low", "high", "placebo"), "reference": "placebo"}
    )
    assert three.study().arms == ("placebo", "low", "high")


@pytest.mark.parametrize(
    "answers",
    [
        {"treatment": "nobody"},
        {"colour": "blue"},
        {"treatment": "arm", "outcome": "arm"},
        {"covariates": ["age"], "ignored": ["age"]},
        {"outcome": "relapse", "outcome_range": 3},
    ],
)
def test_answers_that_do_not_fit_are_refused(answers):
    with pytest.raises(cv.CounterveilError, match="CV-P721"):
        cv.drafting.draft(NAMES, BOOK, answers).toml  # noqa: B018

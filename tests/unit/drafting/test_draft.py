"""Drafts: every column has a place, open questions are marked, and no row is read."""

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

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
ANSWERS = {"treatment": "arm", "treated": "drug", "outcome": "relapse", "assignment": "trial"}


def test_every_column_has_a_place():
    assert cv.drafting.draft(NAMES, BOOK, ANSWERS).document["covariates"] == "?"
    made = cv.drafting.draft(NAMES, BOOK, ANSWERS | {"covariates": "all"})
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
    answers = ANSWERS | {"covariates": ["age", "s*", "bmi"], "columns": told}
    study = cv.drafting.draft(NAMES, BOOK, answers).study()
    assert study == cv.Study(
        cv.Treatment("arm", treated="drug", control="placebo"),
        cv.Outcome("relapse", (0, 1)),
        {
            "age": cv.Range(18, 90),
            "bmi": cv.Range(10, 60),
            "site": cv.Categories(["A", "B"]),
            "shoe": cv.Range(20, 60),
        },
        assignment=cv.Trial(),
    )


def test_treatment_and_outcome_are_never_guessed():
    made = cv.drafting.draft(["treatment", "outcome", "treated"])
    assert made.document["treatment"] == made.document["outcome"] == "?"
    assert {"which column holds the treatment?", "which column holds the outcome?"} <= {
        each.what for each in made.open_questions
    }


def test_types_say_the_kind_and_nothing_of_the_values():
    frame = pd.DataFrame(
        {"x": [1.5], "flag": [True], "word": ["private"], "day": [pd.Timestamp("2020-01-01")]}
    )
    made = cv.drafting.draft(frame, None, {"covariates": "all"})
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
        [*names, "t", "y"],
        titles,
        {"treatment": "t", "outcome": "y", "treated": 1, "outcome_range": (0, 1), "covariates": names},
    )
    assert set(made.document["covariates"]) == set(names)


def test_impossible_entries_stay_open():
    book = {"x": Entry("range", 9, 1), "z": Entry("categories", labels=((1, ""), ("1", "")))}
    answers = {"treatment": "t", "outcome": "y", "covariates": "all"}
    made = cv.drafting.draft(["x", "z", "t", "y"], book, answers)
    assert made.document["covariates"] == {"x": {"range": "?"}, "z": {"categories": "?"}}


def test_more_arms_than_two():
    book = {"t": Entry("categories", labels=(("low", ""), ("high", ""), ("placebo", "")))}
    answers = {"treatment": "t", "outcome": "y", "outcome_range": (0, 1), "assignment": "trial"}
    two = cv.drafting.draft(["t", "y"], book, answers | {"treated": "high", "control": "placebo"})
    assert two.study().where.text == "t in ['high', 'placebo']"
    three = cv.drafting.draft(
        ["t", "y"], book, answers | {"arms": ("low", "high", "placebo"), "reference": "placebo"}
    )
    assert three.study().arms == ("placebo", "low", "high")


def test_names_set_columns_aside_unless_somebody_chooses_them():
    aside = {
        "ptid": "identifier",
        "patientId": "identifier",
        "sadmdte": "date",
        "visit_date": "date",
        "sadmdt": "date",
        "date_of_admission": "date",
        "dth30": "after treatment",
        "survial_d30": "after treatment",  # as a public file spells it
        "t3d30": "after treatment",
        "day_90": "after treatment",
        "alive": "after treatment",
        "days_to_relapse": "after treatment",
        "los": "after treatment",
        "DeathCause": "after treatment",
        "discharge_ward": "after treatment",
        "pain_followup": "after treatment",
        "score_post": "after treatment",
        "hba1c_after": "after treatment",
    }
    kept = ["age", "postcode", "candidate", "update", "lipid", "lossy", "surveyed", "surv2md1", "das2d3pc"]
    answers = {"treatment": "t", "outcome": "y", "covariates": "all"}
    made = cv.drafting.draft([*aside, *kept, "t", "y"], None, answers)
    assert made.set_aside == aside
    assert [name for name, place in made.places.items() if place == "covariate"] == kept
    assert "# Set aside (date): sadmdte, visit_date, sadmdt, date_of_admission" in made.toml
    chosen = cv.drafting.draft([*aside, "t", "y"], None, answers | {"covariates": ["dth30"]})
    assert 'dth30 = "?"  # its name suggests: after treatment' in chosen.toml


TEMPLATE = """\
name,role,kind,low,high,labels,unit,note
pid,person,,,6,,,
visit,order,,,,,,
arm,treatment,,,,placebo=control; low; high,,
age,covariate,numeric,18,90,,years,Age
ward,cluster,,,,,,
pain,outcome,numeric,0,10,,,
slept,outcome,binary,,,,,
"""


def test_a_filled_template_holds_arms_outcomes_people_and_clusters(tmp_path):
    names = ["pid", "visit", "arm", "age", "ward", "pain", "slept", "shoe"]
    assert cv.drafting.draft(names).template.splitlines()[1] == "pid,ignored,,,,,,identifier"
    (tmp_path / "book.csv").write_text(TEMPLATE)
    made = cv.drafting.draft(names, tmp_path / "book.csv", {"assignment": "trial"})
    known = {"outcomes": {"pain": (0, 10), "slept": (0, 1)}, "covariates": {"age": cv.Range(18, 90)}}
    known |= {"arms": ("placebo", "low", "high"), "reference": "placebo", "randomised": True}
    known |= {"person": "pid", "order": "visit", "max_rows_per_person": 6, "cluster": "ward"}
    assert made.study() == study_of("arm", **known)
    again = cv.drafting.draft(names, None, cv.drafting.answers_in(made.document))
    assert again.document == made.document
    (tmp_path / "again.csv").write_text(made.template)
    assert cv.drafting.draft(names, tmp_path / "again.csv", {"assignment": "trial"}).study() == made.study()


def test_a_filled_template_holds_a_time_to_an_event():
    book = {
        "days": Entry("range", 0, 360, role="outcome"),
        "died": Entry("binary", role="event"),
        "arm": Entry("binary", role="treatment"),
    }
    made = cv.drafting.draft(["days", "died", "arm"], book, {"assignment": "trial"})
    assert made.study() == cv.Study(
        cv.Treatment("arm", control=0),
        cv.TimeToEvent("days", "died", horizon=360),
        assignment=cv.Trial(),
    )
    open_end = book | {"days": Entry("range", role="outcome")}
    made = cv.drafting.draft(["days", "died", "arm"], open_end, {"assignment": "trial"})
    assert [each.mend for each in made.open_questions] == ["[outcome]\nhorizon = NUMBER"]


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

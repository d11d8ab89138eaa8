"""Studies: validation, documents, fingerprints, public facts."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from counterveil.data import Binary, Categories, Drop, Fill, Range, Study, Table
from counterveil.errors import DataError, StudyError
from counterveil.privacy import Unit


def full_study() -> Study:
    return Study(
        treatment="arm",
        outcome="score",
        outcome_range=(0, "1/3"),
        covariates={
            "age": Range(18, 90.5),
            "smoker": Binary(one="yes", zero="no"),
            "site of care": Categories(["rural", 'the "city"', 3]),
        },
        treated="new",
        control="old",
        missing={"age": Drop(), "smoker": Fill("no"), "score": Fill(Decimal("0.1"))},
        randomised=True,
        treated_share=0.5,
    )


def test_bounds_are_the_rationals_that_were_written():
    study = Study("t", "y", (0.1, "1/3"), {"x": Range(Decimal("0.7"), 1)})
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
    study = Study("t", "y", (0, 1), given)
    given["more"] = Range(0, 1)
    assert study.columns == ("t", "y", "age")


def refused(code, **changes):
    arguments = {"treatment": "t", "outcome": "y", "outcome_range": (0, 1)} | changes
    with pytest.raises(StudyError) as caught:
        Study(**arguments)
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
    "CV-S007": [{"control": 1}, {"treated": "1", "control": 1}, {"treated": None}, {"treated": NAN}],
    # A range, or two labels.
    "CV-S008": [{"covariates": bad} for bad in ({"x": [18, 90]}, {"x": Range}, ["x"])],
    "CV-S009": [{"missing": bad} for bad in ({"yy": Drop()}, {"y": "drop"}, {"y": Drop}, "drop")],
    "CV-S011": [
        *({"treated_share": bad, "randomised": True} for bad in (0, 1, -0.5, "half", NAN)),
        {"treated_share": 0.5},
        {"treated_share": 0.5, "randomised": False},
    ],
    "CV-S012": [{"randomised": bad} for bad in (1, "yes")],
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


def test_documents_give_the_study_back(tmp_path):
    study = full_study()
    assert Study.from_dict(study.to_dict()) == study
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml(), encoding="utf-8")
    again = Study.from_toml(path)
    assert again == study
    assert hash(again) == hash(study)
    assert again.fingerprint() == study.fingerprint()
    assert list(again.covariates) == list(study.covariates)
    assert pickle.loads(pickle.dumps(study)) == study
    assert copy.deepcopy(study) == study


def test_a_file_written_by_hand(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        """
        treatment = "train"
        outcome = "re78"
        outcome_range = [0, 60.5]
        missing = "drop"
        [covariates]
        age = { range = [16, 60] }
        black = "binary"
        hisp = { binary = true }
        """,
        encoding="utf-8",
    )
    study = Study.from_toml(path)
    assert study == Study(
        "train",
        "re78",
        (0, 60.5),
        {"age": Range(16, 60), "black": Binary(), "hisp": Binary()},
        missing=Drop(),
    )


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"outcom_range": [0, 1]}, "outcome_range"),
        ({"covariates": {"x": [0, 1]}}, "range = [0, 1]"),
        ({"covariates": ["x"]}, "[covariates]"),
        ({"covariates": {"x": {"range": [0, 1], "binary": True}}}, "binary"),
        ({"missing": {"y": "ignore"}}, "drop"),
        ({"missing": 5}, "drop"),
    ],
)
def test_documents_that_are_not_understood(change, hint):
    with pytest.raises(StudyError) as caught:
        Study.from_dict({"treatment": "t", "outcome": "y", "outcome_range": [0, 1]} | change)
    assert caught.value.code == "CV-S013"
    assert hint in caught.value.fix


def test_documents_without_roles():
    with pytest.raises(StudyError, match="CV-S013"):
        Study.from_dict({"treatment": "t", "outcome_range": [0, 1]})
    with pytest.raises(StudyError, match="CV-S013"):
        Study.from_dict([("treatment", "t")])
    with pytest.raises(StudyError, match="CV-S001"):
        Study.from_dict({"treatment": "t", "outcome": "y"})


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
    one = Study("t", "y", (0, 0.5), {"a": Range(0, 1), "b": Binary(True, False)}, treated=np.int64(1))
    two = Study("t", "y", ("0", "1/2"), {"b": Binary(), "a": Range(0.0, 1.0)}, treated=True)
    other = Study("t", "y", (0, 0.5), {"a": Range(0, 1), "b": Binary()}, missing={"a": Fill(0)})
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
    study = Study("t", "y", (0, 1), chance, score="chance")
    assert Study.from_dict(study.to_dict()) == study
    assert any("'chance'" in fact and "probability" in fact for fact in study.public_facts(Unit.OUTCOME))
    for domain in (Range(0, "0.9"), Range("0.1", 1), Binary()):
        refused("CV-S027", covariates={"chance": domain}, score="chance")
    refused("CV-S027", score="chance")
    refused("CV-S004", score=3)
    for more in (
        {"randomised": True},
        {"randomised": True, "treated_share": 0.5},
        {"arms": (0, 1, 2), "reference": 0},
        {"missing": {"chance": Fill("0.5")}},
    ):
        refused("CV-S027", covariates=chance, score="chance", **more)


def test_a_score_outside_its_range_is_refused_not_clamped():
    study = Study("t", "y", (0, 1), {"chance": Range("0.1", "0.9")}, score="chance")
    rows = {"t": [0, 1, 0, 1], "y": [0, 1, 1, 0]}
    assert Table.attach(rows | {"chance": [0.1, 0.9, 0.5, 0.5]}, study).score[0] == 0.1
    with pytest.raises(DataError) as caught:
        Table.attach(rows | {"chance": [0.1, 0.91, 0.5, 0.5]}, study)
    assert caught.value.code == "CV-D022"

"""Studies and tables of several arms."""

import pickle

import numpy as np
import pytest

from counterveil.data import Drop, Fill, Range, Study, Table
from counterveil.errors import DataError, StudyError

DOSES = {"arms": ("low", "placebo", "high"), "reference": "placebo"}


def study(**changes):
    return Study("arm", "y", (0, 1), **(DOSES | changes))


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


def test_documents_give_the_study_back(tmp_path):
    declared = study(covariates={"x": Range(0, 1)}, missing={"arm": Fill("low")}, randomised=True)
    path = tmp_path / "study.toml"
    path.write_text(declared.to_toml(), encoding="utf-8")
    for again in (
        Study.from_dict(declared.to_dict()),
        Study.from_toml(path),
        pickle.loads(pickle.dumps(declared)),
    ):
        assert again == declared
        assert again.fingerprint() == declared.fingerprint()
    assert 'reference = "placebo"' in declared.to_toml()
    assert "treated" not in declared.to_dict()


def test_a_table_holds_the_place_of_each_arm():
    table = Table.attach(rows(EACH_TWICE), study())
    assert table.arm.tolist() == [2, 0, 1, 2, 0, 1]
    assert table.arm.dtype == np.intp
    assert table.treated.tolist() == [True, False, True, True, False, True]
    assert not table.arm.flags.writeable
    assert "high" not in repr(table)


def test_numbers_serve_as_labels(tmp_path):
    doses = Study("dose", "y", (0, 1), arms=(0, 5, 10), reference=0)
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

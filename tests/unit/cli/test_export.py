"""`counterveil export`: what leaves through an output check is all of an account's answers, and nothing else."""

import csv
import hashlib
import json
from fractions import Fraction

import pytest
from tests.command_line import asked

import counterveil as cv
from counterveil.errors import CounterveilError, LedgerError

TRIAL = cv.datasets.lalonde()
PUBLIC = ["train", *TRIAL.study.covariates]


def export(*words):
    found = asked("export", *words)
    return found.exception.code if isinstance(found.exception, CounterveilError) else found.exit_code


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "ledger.db"
    with cv.open_ledger(place, create=True) as book:
        book.register("training", cv.Budget(3), access_policy=cv.drafting.AccessPolicy(public=PUBLIC))
    with cv.Session(TRIAL.frame, TRIAL.study, ledger=place) as session:
        session.ate(protects="outcome", method="difference_in_means", epsilon=1, request_id="=primary/1")
        session.groups(by="nodegree", protects="outcome", epsilon="0.5", request_id="subgroups")
    return place


def test_a_folder_for_the_viewer_holds_every_answer_with_its_checksum(ledger, tmp_path):
    assert export(ledger, tmp_path / "out") == 0
    outputs = json.loads((tmp_path / "out/outputs.json").read_text())
    assert outputs["version"].startswith("0.4.")
    assert [len(one["files"]) for one in outputs["results"].values()] == [3, 3, 2]
    for one in outputs["results"].values():
        assert one["status"] == "review"
        for file in one["files"]:
            noted = (tmp_path / "out/checksums" / f"{file['name']}.txt").read_text()
            assert noted == hashlib.sha256((tmp_path / "out" / file["name"]).read_bytes()).hexdigest()
    assert "'=primary/1," in (tmp_path / "out/releases.csv").read_text()


def test_an_entry_of_the_registry_says_what_all_answers_cost(ledger, tmp_path):
    yaml = pytest.importorskip("yaml")
    assert export(ledger, tmp_path / "out", "--format", "registry") == 0
    entry = yaml.safe_load((tmp_path / "out/registry.yaml").read_text())["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.5, "delta": 0.0}
    assert entry["dp_variant"]["variant_name"] == "Pure DP"
    assert "every person's treatment" in entry["dp_variant"]["unprotected_quantities"]


def test_a_summary_for_the_file_names_the_factor_and_each_request(ledger, tmp_path):
    assert export(ledger, tmp_path / "out", "--format", "dpia") == 0
    text = (tmp_path / "out/data-protection.md").read_text()
    assert "at most 4.49." in text
    assert "| subgroups |" in text


def test_a_used_folder_and_an_unknown_format_are_refused(ledger, tmp_path):
    (tmp_path / "a file").touch()
    assert export(ledger, tmp_path) == "CV-P021"
    assert export(ledger, tmp_path / "out", "--format", "pdf") == "CV-P030"
    assert not (tmp_path / "out").exists()


def test_a_policy_may_ask_for_rows():
    access_policy = cv.drafting.AccessPolicy(public=PUBLIC, min_rows=446)
    assert cv.drafting.AccessPolicy.from_dict(access_policy.to_dict()) == access_policy
    with cv.Session(TRIAL.frame, TRIAL.study, budget=cv.Budget(3), access_policy=access_policy) as session:
        with pytest.raises(LedgerError, match="CV-L044"):
            session.ate(protects="outcome", epsilon=1)
        assert session.account().requests == 0


def test_a_policy_may_ask_for_people_in_each_arm():
    """185 of 445 men were trained: counted at outcome level, planned by the design where treatments are private."""
    for least, share, level, code in (
        (185, None, "outcome", None),
        (186, None, "outcome", "CV-L044"),
        (10, None, "record", "CV-L070"),
        (178, Fraction(2, 5), "record", None),
        (179, Fraction(2, 5), "record", "CV-L044"),
    ):
        policy = cv.drafting.AccessPolicy(public=PUBLIC, min_arm=least)
        study = TRIAL.study._changed(treated_share=share)
        with cv.Session(TRIAL.frame, study, budget=cv.Budget(3), access_policy=policy) as session:
            method = "difference_in_means" if level == "outcome" else "trial"
            if code is None:
                session.ate(protects=level, method=method, epsilon=1)
                continue
            with pytest.raises(LedgerError, match=code):
                session.ate(protects=level, method=method, epsilon=1)
            assert session.account().requests == 0


def test_exported_numbers_are_rounded_outwards(tmp_path):
    policy = cv.drafting.AccessPolicy(public=PUBLIC, digits=2)
    assert cv.drafting.AccessPolicy.from_dict(policy.to_dict()) == policy
    place = tmp_path / "ledger.db"
    with cv.open_ledger(place, create=True) as book:
        book.register("training", cv.Budget(3), access_policy=policy)
    with cv.Session(TRIAL.frame, TRIAL.study, ledger=place) as session:
        exact = session.groups(by="nodegree", protects="outcome", epsilon="1.234", request_id="one").tidy()
    assert export(place, tmp_path / "out") == 0
    (table,) = (tmp_path / "out").glob("000-*")
    for row, shown in zip(exact, csv.DictReader(table.open()), strict=True):
        assert float(shown["conf_low"]) <= row["conf_low"] < row["conf_high"] <= float(shown["conf_high"])
        assert float(shown["std_error"]) >= row["std_error"]
        assert float(shown["p_value"]) >= row["p_value"]
        assert float(shown["epsilon"]) == row["epsilon"]
        assert float(shown["estimate"]) == float(f"{row['estimate']:.1e}")
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not any(str(row[name]) in written for row in exact for name in ("estimate", "conf_low"))
    for wrong in (0, 16, True, "2"):
        with pytest.raises(LedgerError, match="CV-L040"):
            cv.drafting.AccessPolicy(public=PUBLIC, digits=wrong)

"""From OMOP tables to answers: the same as from a frame of their rows, on the command line, and with a ledger."""

import duckdb
import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil_lab import omop

TOLD = """
target = 1
comparator = 2
outcome = { from = "condition", concepts = [4329847] }
washout = 365
prior_outcome = "ever"
both = "first"
time_at_risk = { start = 1, end = 365 }

[covariates]
age = { from = "age", range = [40, 80], cuts = [60] }
diabetes = { from = "condition", concepts = [201820], days = [-365, -1] }
"""
PLACES = ("--schema", "cdm", "--cohort-schema", "results")
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("omop")
    with duckdb.connect(folder / "hospital.duckdb") as connection:
        tables = omop.tables(1500, 1)
        omop.written(connection, {"cohort": tables.pop("cohort")}, "results")
        omop.written(connection, tables, "cdm")
    (folder / "effect.toml").write_text(TOLD)
    (folder / "curves.toml").write_text('kind = "survival"' + TOLD)
    return folder


@pytest.mark.parametrize(("name", "ask"), [("effect", cv.ate), ("curves", cv.survival)])
def test_answers_are_those_of_a_frame_of_the_rows(hospital, name, ask):
    found = cv.omop.cohort_study(hospital / "hospital.duckdb", hospital / f"{name}.toml", "cdm", "results")
    asked = {"protects": "record", "epsilon": 1, "method": "stratified"}
    one = ask(found.rows, found.study, **asked, noise=cv.SeededNoise(1))
    frame = found.rows.order("person_id DESC").arrow().read_all()
    two = ask(frame, found.study, **asked, noise=cv.SeededNoise(1))
    assert one.to_dict() == two.to_dict()
    facts = " ".join(one.guarantee.public)
    assert "belonging to them is public by declaration and not protected" in facts
    assert "the number of people, by 'person_id'" in facts


def run(*words):
    return RUNNER.invoke(app, list(words))


def test_from_tables_to_a_report_and_a_ledger(hospital, monkeypatch):
    monkeypatch.chdir(hospital)
    command = ("omop", "hospital.duckdb", *PLACES, "--specification")
    shown = run(*command, "effect.toml", "--study-out", "study.toml")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip() == (hospital / "study.toml").read_text().strip()
    policy = run("ledger", "access-policy", "--study", "study.toml", "--protects", "record")
    (hospital / "policy.toml").write_text(policy.stdout)
    run("ledger", "create", "book.db", "--dataset", "h", "--epsilon", "2", "--access-policy", "policy.toml")
    spent = ("--epsilon", "1", "--ledger", "book.db")
    answered = run(*command, "effect.toml", *spent, "--report", "effect.html")
    assert answered.exit_code == 0, answered.output
    assert "eligible_in_1_or_2_" in (hospital / "effect.html").read_text()
    # Another specification chooses other people, whom the access policy does not list.
    (hospital / "other.toml").write_text(TOLD.replace("washout = 365", "washout = 300"))
    refused = run(*command, "other.toml", *spent)
    assert refused.exception.code == "CV-L080"
    curves = run(*command, "curves.toml", "--epsilon", "1", "--report", "curves.md")
    assert curves.exit_code == 0, curves.output
    assert run(*command, "curves.toml", "--epsilon", "1", "--estimand", "ATT").exception.code == "CV-D900"

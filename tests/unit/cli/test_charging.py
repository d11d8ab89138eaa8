"""What commands say about ledgers, files and versions, and the command `check`."""

import json

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil.cli.requests import Charging
from counterveil.errors import ParameterError

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = cv.Study("arm", "pay", (0, 60), {"age": cv.Range(18, 90)}, randomised=True)
    (tmp_path / "study.toml").write_text(study.to_toml())
    lines = [f"{i % 2},{500 * (i % 90)},{20 + i % 50}" for i in range(400)]
    (tmp_path / "trial.csv").write_text("arm,pay,age\n" + "\n".join(lines))
    return tmp_path


def asked(*more):
    words = ["estimate", "trial.csv", "--study", "study.toml", "--protects", "outcome", "--epsilon", "1"]
    return RUNNER.invoke(app, [*words, *more])


def create(epsilon="3"):
    return RUNNER.invoke(
        app, ["ledger", "create", "book.db", "--dataset", "trial", "--epsilon", epsilon, "--note", "a board"]
    )


def spent():
    with cv.open_ledger("book.db") as ledger:
        return ledger.account("trial").spent.epsilon


@pytest.mark.parametrize("path", ["nowhere/report.html", "."])
def test_a_report_with_nowhere_to_go_costs_nothing(folder, path):
    create()
    found = asked("--ledger", "book.db", "--report", path)
    assert isinstance(found.exception, ParameterError)
    assert found.exception.code == "CV-P021"
    assert spent() == 0


def test_an_interrupt_while_a_report_is_written_loses_no_answer(folder, monkeypatch):
    create()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("counterveil.results.released.page", stop)
    named = ("--ledger", "book.db", "--request-id", "primary")
    first = asked(*named, "--report", "report.html")
    assert first.exit_code == 130
    assert "Effect of arm on pay" in first.output
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    again = asked(*named, "--report", "report.html")
    assert "stored answer, nothing spent" in " ".join(again.output.split())
    assert (folder / "report.html").exists()
    assert spent() == 1


def test_a_request_without_a_name_can_be_asked_for_again(folder):
    create()
    first = asked("--ledger", "book.db", "--json")
    name = " ".join(first.stderr.split()).split("request '")[1].split("'")[0]
    again = asked("--ledger", "book.db", "--json", "--request-id", name)
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert spent() == 1


def test_the_address_of_a_server_is_not_shown(folder):
    create()
    with cv.open_ledger("book.db") as ledger:
        charged = Charging("postgresql://steward:secret@db.example/privacy", ledger, "trial", "a")
        said = " ".join(charged.lines())
    assert "secret" not in said
    assert "on a server, data set 'trial'" in said


def test_a_missing_head_is_no_fault_of_an_entry(folder):
    create()
    found = RUNNER.invoke(app, ["ledger", "verify", "book.db", "--head", "00"])
    assert found.exit_code == 5
    assert "FIRST PROBLEM: " in found.output


def test_check_says_the_same_whatever_the_values_are(folder):
    wide = (folder / "study.toml").read_text().replace("[0, 60]", "[0, 60000]")
    (folder / "wide.toml").write_text(wide)
    said = {
        RUNNER.invoke(app, ["check", "trial.csv", "--study", name]).output
        for name in ("study.toml", "wide.toml")
    }
    assert len(said) == 1
    assert "400 rows" in said.pop()
    found = RUNNER.invoke(app, ["check", "trial.csv", "--study", "study.toml", "--json"])
    assert json.loads(found.output) == {"fits": True, "rows": 400, "findings": []}

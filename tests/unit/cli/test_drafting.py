"""The commands draft and check: options, questions, exit codes, files."""

import json

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app

BOOK = "name,kind,low,high,labels\narm,,,,0=usual|1=new\nage,range,18,90,\nsite,,,,A|B\nbmi,range,,,\ny,range,0,9,\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = "".join(f"{i},{i % 2},{20 + i % 50},{'AB'[i % 3 > 0]},{20 + i % 9},{i % 10}\n" for i in range(600))
    (tmp_path / "t.csv").write_text("id,arm,age,site,bmi,y\n" + rows)
    (tmp_path / "book.csv").write_text(BOOK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, typed=None, code=0):
    found = CliRunner().invoke(app, [*words], input=typed)
    if isinstance(found.exception, cv.CounterveilError):
        return found.exception.code
    assert found.exit_code == code, found.output
    return found.stdout


DRAFT = ("draft", "t.csv", "--codebook", "book.csv")
KNOWN = ("--treatment", "arm", "--outcome", "y", "--randomised", "--range", "bmi=10:60")


def test_a_draft_is_printed_or_written_once(folder):
    assert 'treatment = "arm"' in run(*DRAFT, *KNOWN)
    assert "3 covariates, 1 ignored, of 6 columns" in run(*DRAFT, *KNOWN, "--out", "study.toml")
    assert run(*DRAFT, *KNOWN, "--out", "study.toml") == "CV-P722"
    run(
        *DRAFT, *KNOWN, "--out", "study.toml", "--overwrite", "--where", "age >= 30", "--labels", "site=A,B,C"
    )
    study = cv.Study.from_toml("study.toml")
    assert study.covariates["site"].labels == ("A", "B", "C")
    assert "480 rows where age >= 30" in run("check", "t.csv", "--study", "study.toml")


def test_open_questions_are_asked_and_may_stay_open(folder):
    typed = "nobody\narm\n1\ny\n7\n0:9\nyes\n.\n"
    said = run("draft", "t.csv", "--ask", "--out", "study.toml", typed=typed)
    assert "open questions" in said
    written = (folder / "study.toml").read_text()
    assert 'treatment = "arm"' in written
    assert "treated = 1" in written
    assert "outcome_range = [0, 9]" in written
    assert "randomised = true" in written
    assert 'age = { range = "?" }' in written


def test_open_covariates_are_asked_until_a_point(folder):
    typed = "yes\n10:x\n60:10\n\n"
    known = ("--treatment", "arm", "--outcome", "y")
    run(*DRAFT, *known, "--ask", "--out", "study.toml", typed=typed)
    written = (folder / "study.toml").read_text()
    assert "randomised = true" in written
    assert 'bmi = { range = "?" }' in written
    typed = "1\n0:9\nno\n18:90\nA,B\n.\n"
    run("draft", "t.csv", *known, "--ask", "--out", "two.toml", typed=typed)
    written = (folder / "two.toml").read_text()
    assert "age = { range = [18, 90] }" in written
    assert 'site = { categories = ["A", "B"] }' in written
    assert 'bmi = { range = "?" }' in written


def test_check_lists_everything_and_returns_three(folder):
    run(*DRAFT, "--treatment", "arm", "--labels", "site=A,C", "--out", "study.toml")
    said = run("check", "t.csv", "--study", "study.toml", code=3)
    assert "The data do not fit the study: 5 findings" in said
    assert "outcome_range = [LOW, HIGH]" in said
    assert 'site = { categories = ["A", "C", "LABEL"] }' in said
    assert "B: 400 rows" in run("check", "t.csv", "--study", "study.toml", "--show-labels", code=3)
    facts = json.loads(run("check", "t.csv", "--study", "study.toml", "--json", code=3))
    assert (facts["fits"], facts["rows"], len(facts["findings"])) == (False, None, 6)


def test_what_is_bought_is_charged(folder):
    (folder / "charter.toml").write_text("public = []\n")
    run("ledger", "create", "l.db", "--dataset", "t", "--epsilon", "9", "--charter", "charter.toml")
    words = (*KNOWN[:5], "--buy", "--epsilon", "8", "--ledger", "l.db", "--out", "study.toml")
    said = run(*DRAFT, *words)
    assert "remaining: epsilon 1 of epsilon 9" in " ".join(said.split())
    assert cv.Study.from_toml("study.toml").bought["bmi"] == "range: epsilon 8"
    assert run(*DRAFT, *KNOWN[:5], "--buy") == "CV-P723"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--treatment", "amr"), "CV-P721"),
        (("--outcome-range", "7"), "CV-P721"),
        (("--range", "bmi"), "CV-P721"),
        (("--where", "age >"), "CV-S121"),
        (("--codebook", "t.csv"), "CV-S126"),
    ],
)
def test_what_is_refused(folder, words, code):
    assert run("draft", "t.csv", *words) == code

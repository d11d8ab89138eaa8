"""The questions of a draft: what does not fit is said and asked again, "no" is understood, nothing is dropped."""

import pytest
from tests.command_line import asked

import counterveil as cv

HEADER = "ptid,visit,arm,sex,edu,race,income,died\n"
# Up to the question about people.
FIRST = ["arm", "0, 1", "died", "binary"]
# After it.
LAST = ["no", "sex, edu, race, income", "edu=0:4, income=0:8", "sex=f|m, race=a|b"]


@pytest.fixture
def interview(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(HEADER, encoding="utf-8")

    def held(*answers):
        found = asked("draft", "rows.csv", "--ask", typed="".join(f"{line}\n" for line in answers))
        return found, cv.Study.from_toml("study.toml")

    return held


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("sex, edu, race, income", "'race' as the number of rows, and 1 more"),
        ("ptid, visit, many", "'many' as the number of rows"),
        ("ptid, visit", "no number of rows"),
        ("ptid, day, 3", "'day', which is no column"),
        ("yes", "'yes', which is no column"),
    ],
)
def test_an_answer_about_people_that_does_not_fit_is_said_and_asked_again(interview, typed, reason):
    said, study = interview(*FIRST, typed, "ptid, visit, 3", *LAST)
    assert reason in said.stderr
    assert said.stdout.count("Person ID") == 2
    assert (study.person.column, study.person.order, study.person.max_rows_per_person) == ("ptid", "visit", 3)
    assert list(study.covariates) == ["sex", "edu", "race", "income"]


@pytest.mark.parametrize("word", ["no", "none", "N"])
def test_no_is_an_answer(interview, word):
    said, study = interview(*FIRST, word, "no", word)
    assert "Not taken" not in said.output
    assert study.person is None
    assert study.randomised is False
    assert not study.covariates


def test_other_answers_that_do_not_fit_are_said(interview):
    said, study = interview(
        "rm",
        "arm",
        "0",
        "0, 1",
        "died",
        "5",
        "binary",
        "no",
        "perhaps",
        "no",
        "sex, edu, ras",
        LAST[1],
        "sex, edu",
        *LAST[2:],
    )
    for word in ("'rm'", "'0'", "'5'", "'perhaps'", "'ras'", "'sex, edu', which are names of columns"):
        assert f"Not taken: {word}" in said.stderr
    assert list(study.covariates) == ["sex", "edu", "race", "income"]

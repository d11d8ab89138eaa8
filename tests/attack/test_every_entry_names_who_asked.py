"""Finding B5, last sentence: a steward could not see who asked."""

import os
import pwd

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app

DATA = {"treated": [0, 1] * 20, "relapse": [0, 1, 1, 0] * 10}
STUDY = cv.Study("treated", "relapse", (0, 1), randomised=True)


def askers(place):
    with cv.open_ledger(place) as book:
        return [entry.facts["asked_by"] for entry in book.entries()]


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "book.db"
    with cv.open_ledger(path, create=True) as book:
        book.register("people", cv.Budget(3))
    return path


def test_the_user_of_the_operating_system_unless_a_name_is_given(place, monkeypatch):
    monkeypatch.setenv("USER", "somebody else")
    monkeypatch.setenv("LOGNAME", "somebody else")
    user = pwd.getpwuid(os.getuid()).pw_name
    cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=place)
    with cv.Session(DATA, STUDY, ledger=place, analyst="Ada") as session:
        session.ate(protects="outcome", epsilon=1)
    # The account; of each request its reservation, two releases and its answer.
    assert askers(place) == [user] * 5 + ["Ada"] * 4


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31mred", "x" * 201, " Ada"])
def test_a_name_is_printable_and_short(place, name):
    session = cv.Session(DATA, STUDY, ledger=place, analyst=name)
    with session, pytest.raises(cv.CounterveilError, match="CV-L011"):
        session.ate(protects="outcome", epsilon=1)


def test_the_command_line_passes_a_name_on(place, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    (tmp_path / "trial.csv").write_text("treated,relapse\n" + "0,0\n1,1\n0,1\n1,0\n" * 10)
    words = [
        "estimate",
        str(tmp_path / "trial.csv"),
        "--study",
        str(tmp_path / "study.toml"),
        "--epsilon",
        "1",
    ]
    found = CliRunner().invoke(
        app, [*words, "--protects", "outcome", "--ledger", str(place), "--analyst", "Ada"]
    )
    assert found.exit_code == 0, found.output
    assert askers(place)[1:] == ["Ada"] * 4

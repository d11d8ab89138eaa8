"""Messages are read on terminals and kept in logs: no password, no control character, no row of the data in them."""

import json
import sys

import pytest
from tests.thinned import thinned

import counterveil as cv
from counterveil.cli import app, main
from counterveil.errors import ParameterError

STUDY = cv.Study(treatment="arm", outcome="score", outcome_range=(0, 10), randomised=True)
SECRET = "hunter2-hunter2"


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["counterveil", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


@pytest.mark.parametrize(
    "kind", [ValueError, MemoryError, RecursionError, KeyError, UnicodeError, AssertionError]
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_error_that_nobody_foresaw_shows_neither_its_text_nor_a_traceback(monkeypatch, capsys, kind, more):
    def failing():
        cell = f"could not convert string to float: '{SECRET}'"
        raise kind(cell)

    monkeypatch.setattr("counterveil.cli.installation._works", failing)
    code, said = run(monkeypatch, capsys, "doctor", *more)
    assert code == 70
    assert SECRET not in said
    assert "Traceback" not in said
    assert "CV-X060" in said
    assert kind.__name__ in said
    if more:
        assert json.loads(said)["error"]["code"] == "CV-X060"


def test_a_traceback_never_shows_variables():
    assert app.app.pretty_exceptions_show_locals is False
    assert app.app.pretty_exceptions_enable is False


@pytest.mark.parametrize(
    "place",
    [
        f"postgresql://joe:{SECRET}@127.0.0.1:1/x",
        f"postgresql://joe:{SECRET}@127.0.0.1:port/x",
        f"postgres://joe:{SECRET}@[::1/x",
        f"postgresql://joe:a@{SECRET}@127.0.0.1:1/x",
        f"postgresql://127.0.0.1:1/x?user=joe&password={SECRET}",
    ],
)
@pytest.mark.parametrize("more", thinned([(), ("--json",)], ()))
def test_the_password_of_an_address_is_not_shown(monkeypatch, capsys, place, more):
    code, said = run(monkeypatch, capsys, "ledger", "show", place, *more)
    assert code == 5
    assert SECRET not in said
    for words in (("check", place, "--study", "none.toml"), ("pool", place, place), ("explain", place)):
        _, said = run(monkeypatch, capsys, *words, *([] if words[0] == "explain" else more))
        assert SECRET not in said


def test_a_message_cannot_steer_a_terminal():
    error = ParameterError(
        "CV-P004", "a\x1b[2Jb", expected="\x07", got="c\r\nd" + "x" * 100_000, fix="\u202e"
    )
    assert all(sign.isprintable() for line in error.text().split("\n") for sign in line)
    assert len(error.text()) < 5000


def test_a_column_in_the_place_of_a_number_is_not_printed():
    cells = [f"{SECRET}{place}" for place in range(40)]
    with pytest.raises(ParameterError) as refused:
        cv.Budget(cells)
    assert SECRET not in str(refused.value)
    with pytest.raises(cv.CounterveilError) as refused:
        cv.settings.Matching(neighbours=cells)
    assert SECRET not in str(refused.value)


def test_the_first_line_of_a_file_without_a_header_is_not_shown(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"{SECRET},7\n1,3\n0,4\n")
    with pytest.raises(cv.CounterveilError, match="CV-D001") as refused:
        cv.ate(path, STUDY, protects="outcome", epsilon=1)
    assert SECRET not in str(refused.value)


ADDRESS = f"postgresql://joe:{SECRET}@nowhere.invalid/x"


@pytest.mark.parametrize("before", ["", "age > 1 and ", "x" * 100 + " == "])
def test_a_condition_that_cannot_be_read_is_quoted_without_its_password(before):
    # The excerpt begins behind the user's name, where nothing says that a password follows.
    with pytest.raises(cv.CounterveilError, match="CV-S121") as refused:
        cv.Study("arm", "score", (0, 10), where=before + ADDRESS)
    assert "hunter2" not in str(refused.value)


def test_a_formula_that_cannot_be_read_is_quoted_without_its_password():
    from counterveil.results.regression import parse_formula

    with pytest.raises(cv.CounterveilError, match="CV-P783") as refused:
        parse_formula(f"score ~ {ADDRESS.replace('joe', '`joe')}", ("score", "arm"), {})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("padding", [0, 20, 60, 90, 100, 110, 160, 170, 180, 190])
def test_a_password_is_masked_before_a_text_is_cut(padding):
    from counterveil.accounting import AccessPolicy

    word = "x" * padding + ADDRESS
    for make in (
        lambda: AccessPolicy.from_dict({word: 1}),
        lambda: AccessPolicy(missing={"age": word}),
        lambda: AccessPolicy(protects=["outcome", word]),
        lambda: AccessPolicy(max_epsilon=word),
    ):
        with pytest.raises(cv.CounterveilError, match="CV-L040") as refused:
            make()
        assert "hunter2" not in str(refused.value)


def test_a_password_at_the_end_of_a_text_that_is_cut_is_not_shown():
    # Masked addresses are shorter: what stood far behind, cut in the middle of a password, comes into sight.
    many = f"postgresql://joe:{'p' * 400}@h/ " * 30
    for length in range(7_960, 8_000):
        error = ParameterError("CV-P004", "a", expected="b", got=many[:length] + ADDRESS, fix="c")
        assert "hunter2" not in str(error)

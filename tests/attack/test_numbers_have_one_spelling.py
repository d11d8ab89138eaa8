"""A number is read as a person wrote it or refused: Python's own readers take 1_0 for ten and digits of any script."""

import sys

import pytest

import counterveil as cv
from counterveil.bounded_reading import (
    UnreadableError,
    parse_literal,
    parse_toml,
    written_float,
    written_number,
)
from counterveil.cli import main
from counterveil.errors import CounterveilError

STUDY = cv.Study(treatment="arm", outcome="score", outcome_range=(0, 10), randomised=True)
PEOPLE = {"arm": [place % 2 for place in range(40)], "score": [place % 11 for place in range(40)]}
# Each of them is a number to Python's float or Fraction.
STRANGE = ["1_0", "1_0.5", "１", "٣", "1e１", "1/１", "1_0/3", "\u00a01", "0.９", "1__0"]
NO_NUMBERS = ["", " ", "1_", "_1", "0x10", "inf", "nan", "1/0", "1 0", "1,5", "--1", "1e", "e1", "1/3e2"]


@pytest.mark.parametrize("text", STRANGE + NO_NUMBERS)
def test_the_one_reader_refuses_other_spellings(text):
    for read in (written_number, written_float):
        with pytest.raises(UnreadableError):
            read(text)
    with pytest.raises(CounterveilError, match="CV-P003"):
        cv.Budget(text)
    with pytest.raises(CounterveilError, match="CV-S003"):
        cv.Range(0, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("+.5", 0.5), (" 1/4\t", 0.25), ("-2.50e-1", -0.25), ("1.", 1), ("1E2", 100)],
)
def test_the_one_reader_takes_what_people_write(text, value):
    assert written_float(text) == value
    assert written_number(text) == written_number(repr(value))


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("name", ["--epsilon", "--delta", "--level", "--trim"])
def test_options_of_the_command_line(tmp_path, monkeypatch, capsys, text, name):
    rows = zip(*PEOPLE.values(), strict=True)
    (tmp_path / "data.csv").write_text("arm,score\n" + "".join(f"{arm},{score}\n" for arm, score in rows))
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    words = ["--study", tmp_path / "study.toml", "--protects", "outcome"]
    words += ["--epsilon", "1"] if name != "--epsilon" else []
    given = ["counterveil", "estimate", tmp_path / "data.csv", *words, name, text]
    monkeypatch.setattr(sys, "argv", list(map(str, given)))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1_0", "１"])
def test_whole_numbers_of_the_command_line(tmp_path, monkeypatch, capsys, text):
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    words = ["--study", tmp_path / "study.toml", "--protects", "outcome", "--epsilon", "1", "--rows", text]
    monkeypatch.setattr(sys, "argv", ["counterveil", "plan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "is not a valid integer" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("text", ["1_0", "１", "[1, ２]", "{'a': 1_0}"])
def test_values_of_set(text):
    with pytest.raises(UnreadableError):
        parse_literal(text)


def test_toml_has_a_grammar_of_its_own():
    # There underscores separate digits, in whole numbers and in those with a point; a text is no number of TOML's.
    assert parse_toml("a = 1_0\nb = 1_0.5", exact=True) == {"a": 10, "b": "10.5"}
    with pytest.raises(CounterveilError, match="CV-S003"):
        cv.Study.from_dict(STUDY.to_dict() | {"outcome_range": ["0", "1_0"]})


@pytest.mark.parametrize("cell", STRANGE)
def test_cells(tmp_path, cell):
    outcomes = ["1"] * 39 + [cell]
    with pytest.raises(CounterveilError, match="CV-D002"):
        cv.ate(PEOPLE | {"score": outcomes}, STUDY, protects="outcome", epsilon=1)
    lines = [f"{arm},{score}" for arm, score in zip(PEOPLE["arm"], outcomes, strict=True)]
    (tmp_path / "data.csv").write_text("arm,score\n" + "\n".join(lines) + "\n")
    with pytest.raises(CounterveilError, match="CV-D002"):
        cv.ate(tmp_path / "data.csv", STUDY, protects="outcome", epsilon=1)

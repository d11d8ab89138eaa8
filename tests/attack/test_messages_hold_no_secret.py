"""Messages, prints and tables hold no password, no control character, no row of the data and no formula."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.thinned import ALL, thinned

import counterveil
import counterveil as cv
from counterveil.cli import main
from counterveil.cli.app import program
from counterveil.errors import ParameterError
from counterveil.report.airlock import csv_of

STUDY = cv.Study(treatment="arm", outcome=cv.Outcome("score", (0, 10)), assignment=cv.Trial())
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

    monkeypatch.setattr("counterveil.cli.installation._packages", failing)
    code, said = run(monkeypatch, capsys, "doctor", *more)
    assert code == 70
    assert SECRET not in said
    assert "Traceback" not in said
    assert "CV-X060" in said
    assert kind.__name__ in said
    if more:
        assert json.loads(said)["error"]["code"] == "CV-X060"


def groups(group):
    return [group, *(below for each in group.groups.values() for below in groups(each))]


def test_a_traceback_never_shows_variables():
    made = [each.app for each in groups(program)]
    assert len(made) == 5
    assert not any(each.pretty_exceptions_show_locals or each.pretty_exceptions_enable for each in made)


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
@pytest.mark.parametrize("address", [ADDRESS, ADDRESS.partition("//")[2], ADDRESS.partition("//j")[2]])
def test_a_condition_that_cannot_be_read_is_quoted_without_its_password(before, address):
    # The excerpt begins behind the user's name, where nothing says that a password follows.
    with pytest.raises(cv.CounterveilError, match="CV-S121") as refused:
        cv.Study("arm", cv.Outcome("score", (0, 10)), where=before + address)
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


FORMULA = "=cmd|' /C calc'!A0"
BEGINS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1"]


def people(treatment, label, rows=200):
    rng = np.random.default_rng(1)
    return {
        treatment: rng.integers(0, 2, rows),
        "score": rng.uniform(0, 10, rows),
        FORMULA: rng.choice([label, "plain"], rows),
    }


def study(treatment, label):
    covariates = {FORMULA: cv.Categories([label, "plain"])}
    return cv.Study(treatment, cv.Outcome("score", (0, 10)), covariates, assignment=cv.Trial())


def is_formula(cell):
    try:
        return cell[:1] in "=+-@\t\r\n＝＋－＠" and not np.isfinite(float(cell))
    except ValueError:
        return bool(cell)


@pytest.mark.parametrize("label", BEGINS)
def test_no_cell_of_an_exported_table_begins_like_a_formula(label):
    data, declared = people(label, label), study(label, label)
    noise = {"noise": cv.SeededNoise(1)}
    found = [
        cv.ate(data, declared, protects="outcome", epsilon=1, **noise),
        cv.groups(data, declared, by=[FORMULA], protects="record", epsilon=5, **noise),
        cv.overlap(data, declared, protects="record", epsilon=5, **noise),
        cv.moments(data, declared, protects="record", epsilon=20, delta="1e-6", **noise),
        cv.plan(declared, rows=40, protects="outcome", epsilon=1, draws=2),
    ]
    for result in found:
        rows = list(csv.reader(io.StringIO(csv_of(result.tidy()), newline="")))
        frame = result.effects
        cells = [
            *(cell for row in rows for cell in row),
            *map(str, frame.columns),
            *map(str, frame.to_numpy().ravel()),
        ]
        assert [cell for cell in cells if is_formula(cell)] == []


def test_names_stay_what_they_are_everywhere_else():
    data, declared = people("-1", FORMULA), study("-1", FORMULA)
    found = cv.groups(data, declared, by=[FORMULA], protects="record", epsilon=5, noise=cv.SeededNoise(1))
    # A number as text is no formula.
    assert {row["term"] for row in found.tidy()} == {"-1"}
    assert FORMULA in json.dumps(found.to_dict())
    assert f"'{FORMULA}" not in json.dumps(found.to_dict())


SCRIPT = Path(__file__).with_name("complaining_rows.py")


def printed(rows, *flags):
    # The same sources as this process, whichever they are.
    sources = str(Path(counterveil.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *flags, str(SCRIPT), rows],
        capture_output=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": sources},
    )
    return done.returncode, done.stdout, done.stderr


def test_output_does_not_depend_on_rows():
    wanted = (0, b"before\nafter\n", b"")
    assert not ALL or printed("benign", "-W", "default") == wanted
    for warnings in ("default", "error::RuntimeWarning"):
        assert printed("nasty", "-W", warnings) == wanted, warnings

"""What a report says of how to repeat an analysis asks the same question again."""

import shlex

import numpy as np
import pytest
from tests.command_line import said
from tools.reference.cli_page import described

import counterveil as cv
from counterveil.cli.app import program
from counterveil.questions.choices import _EVERY, COMMANDS, command_line


def people(rows=60):
    rng = np.random.default_rng(2)
    return {"t": np.arange(rows) % 2, "y": rng.random(rows), "age": rng.uniform(20, 80, rows)}


STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), {"age": cv.Range(20, 80)}, assignment=cv.Trial())


@pytest.fixture(scope="module")
def matched():
    asked = {"method": "matching", "settings": cv.settings.Matching(neighbours=2), "level": 0.9}
    return cv.ate(people(), STUDY, protects="outcome", epsilon="1/2", noise=cv.SeededNoise(71), **asked)


def test_the_program_asks_the_same(matched, tmp_path):
    known = matched.repeat.to_dict()
    (tmp_path / "study.toml").write_text(known["study"])
    frame = people()
    asked = {}

    class Library:
        Study, settings = cv.Study, cv.settings

        @staticmethod
        def ate(data, study, **arguments):
            asked.update(arguments, study=study)
            return cv.ate(frame, study, **arguments)

    text = known["python"].replace("import counterveil as cv\n", "")
    text = text.replace("study.toml", str(tmp_path / "study.toml"))
    text = text.replace("report.html", str(tmp_path / "report.html"))
    exec(text, {"cv": Library})
    assert asked.pop("study") == STUDY
    assert asked.pop("settings") == cv.settings.Matching(neighbours=2)
    assert asked == {"protects": "outcome", "epsilon": "1/2", "method": "matching", "level": 0.9}
    assert (tmp_path / "report.html").exists()
    # A seed would let anybody take the noise away.
    assert "71" not in str(known)
    assert "came from a seed" in known["remark"]


def test_the_command_asks_the_same(matched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = matched.repeat.to_dict()
    (tmp_path / "study.toml").write_text(known["study"])
    columns = people()
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "DATA").with_suffix(".csv").write_text("\n".join(lines))
    words = shlex.split(known["command"].replace("DATA", "DATA.csv"))
    said(*words[1:-1], "report.md")
    text = (tmp_path / "report.md").read_text()
    assert known["command"] in text
    assert matched.method in text


def test_every_option_exists_on_the_command_line():
    commands = dict(program.every())
    for command, options in COMMANDS.values():
        known = {each.name for each in described(commands[command])}
        for name in (*_EVERY, *options):
            assert f"--{'set' if name == 'settings' else name.replace('_', '-')}" in known, (command, name)


def test_groups_and_requests_are_words_of_a_command():
    given = {"epsilon": 1, "by": {"age": [40, 65], "a b": None}, "request_id": "main; rm"}
    words = shlex.split(command_line("groups", given))
    assert words[words.index("--by") + 1] == "age=40,65"
    assert "a b" in words
    assert words[words.index("--request-id") + 1] == "main; rm"
    assert "LEDGER" in words
    assert command_line("groups", {"by": ["a=b"]}) == ""
    assert command_line("groups", {"settings": object()}) == ""

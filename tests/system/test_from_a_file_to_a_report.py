"""The five commands of the guide, from a CSV file of fifty columns and its codebook to a report."""

import re
import shlex
from pathlib import Path

from tests import command_line
from tests.system import fifty_columns

GUIDE = Path(__file__).parents[2] / "docs/how-to/from-a-file-to-a-study.md"


def commands():
    block = re.search(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return [shlex.split(line) for line in block[1].splitlines()]


def test_five_commands_of_the_guide(tmp_path, monkeypatch):
    fifty_columns.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = []
    for words in commands():
        assert words[0] == "counterveil"
        said.append(command_line.said(*words[1:]))
    draft, check, plan, _, estimate = said
    assert "44 covariates, 4 unused, of 50 columns" in draft
    assert "open questions" not in draft
    assert "The data fit the study" in check
    assert "half-width" in plan
    assert "Effect of arm on relapse" in estimate
    assert "remaining: epsilon 2" in " ".join(estimate.split())
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "relapse" in report
    study = (tmp_path / "study.toml").read_text(encoding="utf-8")
    assert "No row was read." in study
    assert '"?"' in study.splitlines()[1]
    assert '"?"' not in study.split("\n", 2)[2]

"""The commands `moments`, `regress` and `compliance`: from rows to a file, and from the file to regressions."""

import csv
import json

import pytest
from tests.unit.questions.test_moments import STUDY, people
from typer.testing import CliRunner

from counterveil.cli.app import app
from counterveil.errors import ParameterError

RUN = CliRunner()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moments")
    data, declared, out = folder / "d.csv", folder / "s.toml", folder / "m.json"
    columns = people(2000)
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    declared.write_text(STUDY.to_toml())
    words = ["moments", str(data), "--study", str(declared), "--epsilon", "4", "--delta", "1e-6"]
    words += ["--outcome", "dose", "--term", "t:age", "--out", str(out)]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Second moments of 8 columns" in done.output
    return out


def test_regress_prints_a_table_and_json(saved):
    done = RUN.invoke(app, ["regress", str(saved), "y ~ t*age + before"])
    assert done.exit_code == 0, done.output
    assert "OLS Regression Results" in done.output
    facts = json.loads(
        RUN.invoke(app, ["regress", str(saved), "y ~ [dose ~ t]", "--level", "0.9", "--json"]).output
    )
    assert facts["method"] == "2SLS"
    assert facts["level"] == 0.9
    assert [one["name"] for one in facts["coefficients"]] == ["Intercept", "dose"]


def test_compliance_prints_three_effects(saved):
    done = RUN.invoke(app, ["compliance", str(saved), "--received", "dose", "--control", "before"])
    assert done.exit_code == 0, done.output
    for name in ("intention to treat", "take-up", "complier effect"):
        assert name in done.output


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("[1, 2]")
    done = RUN.invoke(app, ["regress", str(path), "y ~ t"])
    assert isinstance(done.exception, ParameterError)
    assert done.exception.code == "CV-P787"

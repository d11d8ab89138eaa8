"""The commands `cate` and `effect`."""

import csv
import json

import pytest
from typer.testing import CliRunner

from counterveil.cli.app import app
from counterveil.datasets import dataset_1

RUNNER = CliRunner()


@pytest.fixture
def files(tmp_path):
    data = dataset_1(1500, 1)
    with (tmp_path / "data.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(data.frame)
        writer.writerows(zip(*data.frame.values(), strict=True))
    (tmp_path / "study.toml").write_text(data.study.to_toml())
    (tmp_path / "rows.csv").write_text("x1,x2\n0.2,0.5\n0.9,0.5\n")
    return tmp_path


def test_a_function_is_written_and_read_off(files):
    model = files / "model.json"
    words = ["cate", str(files / "data.csv"), "--study", str(files / "study.toml"), "--epsilon", "2"]
    words += ["--method", "t_learner"]
    found = RUNNER.invoke(app, [*words, "--out", str(model)])
    assert found.exit_code == 0, found.output
    assert "Guarantee:" in found.output
    asked = RUNNER.invoke(app, ["effect", str(model), str(files / "rows.csv")])
    assert asked.output.splitlines()[0] == "effect,low,high"
    assert len(asked.output.splitlines()) == 3
    wide = RUNNER.invoke(app, ["effect", str(model), str(files / "rows.csv"), "--band", "--json"])
    facts = json.loads(wide.output)
    assert facts["level"] == 0.95
    low = float(asked.output.splitlines()[1].split(",")[1])
    assert facts["effects"][0]["low"] <= low + 1e-3
    assert json.loads(model.read_text())["spent"] == {"epsilon": "2", "delta": "1/1000000"}


def test_json_holds_the_function(files):
    words = [
        "cate",
        str(files / "data.csv"),
        "--study",
        str(files / "study.toml"),
        "--epsilon",
        "1/2",
        "--method",
        "t_learner",
        "--json",
    ]
    facts = json.loads(RUNNER.invoke(app, words).output)
    assert facts["kind"] == "CateModel"
    assert len(facts["weights"]) > 1

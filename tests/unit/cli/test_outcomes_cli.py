"""`counterveil outcomes` and `counterveil estimate --measure`: answered, read back, refused."""

import json

import pytest
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = cv.Study("arm", outcomes={"cured": (0, 1), "days": (0, 9)}, randomised=True)
    (tmp_path / "both.toml").write_text(both.to_toml())
    one = cv.Study("arm", "cured", (0, 1), randomised=True)
    (tmp_path / "one.toml").write_text(one.to_toml())
    lines = [f"{i % 2},{int(i % 3 > i % 2)},{i % 9}" for i in range(300)]
    (tmp_path / "trial.csv").write_text("arm,cured,days\n" + "\n".join(lines))
    return tmp_path


def asked(command, study, *more):
    words = [command, "trial.csv", "--study", study, "--protects", "outcome", "--epsilon", "1"]
    return RUNNER.invoke(app, [*words, *more])


def test_several_outcomes_are_answered_and_read_back(folder):
    found = asked("outcomes", "both.toml", "--importance", "cured=2", "--json")
    assert found.exit_code == 0, found.output
    facts = json.loads(found.stdout)
    assert [one["name"] for one in facts["effects"]] == ["cured", "days"]
    assert cv.results.OutcomesResult.from_dict(facts).primary.name == "cured"
    refused = asked("outcomes", "both.toml", "--importance", "hours=2")
    assert refused.exit_code != 0
    assert "CV-P688" in str(refused.exception) + refused.output


def test_measures_are_answered_and_withstand_confounders(folder):
    found = asked("estimate", "one.toml", "--measure", "ratio", "--json")
    assert found.exit_code == 0, found.output
    (folder / "answer.json").write_text(found.stdout)
    assert json.loads(found.stdout)["measure"] == "ratio"
    strength = RUNNER.invoke(app, ["sensitivity", "answer.json", "--json"])
    assert strength.exit_code == 0, strength.output
    assert json.loads(strength.stdout)["how"] == "means"

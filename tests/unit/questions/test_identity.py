"""What tells learners, functions and settings apart, in this process and in others."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterveil as cv
from counterveil.errors import ClaimError
from counterveil.results.question import described, settings_described

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
PROGRAM = """
import json
from counterveil.results.question import described
class Learner:
    def __init__(self, kept): self.kept = kept
    def __call__(self, x, t, y): return float("a" in {"a", "b", "c"})
print(json.dumps([described(Learner({"x", "y", "z"}), "id"), described(lambda x: x + 1, "id")]))
"""


def add(number, other=1):
    return number + other


def pipeline(alpha):
    return make_pipeline(StandardScaler(), Ridge(alpha=alpha))


def fitted(seed):
    return RandomForestRegressor(n_estimators=2, random_state=seed).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (lambda alpha: Ridge(alpha=alpha), 1.0, 2.0),
        (pipeline, 1.0, 2.0),
        (fitted, 1, 2),
        (lambda kept: partial(add, other=kept), 1, 2),
        (lambda kept: partial(kept), add, pipeline),
        (lambda kept: np.array(kept, dtype=object), [1, "a"], [1, "b"]),
        (lambda kept: np.array(kept), [1, 2], [2, 1]),
        (lambda kept: kept, np.mean, np.median),
        (lambda kept: kept, np.add, np.subtract),
        (lambda kept: {1: kept}, "a", "b"),
        (lambda kept: cv.settings.ModelPair(Ridge(), LogisticRegression(C=kept)), 1.0, 2.0),
    ],
)
def test_like_is_like_and_unlike_is_not(make, first, second):
    assert described(make(first), "id") == described(make(first), "id")
    assert described(make(first), "id") != described(make(second), "id")


def test_plain_settings_stay_readable_and_are_json():
    facts = settings_described(cv.settings.Folds(learner="ols", folds=5, bound=Fraction(1, 3)), "id")
    assert facts == {"learner": "ols", "folds": 5, "bound": "1/3"}
    assert described((1, np.float64(0.5), float("inf"), {"a": None})) == [1, 0.5, "inf", {"a": None}]
    assert settings_described(None, "id") is None
    json.dumps(settings_described(cv.settings.Bins(by={"age": (40, 65)}), "id"), allow_nan=False)


def test_a_name_is_the_same_in_every_process(capsys):
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    there = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
    )
    exec(PROGRAM, {"__name__": "__main__"})
    assert there.stdout == capsys.readouterr().out != ""


def test_what_cannot_be_taken_apart_is_named_only_without_a_request_id():
    held = {"generator": (number for number in range(3))}["generator"]
    assert described(held)["sha256"] == "not identified"
    with pytest.raises(ClaimError, match="CV-C010"):
        described(held, "id")
    deep = []
    for _ in range(200):
        deep = {0: deep}
    with pytest.raises(ClaimError, match="CV-C010"):
        described(deep, "id")

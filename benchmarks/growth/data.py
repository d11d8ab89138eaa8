"""The people that every question is asked about: 20 uniform covariates, simulated, the same in every process."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from tools.loose_study import study_of

import counterveil as cv
from counterveil.datasets import synth

from .questions import STRATA, Asked

COVARIATES = 20
SEED = 1
# People whom a released function is made from, and how many it is asked about.
_MODEL_ROWS, _QUERIES = 20_000, 50

Frame = dict[str, np.ndarray]


def people(kind: str, rows: int) -> tuple[Frame, cv.Study]:
    """Return a frame of contiguous columns and its study, for one of the kinds of `Asked`."""
    made = synth(seed=SEED, n=rows, covariates=COVARIATES)
    frame = {name: np.ascontiguousarray(column) for name, column in made.frame.items()}
    covariates = {name: cv.Range(0, 1) for name in made.study.covariates}
    covariates |= {name: cv.Range(0, 1).cut(0.25, 0.5, 0.75) for name in STRATA}
    words: dict[str, Any] = {"outcome_range": (0, 5), "covariates": covariates}
    if kind == "strata":
        words["covariates"] = {name: covariates[name] for name in STRATA}
    if kind in ("cohort", "strata"):
        return frame, study_of("treated", "y", **words, control=0, randomised=False)
    drawn = np.random.default_rng([SEED, rows])
    if kind == "trial":
        frame["treated"] = drawn.integers(0, 2, rows)
        return frame, study_of(
            "treated", "y", **words, control=0, randomised=True, treated_share=Fraction(1, 2)
        )
    if kind == "periods":
        # Four measurements of everyone, the last one after treatment.
        names = ("before1", "before2", "before3")
        frame |= {name: np.clip(frame["y"] + drawn.normal(0, 0.5, rows), 0, 5) for name in names}
        return frame, study_of("treated", "y", **words, control=0, before=names)
    if kind == "times":
        # Time to an event, and when people were lost from sight; strata by two of the covariates.
        event, lost = drawn.exponential(2 + frame["y"]), drawn.exponential(10, rows)
        frame |= {"time": np.minimum(event, lost), "died": (event <= lost).astype(np.int64)}
        strata = {name: covariates[name] for name in STRATA[:2]}
        return frame, cv.Study(
            cv.Treatment("treated", control=0),
            cv.TimeToEvent("time", "died", horizon=5),
            covariates=strata,
        )
    if kind == "outcomes":
        # Five outcomes of everyone, two of them 0 or 1.
        frame["treated"] = drawn.integers(0, 2, rows)
        ranges = {"y": (0, 5), "y1": (0, 5), "y2": (0, 5), "b1": (0, 1), "b2": (0, 1)}
        frame |= {name: np.clip(frame["y"] + drawn.normal(0, 0.5, rows), 0, 5) for name in ("y1", "y2")}
        frame |= {name: (drawn.random(rows) < frame["y"] / 5).astype(np.int64) for name in ("b1", "b2")}
        return frame, cv.Study(
            cv.Treatment("treated", control=0),
            outcome=cv.Outcomes(ranges),
            covariates=covariates,
            assignment=cv.Trial(),
        )
    frame["treated"] = np.where(drawn.random(rows) < 0.3, 2, frame["treated"])
    return frame, study_of("treated", "y", **words, arms=(0, 1, 2), reference=0, randomised=True)


def arguments(asked: Asked) -> dict[str, Any]:
    """Return the arguments of a question, with those that have to be made."""
    found = dict(asked.arguments)
    if "queries" in asked.made:
        found["queries"] = np.random.default_rng(SEED).uniform(size=(_QUERIES, COVARIATES))
    if {"model", "policy"} & set(asked.made):
        frame, study = people("cohort", _MODEL_ROWS)
        model = cv.cate(frame, study, protects="record", epsilon=4, delta=1e-6, noise=cv.SeededNoise(SEED))
        found |= {"model": model} if "model" in asked.made else {"policy": cv.Policy.from_model(model)}
    return found

"""A real example: training and earnings of 1974, 1975 and 1978, beside a trial of the same training."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
from tools.loose_study import study_of

import counterveil as cv
from experiments.runner import Row, Table

_KNOWN = {
    "age": cv.Range(16, 60),
    "education": cv.Range(0, 18),
    "black": cv.Binary(),
    "hispanic": cv.Binary(),
    "married": cv.Binary(),
    "nodegree": cv.Binary(),
}
_EARNINGS = ("re74", "re75", "re78")


def _read(name: str) -> pd.DataFrame:
    with gzip.open(Path(os.environ["COUNTERVEIL_DATA"]) / "lalonde" / name) as file:
        frame = pd.read_csv(file)
    frame[list(_EARNINGS)] /= 1000
    return frame


_PLAIN = {"treatment": "treat", "outcome": "re78", "outcome_range": (0, 60), "control": 0}
_CHANGE = _PLAIN | {"before": "re75", "change_range": (-30, 30)}
# People, declarations and method: the trial, and its treated beside a comparison group by changes.
ASKED = (
    ("trial", _PLAIN | {"randomised": True}, "difference_in_means"),
    ("trial", _CHANGE | {"randomised": True}, "difference_in_means"),
    ("treated and PSID", _PLAIN, "difference_in_means"),
    ("treated and PSID", _CHANGE, "difference_in_means"),
    ("treated and PSID", _CHANGE | {"covariates": _KNOWN}, "weighting"),
)


def _people(who: str) -> pd.DataFrame:
    trial = _read("nsw_dw.csv.gz")
    if who == "trial":
        return trial
    return pd.concat([trial[trial["treat"] == 1], _read("psid_controls.csv.gz")])


def earnings(who: str, declared: dict[str, object], method: str, *, seeds: range) -> Row:
    """Return the effect on earnings in $1000 with one draw of noise, beside that without privacy."""
    study, frame = study_of(**declared), _people(who)
    found, exact = (
        cv.ate(
            frame,
            study,
            protects="outcome",
            epsilon=epsilon,
            method=method,
            estimand="ATT",
            noise=cv.SeededNoise(seeds.start),
        )
        for epsilon in (2, 1e6)
    )
    low, high = found.interval()
    return [who, study.outcome_name, method, found.estimate, f"[{low:.2f}, {high:.2f}]", exact.estimate]


def by_year(*, seeds: range) -> list[Row]:
    """Return the effects by year: what there is in 1974, before training, speaks against parallel trends."""
    study = cv.Study(
        cv.Treatment("treat", control=0),
        cv.Change("re78", (0, 60), before=("re74", "re75"), change_range=(-30, 30)),
        _KNOWN,
    )
    noise = cv.SeededNoise(seeds.start)
    found = cv.event_study(_people("treated and PSID"), study, protects="outcome", epsilon=4, noise=noise)
    rows: list[Row] = []
    for effect in found.table:
        low, high = effect.interval(simultaneous=True)
        rows.append([effect.name, effect.estimate, f"[{low:.2f}, {high:.2f}]", effect.p_value])
    p = found.pre_trend_p_value
    return [*rows, ["no difference before training", "", "", np.nan if p is None else p]]


REAL = {
    "real": Table(
        columns="people | outcome | method | estimate :.2f | 95 % interval | without privacy :.2f",
        cells=ASKED,
        row=earnings,
        draws=1,
        first_seed=1,
    ),
    "years": Table(
        columns="year | effect since re75 :.2f | 95 % for all | p :.3f",
        cells=[()],
        row=by_year,
        draws=1,
        first_seed=1,
    ),
}

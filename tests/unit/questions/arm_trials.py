"""Made-up trials of three arms, their study, and how they are asked about."""

import numpy as np
from tools.loose_study import study_of

import counterveil as cv

LABELS = ("placebo", "low", "high")
GAINS = np.array([0.0, 5.0, 9.0])
METHODS = ("difference_in_means", "weighting", "matching")


def trial(n=3000, seed=0, confounded=False):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.integers(0, 2, n)
    # By lot with equal arms; or drawn with chances that the covariates pull on.
    arm = rng.permutation(n) % 3
    if confounded:
        chance = np.exp(np.column_stack([np.zeros(n), 0.8 * x, 0.5 * z - 0.5 * x])).cumsum(axis=1)
        arm = (rng.random(n)[:, None] > chance / chance[:, -1:]).sum(axis=1)
    y = 45 + 6 * x + 3 * z + GAINS[arm] + rng.normal(0, 6, n)
    return {"arm": np.array(LABELS)[arm], "x": x, "z": z, "y": y}


def study(**extra):
    declared = {
        "covariates": {"x": cv.Range(-4, 4), "z": cv.Binary()},
        "arms": LABELS,
        "reference": "placebo",
        "randomised": True,
    }
    return study_of(treatment="arm", outcome="y", outcome_range=(0, 100), **(declared | extra))


def ask(data=None, declared=None, *, seed=3, **arguments):
    data, declared = trial() if data is None else data, study() if declared is None else declared
    arguments = {"protects": "outcome", "epsilon": 1} | arguments
    return cv.arms(data, declared, noise=cv.SeededNoise(seed), **arguments)

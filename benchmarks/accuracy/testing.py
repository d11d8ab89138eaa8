"""How often tests of no effect reject in a trial with a yes-or-no outcome, outcomes private: the null, then effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy.entries import EPSILONS
from counterveil_lab.reproduce.rivals.catalogue import TESTS
from counterveil_lab.reproduce.rivals.encoding import Budget, Records

PEOPLE, SHARE, LEVEL = 600, 0.3, 0.05
EFFECTS = (0.0, 0.1)


def trial(effect: float, seed: int) -> Records:
    """Return half of the people treated, and yes from 30% of the others."""
    rng = np.random.default_rng([seed, 17])
    treated = rng.permutation(PEOPLE) % 2 == 0
    yes = rng.random(PEOPLE) < SHARE + effect * treated
    return Records(np.zeros((PEOPLE, 0)), treated, yes.astype(np.float64), (), (0.0, 1.0), randomised=True)


def rejections(draws: int) -> list[dict[str, Any]]:
    """Return the share of p-values below 5% by test, epsilon and effect."""
    found = []
    for name, test in TESTS.items():
        for epsilon in EPSILONS:
            for effect in EFFECTS:
                values = [test(trial(effect, seed), Budget(epsilon, 0.0), seed) for seed in range(draws)]
                share = float(np.mean(np.array(values) < LEVEL))
                found.append(
                    {"test": name, "epsilon": epsilon, "effect": effect, "rejects": share, "draws": draws}
                )
    return found

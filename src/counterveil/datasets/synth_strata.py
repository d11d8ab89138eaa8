"""A simulated observational study with one discrete confounder: people of a level make a stratum."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from counterveil.data import Categories, Study
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.folder import out_of_range
from counterveil.datasets.synth import EFFECT

_FEWEST = 20


def synth_strata(seed: int = 0, n: int = 10_000, levels: int = 100, slope: float | None = None) -> Dataset:
    """Return n people at a level x of 0, 1/(levels-1), ..., 1 with outcome b x + 0.5 treated + e, in [0, 1].

    Treated with probability 1/(1 + exp(-a (2x - 1))); a is `slope`, or uniform on [-1, 1] where that is
    None; b is uniform on [0, 0.4] and e, drawn for each person, on [0, 0.1]. The column x holds the number
    of the level.
    """
    if not isinstance(n, int) or n < _FEWEST:
        raise out_of_range("n", f"an int of at least {_FEWEST}", n)
    if not isinstance(levels, int) or levels < 2:
        raise out_of_range("levels", "an int of at least 2", levels)
    generator = np.random.default_rng(seed)
    level = generator.integers(levels, size=n)
    x = level / (levels - 1)
    drawn, b = generator.uniform(-1.0, 1.0), generator.uniform(0.0, 0.4)
    a = drawn if slope is None else slope
    treated = generator.uniform(size=n) < expit(a * (2 * x - 1))
    y = b * x + EFFECT * treated + generator.uniform(0.0, 0.1, n)
    return Dataset(
        name=f"Synth on {levels} strata, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y, "x": level},
        study=Study("treated", "y", (0, 1), {"x": Categories(range(levels))}, control=0, randomised=False),
        source="simulated by this function, with the laws of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {levels} levels.",
    )

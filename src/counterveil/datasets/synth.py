"""A simulated observational study: treatment and outcome depend on the same covariates, the effect is known."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from counterveil.data import Range, Study
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.folder import out_of_range
from counterveil.privacy import Number

EFFECT = 0.5
_FEWEST = 20


def synth(
    seed: int = 0,
    n: int = 1000,
    covariates: int = 20,
    outcome_range: tuple[Number, Number] = (0, 5),
    outcome_seed: int | None = None,
) -> Dataset:
    """Return n people whose outcome is b.x + 0.5 treated + q, treated with probability 1/(1 + exp(-a.(2x - 1))).

    x is uniform on the unit cube, a on [-1, 1], b on [0, 0.4] and q, drawn for each person, on [0, 0.1]. With
    an `outcome_seed` the slopes b and the q are drawn again from it: covariates and treatments stay.
    """
    if not isinstance(n, int) or n < _FEWEST:
        raise out_of_range("n", f"an int of at least {_FEWEST}", n)
    if not isinstance(covariates, int) or covariates < 1:
        raise out_of_range("covariates", "an int of at least 1", covariates)
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(n, covariates))
    a, b = generator.uniform(-1.0, 1.0, covariates), generator.uniform(0.0, 0.4, covariates)
    treated = generator.uniform(size=n) < expit((2 * x - 1) @ a)
    if outcome_seed is not None:
        generator = np.random.default_rng([seed, outcome_seed])
        b = generator.uniform(0.0, 0.4, covariates)
    y = x @ b + EFFECT * treated + generator.uniform(0.0, 0.1, n)
    names = [f"x{place}" for place in range(1, covariates + 1)]
    frame = {"treated": treated.astype(np.int64), "y": y} | dict(zip(names, x.T, strict=True))
    return Dataset(
        name=f"Synth, seed {seed}",
        frame=frame,
        study=Study(
            "treated", "y", outcome_range, dict.fromkeys(names, Range(0, 1)), control=0, randomised=False
        ),
        source="simulated by this function, with the ranges of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {covariates} covariates. The default range of the outcome suits 20 covariates.",
    )

"""A simulated randomised trial whose effect is known."""

from __future__ import annotations

from typing import Literal

import numpy as np

from counterveil.data import Range, Study
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.folder import out_of_range

_FEWEST = 8


def simulated_trial(
    n: int,
    effect: float,
    outcome: Literal["binary", "continuous"] = "binary",
    share: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Return n people, each treated with probability `share`, whose average effect is `effect`.

    Outcomes lie in [0, 1]. A continuous outcome moves by exactly `effect` in every person; a binary
    one moves from probability (1 - effect) / 2 to (1 + effect) / 2. The covariate `x` in [0, 1]
    predicts the outcome and not the treatment.
    """
    _check(n, effect, outcome, share)
    generator = np.random.default_rng(seed)
    luck = generator.random(n)
    x = (luck + generator.random(n)) / 2
    treated = generator.random(n) < share
    while not 2 <= np.count_nonzero(treated) <= n - 2:
        treated = generator.random(n) < share
    if outcome == "binary":
        # A large x goes with a large outcome, as in the continuous case.
        y = (luck > (1 - effect * np.where(treated, 1, -1)) / 2).astype(np.float64)
    else:
        without = (1 - abs(effect)) * luck + max(-effect, 0.0)
        y = without + effect * treated
    return Dataset(
        name=f"simulated trial ({outcome})",
        frame={"treated": treated.astype(np.int64), "y": y, "x": x},
        study=Study(
            treatment="treated",
            outcome="y",
            outcome_range=(0, 1),
            covariates={"x": Range(0, 1)},
            control=0,
            randomised=True,
            treated_share=share,
        ),
        source="simulated by this function",
        licence="none needed",
        true_effect=float(effect),
        notes=f"n={n}, effect={effect}, share={share}, seed={seed}",
    )


def _check(n: int, effect: float, outcome: str, share: float) -> None:
    if not isinstance(n, int) or n < _FEWEST:
        raise out_of_range("n", f"an int of at least {_FEWEST}", n)
    if not -1 <= effect <= 1:
        raise out_of_range("effect", "a number in [-1, 1]", effect)
    if outcome not in ("binary", "continuous"):
        raise out_of_range("outcome", '"binary" or "continuous"', outcome)
    if not 0 < share < 1:
        raise out_of_range("share", "a number strictly between 0 and 1", share)

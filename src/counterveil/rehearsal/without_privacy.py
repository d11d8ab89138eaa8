"""The interval that the same made-up people would give without privacy, to compare with."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import ndtri

from counterveil.rehearsal.made_up import MadeUp


def half_width(people: MadeUp, level: float) -> float:
    """Return half the length of the least-squares interval of the effect, adjusted for all covariates.

    Standard errors allow for spreads that differ between people.
    """
    rows = len(people.outcome)
    design = np.column_stack([np.ones(rows), people.treated.astype(np.float64), people.columns])
    inverse = np.linalg.pinv(design.T @ design)
    residual = people.outcome - design @ (inverse @ (design.T @ people.outcome))
    lever = design @ inverse[1]
    loss = max(rows - design.shape[1], 1)
    variance = float(np.sum((lever * residual) ** 2)) * rows / loss
    return float(ndtri((1 + level) / 2)) * sqrt(variance)

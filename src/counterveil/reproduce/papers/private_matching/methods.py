"""The methods that the paper compares, its own and ours beside them: how each is asked, and how often."""

from __future__ import annotations

import numpy as np

from counterveil.reproduce.papers.private_matching.draws import (
    OURS,
    Floats,
    label_draws,
    our_draws,
    sample_draws,
)
from counterveil.reproduce.papers.private_matching.studies import study_named
from counterveil.settings import Matching, RecordMatching

LABEL, SAMPLE, ZERO, PLAIN = "PrivATE (label)", "PrivATE (sample)", "zero", "without privacy"
COMPARED = (LABEL, SAMPLE, *OURS, ZERO, PLAIN)
DRAWS, QUICK_DRAWS = 20, 4


def repetitions(method: str, data: str, epsilon: float, quick: bool) -> int:
    """Return how often a method is drawn for one point of Figure 2; none where it takes too long."""
    if method in (ZERO, PLAIN):
        return 1
    return QUICK_DRAWS if quick else DRAWS


def estimates(method: str, data: str, epsilon: float, neighbours: int, draws: int, seed: int) -> Floats:
    """Return draws of a method, in units of the outcome's range."""
    study = study_named(data)
    if method == LABEL:
        return label_draws(study, epsilon, Matching(neighbours=neighbours), draws, seed)[0]
    if method == SAMPLE:
        return sample_draws(study, epsilon, RecordMatching(neighbours=neighbours), draws, seed)
    if method == ZERO:
        return np.zeros(draws)
    if method == PLAIN:
        return np.full(draws, study.matched_with(neighbours))
    return our_draws(method, study, epsilon, neighbours, draws, seed)

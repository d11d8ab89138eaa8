"""The methods that the paper compares, its own and ours beside them: how each is asked, and how often."""

from __future__ import annotations

import numpy as np

from counterveil.reproduce.papers.private_matching.competitors import COMPETITORS, rival_draws
from counterveil.reproduce.papers.private_matching.draws import (
    OURS,
    Floats,
    label_draws,
    our_draws,
    sample_draws,
)
from counterveil.reproduce.papers.private_matching.studies import study_named
from counterveil.reproduce.rivals.catalogue import RIVALS
from counterveil.reproduce.rivals.environment import unavailable
from counterveil.settings import Matching, RecordMatching

LABEL, SAMPLE, ZERO, PLAIN = "PrivATE (label)", "PrivATE (sample)", "zero", "without privacy"
COMPARED = (LABEL, SAMPLE, *COMPETITORS, *OURS, ZERO, PLAIN)
DRAWS, QUICK_DRAWS = 10, 4
# Synthesis takes seconds to minutes: few draws, and AIM on the smallest study at one budget alone.
SYNTHESES, AIM_STUDY, AIM_EPSILON = 3, "LaLonde", 1.0


def repetitions(method: str, data: str, epsilon: float, quick: bool) -> int:
    """Return how often a method is drawn for one point of Figure 2; none where it takes too long."""
    if method in (ZERO, PLAIN):
        return 1
    if method == "AIM":
        affordable = data == AIM_STUDY and epsilon == AIM_EPSILON and not quick
        return int(affordable and unavailable(RIVALS[method]) is None)
    if method == "PrivSyn":
        return 1 if quick else SYNTHESES
    return QUICK_DRAWS if quick else DRAWS


def estimates(method: str, data: str, epsilon: float, neighbours: int, draws: int, seed: int) -> Floats:
    """Return draws of a method, in units of the outcome's range."""
    study = study_named(data)
    if method == LABEL:
        return label_draws(study, epsilon, Matching(neighbours=neighbours), draws, seed)[0]
    if method == SAMPLE:
        return sample_draws(study, epsilon, RecordMatching(neighbours=neighbours), draws, seed)[0]
    if method == ZERO:
        return np.zeros(draws)
    if method == PLAIN:
        return np.full(draws, study.matched_with(neighbours))
    if method in COMPETITORS:
        return rival_draws(method, data, epsilon, draws, seed)
    return our_draws(method, study, epsilon, neighbours, draws, seed)

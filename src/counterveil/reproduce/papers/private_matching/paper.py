"""The paper as a whole."""

from __future__ import annotations

from counterveil.reproduce.papers.private_matching.figures import FIGURES
from counterveil.reproduce.protocol import Paper

PAPER = Paper(
    "private-matching",
    "PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data (Yuan et al.)",
    FIGURES,
    (),
)

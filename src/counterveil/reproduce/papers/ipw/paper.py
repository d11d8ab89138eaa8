"""The paper as a whole."""

from __future__ import annotations

from counterveil.reproduce.papers.ipw.figures import FIGURES
from counterveil.reproduce.papers.ipw.tables import TABLES
from counterveil.reproduce.protocol import Paper

PAPER = Paper(
    "ipw",
    "Privacy-Preserving Causal Inference via Inverse Probability Weighting (Lee, Gresele, Park and Muandet)",
    (*FIGURES, *TABLES),
    (),
)

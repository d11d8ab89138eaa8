"""The paper as a whole."""

from __future__ import annotations

from counterveil_lab.reproduce.papers.private_matching.claims import CLAIMS
from counterveil_lab.reproduce.papers.private_matching.costs import BESIDE, TABLES
from counterveil_lab.reproduce.papers.private_matching.figures import FIGURES
from counterveil_lab.reproduce.papers.private_matching.remarks import remarks
from counterveil_lab.reproduce.protocol import Paper

PAPER = Paper(
    "private-matching",
    "PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data (Yuan et al.)",
    (*FIGURES, *TABLES, *BESIDE),
    CLAIMS,
    remarks,
)

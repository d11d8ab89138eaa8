"""The paper as a whole."""

from __future__ import annotations

from counterveil_lab.reproduce.papers.private_matching.claims_comparison import CLAIMS as COMPARISON
from counterveil_lab.reproduce.papers.private_matching.claims_costs import CLAIMS as COSTS
from counterveil_lab.reproduce.papers.private_matching.claims_settings import CLAIMS as SETTINGS
from counterveil_lab.reproduce.papers.private_matching.costs import BESIDE, TABLES
from counterveil_lab.reproduce.papers.private_matching.figures import FIGURES
from counterveil_lab.reproduce.papers.private_matching.remarks import remarks
from counterveil_lab.reproduce.protocol import Paper

PAPER = Paper(
    "private-matching",
    "PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data (Yuan et al.)",
    (*FIGURES, *TABLES, *BESIDE),
    (*COMPARISON, *SETTINGS, *COSTS),
    remarks,
)

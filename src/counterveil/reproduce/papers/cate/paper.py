"""The paper as the runner sees it."""

from counterveil.reproduce.papers.cate.claims import CLAIMS
from counterveil.reproduce.papers.cate.figures import FIGURES
from counterveil.reproduce.protocol import Paper

PAPER = Paper(
    "cate",
    "Differentially private learners for heterogeneous treatment effects (DP-CATE)",
    FIGURES,
    CLAIMS,
)

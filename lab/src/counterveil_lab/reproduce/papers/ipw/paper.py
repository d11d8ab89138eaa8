"""The paper as a whole."""

from __future__ import annotations

from counterveil_lab.reproduce.page import Paper
from counterveil_lab.reproduce.papers.ipw.claims import CLAIMS, CLEAR
from counterveil_lab.reproduce.papers.ipw.figures import FIGURES, TRIALS
from counterveil_lab.reproduce.papers.ipw.tables import PAPER_RUNS, RUNS, TABLES

REMARKS = f"""## Assumptions

- The paper gives no bounds. Rows have length one at most, by public bounds in Tables 2 and 3, by the longest row in \
Figures 1 and 2. Propensities are between 0.1 and 0.9; outcomes are in [-10, 20] for IHDP and [0, 60] thousand dollars \
for LaLonde. In Figure 2 the largest outcome is read off the rows.
- "published, before the last noise" protects the rows of the propensity model alone. "published, released" is all of \
Algorithm 1, whose guarantee fails because nothing bounds the noisy scores.
- A wrong sign is one other than that of the published weighting without noise. {TRIALS} trials in Figures 1 and 2 \
(standard error of a share 0.05), {RUNS} runs in Tables 2 and 3 (0.03; the paper {PAPER_RUNS}). IHDP has 25 files here.
- A fall in wrong signs is reproduced if it exceeds two standard errors, not reproduced if a fall of {CLEAR:g} is \
ruled out, and cannot be checked in between.
- "ours, hajek" and "ours, ht" are the variants of `method="ipw"`; in Figure 2 "ours, ipw" chooses between them, and \
"ours, auto" compares the arms where the budget supports no adjustment."""

PAPER = Paper(
    "ipw",
    "Privacy-Preserving Causal Inference via Inverse Probability Weighting (Lee, Gresele, Park and Muandet)",
    (*FIGURES, *TABLES),
    CLAIMS,
    lambda _: REMARKS,
)

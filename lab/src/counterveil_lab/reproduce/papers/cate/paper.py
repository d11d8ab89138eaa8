"""The paper as the runner sees it."""

from counterveil_lab.reproduce.page import Paper
from counterveil_lab.reproduce.papers.cate.claims import CLAIMS
from counterveil_lab.reproduce.papers.cate.figures import FIGURES
from counterveil_lab.reproduce.papers.cate.methods import DELTA, HARDLY_NOISY, STUDIES

_ASSUMPTIONS = f"""## Assumptions

- Every point is a mean over studies of 3,000 people, {STUDIES} in a full run. 2,700 are learnt from and 300 scored, \
with one release for each study and epsilon. The column `spread` tells how far errors of studies vary.
- delta is {DELTA}. "fitted" and "floor" are answers and errors without noise; for ours, which has no such form, at \
epsilon {HARDLY_NOISY:g}.
- The bandwidth of the kernel, the reading of lambda and the k of k-anonymisation are not printed: claims that they \
decide cannot be checked."""

PAPER = Paper(
    "cate",
    "Differentially private learners for heterogeneous treatment effects (DP-CATE)",
    FIGURES,
    CLAIMS,
    lambda _: _ASSUMPTIONS,
)

"""The paper as a whole, and what its page says beside its claims: assumptions, and how our methods do."""

from __future__ import annotations

import pandas as pd

from counterveil_lab.reproduce.page import Paper, Tables
from counterveil_lab.reproduce.papers.private_matching.claims import CLAIMS, ours_beside
from counterveil_lab.reproduce.papers.private_matching.figures import (
    BESIDE,
    FIGURES,
    LABEL_DRAWS,
    SAMPLE_DRAWS,
    TABLES,
)
from counterveil_lab.reproduce.papers.private_matching.methods import (
    AIM_EPSILON,
    AIM_STUDY,
    COMPARISON,
    DRAWS,
    LABEL,
    SAMPLE,
    SYNTHESES,
    geometric,
    wide,
)
from counterveil_lab.reproduce.rivals.apart import MODEL_MB, STEPS

_ASSUMPTIONS = f"""## Assumptions

- Studies: realisation 6 of IHDP, LaLonde's 445, setting 1 of ACIC 2016, Synth with 489 treated. The paper does not \
give its ranges; here the observed range, widened by 2% at each end, is public.
- Errors are |estimate - matching| / |matching|, as in the paper. Matching without privacy is itself off the truth (on \
ACIC by 71%), so a method may be far from it because it is nearer the truth. `to_truth` is the relative RMSE.
- `true_epsilon` is a lower bound on what the published noise loses. Where it exceeds epsilon, the claim is false.
- Tables IV and V: one thread, code loaded and records in memory before the first estimate; Table IV has the least \
time. Ours also checks columns, charges an account, draws exact noise and gives an interval; the others do none of this.
- Competitors have delta 1e-5, PrivATE and ours none. "ours, outcome" spends all of epsilon on the estimate, as the \
competitors do. The other two are what the library chooses, and spend a part on their intervals.
- Repetitions: {DRAWS} of each method in Figures 2 and 7, {SYNTHESES} of PrivSyn, one of AIM; {LABEL_DRAWS} at label \
level and {SAMPLE_DRAWS} at sample level elsewhere. The paper does not print its number.
- PrivSyn is a reduced implementation. AIM runs on {AIM_STUDY} at epsilon {AIM_EPSILON:g} alone, with {STEPS} steps \
and models of at most {MODEL_MB} MB: claims about its error, time and memory cannot be checked here."""
_PAIRS = (
    ("ours, outcome", LABEL),
    ("ours, outcome (auto)", LABEL),
    ("ours, record", SAMPLE),
    ("difference in means", LABEL),
)


def ratios(found: pd.DataFrame) -> list[tuple[str, str, float, int, int]]:
    """Return for each of our methods the ratio of its error to that of PrivATE, and how often it is smaller."""
    lines = []
    for ours, theirs in _PAIRS:
        both = found.dropna(subset=[ours, theirs])
        ratio = both[ours] / both[theirs]
        lines.append((ours, theirs, geometric(ratio), int((ratio < 1).sum()), len(ratio)))
    return lines


def remarks(tables: Tables) -> str:
    """Return the remarks in Markdown."""
    parts = [_ASSUMPTIONS]
    if COMPARISON in tables:
        parts.append("## Ours and PrivATE (geometric means)")
        for column, words in (("error", "to matching"), ("to_truth", "to the true effect")):
            lines = [
                f"- {ours}, errors {words}: {ratio:.2f} times those of {theirs}, smaller at {smaller} of {points} "
                "points."
                for ours, theirs, ratio, smaller, points in ratios(wide(tables[COMPARISON], column))
            ]
            parts.append("\n".join(lines))
    costs = [
        f"- {title}: {ours_beside(tables[name], unit, digits)}."
        for name, title, unit, digits in (("table-4", "Table IV", "s", 3), ("table-5", "Table V", "MB", 0))
        if name in tables
    ]
    if costs:
        parts += ["## Ours in Tables IV and V", "\n".join(costs)]
    return "\n\n".join(parts)


PAPER = Paper(
    "private-matching",
    "PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data (Yuan et al.)",
    (*FIGURES, *TABLES, *BESIDE),
    CLAIMS,
    remarks,
)

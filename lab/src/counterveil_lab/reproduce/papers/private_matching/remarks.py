"""What the page of the paper says beside its claims: assumptions, and how our methods do."""

from __future__ import annotations

import pandas as pd

from counterveil_lab.reproduce.papers.private_matching.claims import ours_beside
from counterveil_lab.reproduce.papers.private_matching.figures import LABEL_DRAWS, SAMPLE_DRAWS
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
from counterveil_lab.reproduce.protocol import Tables
from counterveil_lab.reproduce.rivals.apart import MODEL_MB, STEPS

_ASSUMPTIONS = f"""## Assumptions

- Studies: realisation 6 of IHDP, LaLonde's 445, setting 1 of ACIC 2016, Synth with 489 treated. The public range of \
outcomes is the observed one, widened by 2 % at each end; the paper does not say its own.
- Errors are |estimate - matching| / |matching|, as in the paper. Matching without privacy is itself off the true \
effect (on ACIC by 71 %), so that a method can be far from it because it is closer to the truth: `to_truth` in the \
tables is the root mean square error to the true effect, as a part of it; LaLonde has none.
- `true_epsilon` is what the published noise loses on that study, at least. Where it exceeds epsilon, the claim is \
false.
- Tables IV and V: before its first estimate, every process has loaded the code of all methods, and \
holds the records in the form that its method takes: arrays, or columns and a study. All methods are measured alike: \
CPU seconds of one thread, whatever else the machine does. Table IV has the least of the estimates that a second \
holds, three at least and fifty at most: the first one loads code, and others are disturbed. Ours keep between calls \
what follows from a study and public arguments alone. One of ours checks and reads all columns, opens an account and \
charges it, draws exact noise, and gives an interval and, where covariates are public, a Table 1; SmoothDPM, DPCI \
and PrivSyn are functions of arrays that do none of this, and SmoothDPM reads few columns. Megabytes are those of all \
code and data: much of what ours add is the code of the exact arithmetic that draws noise, which the others lack.
- Competitors have delta 1e-5, PrivATE and our methods none. "ours, outcome" stays close to matching and spends all \
of epsilon on the estimate, as the paper lets its competitors do; "ours, outcome (auto)" and "ours, record" are what \
the library chooses, and spend a part on their intervals. Records of these sizes often afford no adjustment: then \
"ours, record" is the comparison of arms, with an interval for a declared bound on confounding.
- Repetitions in a full run, whose number the paper does not print: {DRAWS} of each method in Figures 2 and 7, \
{SYNTHESES} of PrivSyn, one of AIM; {LABEL_DRAWS} at label level and {SAMPLE_DRAWS} at sample level in the other \
figures. Tables IV and V are measured once.
- PrivSyn is a reduced implementation after its paper. AIM runs on {AIM_STUDY} at epsilon {AIM_EPSILON:g} alone, with \
{STEPS} steps of a fit and models of at most {MODEL_MB} MB, which makes it faster and smaller than it is: claims about \
its error, time and memory cannot be checked here."""
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
        parts.append("## Ours beside PrivATE")
        for column, words in (("error", "to matching"), ("to_truth", "to the true effect")):
            lines = [
                f"- {ours}, errors {words}: {ratio:.2f} times those of {theirs} (geometric mean), "
                f"smaller at {smaller} of {points} points."
                for ours, theirs, ratio, smaller, points in ratios(wide(tables[COMPARISON], column))
            ]
            parts.append("\n".join(lines))
    costs = [
        f"- {title}: {ours_beside(tables[name], unit, digits)}."
        for name, title, unit, digits in (("table-4", "Table IV", "s", 3), ("table-5", "Table V", "MB", 0))
        if name in tables
    ]
    if costs:
        parts += ["## Ours beside Tables IV and V", "\n".join(costs)]
    return "\n\n".join(parts)

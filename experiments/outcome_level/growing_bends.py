"""What balancing more bends with more rows does: `python -m experiments.outcome_level.growing_bends [--rows N ...]`.

Weights are functions of public columns, so that bias, sampling error and noise follow without drawing outcomes. Prints,
for studies whose outcomes bend along the index that treatment follows, the root mean square over a few studies of the
bias in standard errors from sampling, without growth of the bends' share and with it, and the root mean square error
with growth beside that without, at epsilon 1. Studies are others than those that the growth was chosen on (seeds 100 to
302), but for "correlated", which has two. `--coverage N` prints instead how often intervals cover, over eight studies
with N draws of outcomes each. Changes constants of the library while it runs.
"""

from __future__ import annotations

import argparse
from math import sqrt

import numpy as np

from counterveil.estimators.linear import weighting_design
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.privacy import Unit
from counterveil.rows.public import PublicRows
from experiments.causal.designs import Design, bent, correlated
from experiments.causal.expected import figures as expected
from experiments.outcome_level.redrawn import EPSILONS, attached, question_of
from experiments.outcome_level.surfaces import BENDS, bent_kind

ROWS = (1000, 3000, 10_000, 30_000, 100_000)
STUDIES, FIRST = 3, 400
# Standard deviations of errors: of bent kinds, and of the designs of `experiments.causal`.
SD, OTHERS = 0.5, {"bent index": 0.7, "correlated": 0.3}
COVERED = 8
# Fewest and most bends, and how far their share grows: ten at one share, and as it is.
FORMS = {"without growth": ((4, 10), 1.0), "with growth": (None, None)}


def figures(design: Design, sd: float, epsilon: float = 1.0) -> tuple[float, float, float]:
    """Return bias, standard error from sampling and that of noise."""
    effect = weighted_effect(
        PublicRows(attached(design, 0), Unit.OUTCOME), question_of(epsilon, "weighting", "ATE")
    )
    order = np.argsort(~design.treated, kind="stable")
    means = np.where(design.treated, design.means[1], design.means[0])[order]
    bias = float(effect.coefficients @ means) - design.truth("ATE")
    low, high = map(float, design.study.outcome_range)
    # Laplace noise of the whole budget: the same for both but for the largest weight.
    noise = sqrt(2) * (high - low) * float(abs(effect.coefficients).max()) / epsilon
    return bias, sd * sqrt(float(effect.coefficients @ effect.coefficients)), noise


def made(kind: str, rows: int) -> list[tuple[Design, float]]:
    """Return studies of a kind, with the standard deviation of their errors."""
    if kind == "correlated":
        return [(correlated(rows, aligned), OTHERS[kind]) for aligned in (False, True)]
    seeds = range(FIRST, FIRST + STUDIES)
    if kind == "bent index":
        return [(bent(rows, seed), OTHERS[kind]) for seed in seeds]
    return [(bent_kind(kind, rows, seed), SD) for seed in seeds]


def line(kind: str, rows: int) -> str:
    """Return a line of the table."""
    usual = weighting_design._FEWEST_AND_MOST_COSINES, weighting_design._MOST_GROWTH
    found = []
    for counts, growth in FORMS.values():
        weighting_design._FEWEST_AND_MOST_COSINES = counts or usual[0]
        weighting_design._MOST_GROWTH = growth or usual[1]
        found.append(np.array([figures(design, sd) for design, sd in made(kind, rows)]))
    weighting_design._FEWEST_AND_MOST_COSINES, weighting_design._MOST_GROWTH = usual
    biases = (f"{sqrt(float(np.mean((one[:, 0] / one[:, 1]) ** 2))):.2f}" for one in found)
    before, now = (sqrt(float(np.mean((one**2).sum(axis=1)))) for one in found)
    return f"| {kind} | {rows:,} | {' | '.join(biases)} | {now / before:.2f} |"


def covered(kind: str, rows: int, draws: int) -> str:
    """Return a line with the mean and the least coverage over studies, for every epsilon."""
    studies = [bent_kind(kind, rows, seed) for seed in range(FIRST, FIRST + COVERED)]
    found = np.array([[one[0] for one in expected(study, "ATE", draws).values()] for study in studies])
    cells = (f"{mean:.3f} ({least:.2f})" for mean, least in zip(found.mean(0), found.min(0), strict=True))
    return f"| {kind} | {rows:,} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--coverage", type=int, metavar="DRAWS")
    chosen = parser.parse_args()
    if chosen.coverage:
        print("| outcome | rows | " + " | ".join(f"epsilon {one:g}" for one in EPSILONS) + " |")
        print("|---|---|" + "---|" * len(EPSILONS))
        for kind in BENDS:
            for rows in chosen.rows:
                print(covered(kind, rows, chosen.coverage), flush=True)
        return
    print(f"| outcome | rows | bias, {' | bias, '.join(FORMS)} | error beside that without |")
    print("|---|---|---|---|---|")
    for kind in (*BENDS, *OTHERS):
        for rows in chosen.rows:
            print(line(kind, rows), flush=True)


if __name__ == "__main__":
    main()

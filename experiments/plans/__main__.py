"""`python -m experiments.plans [--draws N] [--only NAME ...] [--questions | --methods]`: planned beside actual widths.

Tables are in Markdown. With `--questions`, those of `questions.py`: measures, several outcomes, survival, regressions,
looks, ratios and periods, by public summaries; with `--methods`, every method and level, by `methods.py`. Without:

Needs COUNTERVEIL_DATA. Covariates and treatments are those of the designs of `experiments.causal`, outcomes are drawn
anew. A planner knows the declarations alone, or public summaries (means, standard deviations, shares and correlations
of covariates; mean and standard deviation of outcomes; how far covariates explain outcomes and treatment), or a public
sample of 500 such people. Each cell is the planned half-width over the actual one.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from scipy.special import logit

import counterveil as cv
from counterveil.data import Range, Table
from counterveil.datasets import lalonde, nhefs, pension401k
from counterveil.errors import CounterveilError
from counterveil.questions.plan.people import PublicSample
from experiments.causal.designs import Design, births, correlated, varying, yes_or_no
from experiments.causal.real import acic, fitted, ihdp_file
from experiments.plans.calling import plan as planned_by_name
from experiments.plans.methods import print_methods
from experiments.plans.questions import compared

BUDGETS = {
    "outcome": (("0.5", "0"), ("1", "0"), ("4", "0")),
    "record": (("1", "1e-6"), ("4", "1e-6"), ("8", "1e-6")),
}
KNOWN = ("declarations", "summaries", "sample")
SAMPLE = 500
NEAR = 1.25
# Draws of outcomes that the planner's sample and summaries are made from, none of which is asked about.
EARLIER = 5000


def designs() -> list[Any]:
    """Return functions that make the designs."""
    return [
        lambda: ihdp_file(6),
        lambda: acic(1),
        lambda: acic(4),
        lambda: fitted(nhefs()),
        lambda: fitted(pension401k()),
        lambda: fitted(lalonde()),
        lambda: varying(0.3, 5000),
        lambda: correlated(10_000, aligned=False),
        births,
        lambda: yes_or_no(5000),
    ]


def actual(design: Design, level: str, budget: tuple[str, str], draws: int) -> float | None:
    """Return the mean half-width of what `auto` answers; None where it refuses."""
    halves = []
    for number in range(draws):
        frame = {**design.columns, design.study.outcome: design.outcomes(number)}
        try:
            found = cv.ate(
                frame,
                design.study,
                protects=level,
                epsilon=budget[0],
                delta=budget[1],
                noise=cv.SeededNoise(number),
            )
        except CounterveilError:
            return None
        low, high = found.untruncated_interval()
        halves.append((high - low) / 2)
    return float(np.mean(halves))


def known(design: Design, what: str) -> dict[str, Any]:
    """Return what a planner knows of a design, as arguments of `cv.plan`."""
    outcomes = design.outcomes(EARLIER)
    return known_of(design.study, {**design.columns, design.study.outcome: outcomes}, what)


def known_of(study: cv.Study, frame: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the same of people who are not asked about."""
    if what == "declarations":
        return {}
    y, table = np.asarray(frame[study.outcome], np.float64), Table.attach(frame, study)
    if what == "sample":
        rows = np.random.default_rng(7).choice(table.rows, min(SAMPLE, table.rows), replace=False)
        return {"sample": table.take(np.sort(rows))}
    covariates: dict[str, Any] = {}
    for name, domain in study.covariates.items():
        values = table.covariates[name]
        if isinstance(domain, Range):
            covariates[name] = (float(values.mean()), float(values.std()))
        else:
            shares = np.bincount(values.astype(int), minlength=len(domain.labels)) / table.rows
            covariates[name] = dict(zip(domain.labels, shares.tolist(), strict=True))
    fitted_to = PublicSample.of(table, study)
    # What a table of a regression says: by lines, in the covariates.
    lines, left = (
        np.column_stack([np.ones(table.rows), fitted_to.features]),
        y - fitted_to.effect * table.treated,
    )
    base = lines @ np.linalg.lstsq(lines, left, rcond=None)[0]
    columns = np.column_stack(list(table.covariates.values()))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num(np.corrcoef(columns.T)) if columns.shape[1] > 1 else np.ones((1, 1))
    np.fill_diagonal(correlation, 1.0)
    control = y[~table.treated]
    width = float(study.outcome_range[1] - study.outcome_range[0])
    found = {
        "covariates": covariates,
        "correlation": correlation.tolist(),
        "mean": float(control.mean()),
        # What is published is the standard deviation within arms; planners take none of zero.
        "sd": max(float(np.sqrt((control.var() + y[table.treated].var()) / 2)), 1e-9 * width),
        "share": float(table.treated.mean()),
        "effect": float(y[table.treated].mean() - control.mean()),
        "explained": float(np.clip(base.var() / max(y.var(), 1e-300), 0.0, 0.99)),
        "binary": fitted_to.binary,
    }
    if fitted_to.binary:
        # The share of the log-odds' variance, from the spread of fitted chances.
        chances = np.clip(base, 0.01, 0.99)
        spread = float(logit(chances).var())
        found["explained"] = spread / (spread + np.pi**2 / 3)
    if not study.randomised:
        found["confounding"] = float(min(fitted_to.lean.std(), 5.0))
    return found


def planned(
    design: Design, level: str, budget: tuple[str, str], draws: int, given: dict[str, Any]
) -> float | None:
    """Return the planned half-width, None where the plan says that it would be refused."""
    try:
        found = planned_by_name(
            design.study,
            rows=len(design.treated),
            protects=level,
            epsilon=budget[0],
            delta=budget[1],
            draws=draws,
            **given,
        )
    except CounterveilError:
        return None
    return found.answers[0].half_width


def print_questions(draws: int, only: list[str] | None) -> None:
    """Print the table of questions beside `ate`."""
    print("| question | protects | epsilon | actual | planned / actual |")
    print("|---|---|---|---|---|")
    ratios = []
    for name, protects, epsilon, width, half in compared(draws, only):
        ratios.append(1.0 if width == half else half / width)
        said = "no end" if np.isinf(width) else f"{width:.4g}"
        print(f"| {name} | {protects} | {epsilon} | {said} | {ratios[-1]:.2f} |", flush=True)
    near = np.mean([1 / NEAR <= ratio <= NEAR for ratio in ratios])
    print(f"\n{near:.0%} of {len(ratios)} cells within a factor of {NEAR}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.plans")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="designs whose names hold one of these")
    parser.add_argument("--questions", action="store_true", help="the table of questions beside `ate`")
    parser.add_argument("--methods", action="store_true", help="every method and level")
    parser.add_argument("--search", type=int, metavar="SEED", help="with --methods: designs drawn at random")
    parser.add_argument("--cells", type=int, default=24, help="how many of them")
    chosen = parser.parse_args()
    if chosen.methods:
        print_methods(
            lambda design, what: known_of(design.study, design.drawn(EARLIER), what),
            chosen.draws,
            chosen.only,
            chosen.search,
            chosen.cells,
        )
        return
    if chosen.questions:
        print_questions(chosen.draws, chosen.only)
        return
    print("| design | protects | epsilon | actual | " + " | ".join(KNOWN) + " |")
    print("|---|---|---|---|" + "---|" * len(KNOWN))
    ratios: dict[str, list[float]] = {what: [] for what in KNOWN}
    for make in designs():
        design = make()
        if chosen.only and not any(word.lower() in design.name.lower() for word in chosen.only):
            continue
        given = {what: known(design, what) for what in KNOWN}
        for level in design.levels:
            for budget in BUDGETS[level]:
                width = actual(design, level, budget, chosen.draws)
                cells = []
                for what in KNOWN:
                    guess = planned(design, level, budget, chosen.draws, given[what])
                    if width is None or guess is None:
                        # Both refuse: the plan told the truth; one alone: it did not.
                        cells.append("refused" if width is guess else "refused by one")
                        ratios[what] += [1.0] if width is guess else [np.inf]
                    else:
                        cells.append(f"{guess / width:.2f}")
                        ratios[what].append(guess / width)
                said = "refused" if width is None else f"{width:.4g}"
                print(f"| {design.name} | {level} | {budget[0]} | {said} | {' | '.join(cells)} |", flush=True)
        print(f"{design.name}: done", file=sys.stderr, flush=True)
    for what, found in ratios.items():
        near = np.mean([1 / NEAR <= ratio <= NEAR for ratio in found])
        print(f"\n{what}: {near:.0%} of {len(found)} cells within a factor of {NEAR}", end="")
    print()


if __name__ == "__main__":
    main()

"""Why weights are biased on ACIC 9, and leaves of trees: `python -m experiments.outcome_level.leaves --acic FOLDER`.

FOLDER has the files zymu_K.csv of the PyPI package causallib 0.10.0, which name the mean outcomes. Prints for every
setting the bias of several estimates, in standard errors from sampling of weights without leaves: those weights and
those with leaves, as they are at epsilon 4 and before noise; AIPW on lines, least squares in each arm on all balanced
features but leaves, and AIPW with boosted trees, these three without privacy and averaged over a few draws of outcomes.
Then how much of the mean outcomes of both arms those features explain, and the bias of the two weights that comes from
what they do not. `--tuning` prints instead, for several shares of the leaves, error and mean width of 95 % intervals
beside those without leaves (geometric means and largest), and how many cells cover less than 93 %, on ACIC 1 to 5 and
drawn studies 40 to 51. Needs COUNTERVEIL_DATA and scikit-learn. Changes constants of the library while it runs.
"""

from __future__ import annotations

import argparse
from math import exp, sqrt
from pathlib import Path

import numpy as np

from counterveil.data import Table
from counterveil.data.domains import to_steps
from counterveil.estimators.linear.weighting import weighted_effect, weighting_design
from counterveil.estimators.linear.weighting_design import features_of
from counterveil.privacy import Unit
from counterveil.rows.public import PublicRows
from counterveil.settings import Weighting, methods
from experiments.causal.designs import Design
from experiments.causal.plain import aipw
from experiments.causal.real import other_acic
from experiments.outcome_level.redrawn import Answers, attached, question_of
from experiments.outcome_level.surfaces import drawn

SHARES = (0.0, 0.15, 0.3, 0.6)
DRAWN = range(40, 52)
EPSILONS, ESTIMANDS = (1.0, 4.0), ("ATE", "ATT")
TUNED_ON = {f"ACIC {setting}" for setting in range(1, 6)}
FOLDS, LEAST_CHANCE = 5, 0.01
# Directions that vary by less than this part of the largest are left out of least squares.
SMALL = 1e-3
DEFAULTS = methods.BLOCKS["tree_leaves"]


def set_share(share: float) -> None:
    methods.BLOCKS["tree_leaves"] = share


def studies(folder: Path) -> list[Design]:
    """Return the studies that the share was chosen on."""
    return [
        *(design for design in other_acic(folder) if design.name in TUNED_ON),
        *(drawn(seed) for seed in DRAWN),
    ]


def private(design: Design, estimand: str, epsilon: float, draws: int) -> tuple[float, float, float]:
    """Return coverage, root mean square error and mean width."""
    table, truth = attached(design, 0), design.truth(estimand)
    answers = Answers(table, "weighting", epsilon, estimand)
    unit = float(table.outcome_unit)
    rows = [
        answers.of(to_steps(design.outcomes(draw), design.study.outcome_bounds), unit, truth)
        for draw in range(draws)
    ]
    covered, squares, width = np.mean(rows, axis=0)
    return float(covered), sqrt(squares), float(width)


def print_tuning(folder: Path, draws: int, shares: list[float]) -> None:
    """Print a line for every share and epsilon."""
    print(
        "| share | epsilon | error | largest | width | largest | cells below 93 % | least |\n|" + "---|" * 8
    )
    cells = [(design, estimand) for design in studies(folder) for estimand in ESTIMANDS]
    before = dict[float, np.ndarray]()
    for share in [0.0, *shares]:
        set_share(share)
        for epsilon in EPSILONS:
            found = np.array([private(design, estimand, epsilon, draws) for design, estimand in cells])
            ratios = found[:, 1:] / before.setdefault(epsilon, found[:, 1:])
            figures = [f"{exp(float(np.log(one).mean())):.3f} | {one.max():.2f}" for one in ratios.T]
            below = f"{int((found[:, 0] < 0.93).sum())} of {len(found)} | {found[:, 0].min():.2f}"
            print(f"| {share:g} | {epsilon:g} | {' | '.join(figures)} | {below} |", flush=True)


def weights(design: Design, estimand: str, share: float, epsilon: float = 4.0) -> np.ndarray:
    """Return the weights (n,) of weighting with this share of leaves, in the order of the design's rows."""
    set_share(share)
    found = weighted_effect(
        PublicRows(attached(design, 0), Unit.OUTCOME), question_of(epsilon, "weighting", estimand)
    ).coefficients
    ordered = np.empty_like(found)
    ordered[np.argsort(~design.treated, kind="stable")] = found
    set_share(DEFAULTS)
    return ordered


def balanced(table: Table) -> np.ndarray:
    """Return a constant and the features that weights balance, but for leaves."""
    settings = Weighting(features=tuple(name for name in Weighting().balanced if name != "tree_leaves"))
    rows = PublicRows(table, Unit.OUTCOME)
    features, *_ = features_of(rows, weighting_design(rows, settings), settings)
    return np.column_stack([np.ones(table.rows), features.astype(np.float64)])


def explained(columns: np.ndarray, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return what a line in the columns, fitted to these rows, says of every row."""
    return np.asarray(columns @ np.linalg.lstsq(columns[rows], values[rows], rcond=SMALL)[0])


def boosted(x: np.ndarray, treated: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return AIPW estimates of the effects with boosted trees for outcomes and treatment, cross-fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    one, none, score = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    for k in range(FOLDS):
        inside, rest = fold == k, fold != k
        for means, arm in ((one, treated), (none, ~treated)):
            fitted = HistGradientBoostingRegressor(random_state=0).fit(x[rest & arm], y[rest & arm])
            means[inside] = fitted.predict(x[inside])
        model = HistGradientBoostingClassifier(random_state=0, max_iter=50).fit(x[rest], treated[rest])
        score[inside] = model.predict_proba(x[inside])[:, 1]
    t, e = treated.astype(float), np.clip(score, LEAST_CHANCE, 1 - LEAST_CHANCE)
    everyone = one - none + t * (y - one) / e - (1 - t) * (y - none) / (1 - e)
    on_treated = t * (y - none) - (1 - t) * e / (1 - e) * (y - none)
    return {"ATE": float(everyone.mean()), "ATT": float(on_treated.mean() / t.mean())}


def print_biases(folder: Path, draws: int, only: list[int] | None) -> None:
    """Print a line for every setting and estimand."""
    print(
        "| | weights | with leaves | AIPW, lines | least squares | AIPW, trees | explained, untreated / treated "
        "| weights, unexplained | with leaves, unexplained |\n|" + "---|" * 9
    )
    for design in other_acic(folder):
        if only and int(design.name.split()[1]) not in only:
            continue
        tables, treated = [attached(design, draw) for draw in range(draws)], design.treated
        columns, (untreated, on) = balanced(tables[0]), design.means
        x = np.column_stack([np.asarray(line, float) for line in tables[0].covariates.values()])
        outcomes = [design.outcomes(draw) for draw in range(draws)]
        trees = [boosted(x, treated, y) for y in outcomes]
        sd = float(np.mean([np.std(y - np.where(treated, on, untreated)) for y in outcomes]))
        every = np.ones(len(treated), bool)
        fits = [explained(columns, means, every) for means in design.means]
        parts = [
            1 - np.var(means - fit) / np.var(means) for means, fit in zip(design.means, fits, strict=True)
        ]
        for estimand in ESTIMANDS:
            whose, truth = every if estimand == "ATE" else treated, design.truth(estimand)
            both = [weights(design, estimand, share) for share in (0.0, DEFAULTS)]
            unit = sd * sqrt(float(both[0] @ both[0]))
            biases = [float(w @ np.where(treated, on, untreated)) - truth for w in both]
            biases.append(float(np.mean([aipw(table, estimand)[0] for table in tables])) - truth)
            lines = [explained(columns, y, treated) - explained(columns, y, ~treated) for y in outcomes]
            biases.append(float(np.mean([line[whose].mean() for line in lines])) - truth)
            biases.append(float(np.mean([tree[estimand] for tree in trees])) - truth)
            rest = untreated - fits[0], on - fits[1]
            left = [float(w @ np.where(treated, rest[1], rest[0])) for w in both]
            left = [one - float((rest[1] - rest[0])[whose].mean()) for one in left]
            cells = [f"{bias / unit:+.1f}" for bias in biases]
            cells += [f"{parts[0]:.2f} / {parts[1]:.2f}", *(f"{one / unit:+.1f}" for one in left)]
            print(f"| {design.name}, {estimand} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.outcome_level.leaves")
    parser.add_argument("--acic", type=Path, required=True, metavar="FOLDER", help="files zymu_K.csv")
    parser.add_argument("--tuning", action="store_true", help="shares of the leaves")
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES[1:]))
    parser.add_argument("--draws", type=int, default=4, help="outcomes drawn for each study")
    parser.add_argument("--only", type=int, nargs="+", metavar="K", help="settings")
    chosen = parser.parse_args()
    if chosen.tuning:
        print_tuning(chosen.acic, chosen.draws, chosen.shares)
    else:
        print_biases(chosen.acic, chosen.draws, chosen.only)


if __name__ == "__main__":
    main()

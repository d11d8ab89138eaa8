"""`python -m experiments.outcome_level.richer_features`: what do the features that are balanced bring, and would more?

Prints rms errors against the truth as parts of the published method's, for other features than those that
`cv.ate(..., method="weighting")` balances: on the tuning instances for all candidates, and on ACIC 1 and 4-5 for those
that the text speaks of. Needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np

from counterveil.estimators.linear.kernels.balancing import balance_weights
from counterveil.estimators.linear.spline_score import ScoredRows
from counterveil.estimators.linear.weighting_design import features_of
from counterveil.privacy import Unit
from counterveil.rows.public import PublicRows
from counterveil.settings import Weighting
from counterveil.settings.methods import BLOCKS
from experiments.outcome_level.errors import one_draw, paper
from experiments.outcome_level.instances import HELD_OUT, TUNING, Instance, load
from experiments.runner import Row, Table, run
from experiments.weighting_tuning.expected_error import staircase_variance

EPSILONS = (0.5, 1.0, 4.0)
GROUPS = {
    "IHDP 1-5": TUNING["IHDP 1-5"],
    "Synth 0-5": TUNING["Synth 0-9"][:6],
    "ACIC 2-3": TUNING["ACIC 2-3"],
}
# Those that the other blocks were added to later: terms that treatment follows, and bends of the score.
DEFAULTS = ("covariates", "squares", "products", "score")
NO_PRODUCTS = tuple(name for name in DEFAULTS if name != "products")


@dataclass(frozen=True)
class Candidate:
    """Blocks of features, whose score is one of them, columns to add and the share they get."""

    blocks: tuple[str, ...] = DEFAULTS
    score_of: str = "balance"
    more: Callable[[Instance], np.ndarray] | None = None
    share: float = 0.0


def standard(columns: np.ndarray) -> np.ndarray:
    """Return the columns that vary, at mean zero and variance one."""
    columns = columns - columns.mean(axis=0)
    sd = columns.std(axis=0)
    return columns[:, sd > 1e-9] / sd[sd > 1e-9]


def own(instance: Instance) -> np.ndarray:
    return np.clip(standard(instance.design.features.values), -3, 3)


def score(instance: Instance) -> np.ndarray:
    inside = np.clip(instance.for_weighting.score, 1e-3, 1 - 1e-3)
    return np.clip(standard(np.log(inside / (1 - inside))[:, None]), -3, 3)


def strongest(instance: Instance, count: int) -> np.ndarray:
    """Return the covariates that go with the score most."""
    columns = own(instance)
    return columns[:, np.argsort(-np.abs(score(instance)[:, 0] @ columns))[:count]]


def products(count: int) -> Callable[[Instance], np.ndarray]:
    """Return a maker of products of two of the covariates that go with the score most."""
    return lambda instance: np.column_stack(
        [one * other for one, other in combinations(strongest(instance, count).T, 2)]
    )


def score_spline(instance: Instance) -> np.ndarray:
    logit = score(instance)
    return np.maximum(logit - np.quantile(logit, [0.1, 0.25, 0.5, 0.75, 0.9]), 0)


def hinges(instance: Instance) -> np.ndarray:
    columns = own(instance)
    return np.concatenate([np.maximum(columns - knot, 0) for knot in (-0.67, 0.67)], axis=1)


CANDIDATES = {
    "as they are": Candidate(),
    "with the score of matching, neither cut nor bent": Candidate(score_of="matching"),
    "no products": Candidate(NO_PRODUCTS),
    "no products, and the score of matching": Candidate(NO_PRODUCTS, "matching"),
    "products of three covariates .02": Candidate(NO_PRODUCTS, more=products(3), share=0.02),
    "products of ten covariates .05": Candidate(NO_PRODUCTS, more=products(10), share=0.05),
    "products of ten covariates .2": Candidate(NO_PRODUCTS, more=products(10), share=0.2),
    "and square of the score .1": Candidate(more=lambda i: score(i) ** 2, share=0.1),
    "and score in pieces .1": Candidate(more=score_spline, share=0.1),
    "and score times every covariate .2": Candidate(more=lambda i: score(i) * own(i), share=0.2),
    "and cubes .2": Candidate(more=lambda i: own(i) ** 3, share=0.2),
    "and covariates in three pieces .6": Candidate(more=hinges, share=0.6),
}
HELD_OUT_TOO = [*list(CANDIDATES)[:4], "and covariates in three pieces .6"]


def features(instance: Instance, candidate: Candidate) -> np.ndarray:
    settings = Weighting(features=candidate.blocks)
    rows = instance.for_weighting
    if candidate.score_of == "matching":
        rows = ScoredRows(instance.table.treated, instance.design.score)
    usual, *_ = features_of(PublicRows(instance.table, Unit.OUTCOME), rows, settings)
    usual = usual.astype(np.float64) * sqrt(sum(BLOCKS[name] for name in candidate.blocks))
    if candidate.more is None:
        return usual
    more = standard(candidate.more(instance))
    return np.concatenate([usual, more * sqrt(candidate.share / more.shape[1])], axis=1)


def ratios(names: list[tuple[str, int]], candidate: Candidate) -> list[float]:
    """Return for each epsilon the mean error over the published method's."""
    instances = [load(*name) for name in names]
    made = [features(instance, candidate) for instance in instances]
    found = []
    for epsilon in EPSILONS:
        ours = 0.0
        for instance, columns in zip(instances, made, strict=True):
            weights = balance_weights(
                columns, instance.design.treated, noise_variance=staircase_variance(epsilon)
            ).values
            ours += one_draw(instance, weights, epsilon).to_truth
        found.append(ours / sum(paper(instance, epsilon).to_truth for instance in instances))
    return found


def row(label: str, groups: dict[str, list[tuple[str, int]]], *, seeds: range) -> Row:
    """Return the ratios of a candidate on every group, for all epsilons; nothing is drawn."""
    return [
        label,
        *(" / ".join(f"{r:.3f}" for r in ratios(names, CANDIDATES[label])) for names in groups.values()),
    ]


def table(groups: dict[str, list[tuple[str, int]]], labels: list[str], title: str) -> Table:
    """Return the table of candidates on groups of instances."""
    return Table(
        columns=("features", *groups), cells=[(label, groups) for label in labels], row=row, title=title
    )


_EPSILONS = f"Epsilon {' / '.join(f'{epsilon:g}' for epsilon in EPSILONS)}"
OTHERS = {name: HELD_OUT[name] for name in ("ACIC 1", "ACIC 4-5")}
TABLES = {
    "candidates": table(GROUPS, list(CANDIDATES), _EPSILONS),
    "others": table(OTHERS, HELD_OUT_TOO, "Not used for any choice"),
}

if __name__ == "__main__":
    run(__doc__, TABLES)

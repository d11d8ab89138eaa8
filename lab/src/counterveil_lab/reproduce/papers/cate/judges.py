"""What decides the claims about the paper's experiments, from the tables of its figures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.papers.cate.methods import (
    ALPHA,
    ANONYMOUS,
    BOOSTED,
    CONSTANT,
    FOREST,
    LITERAL,
    NETWORK,
    OURS,
    ZERO,
)
from counterveil_lab.reproduce.protocol import Judged, Tables, Verdict
from counterveil_lab.reproduce.rivals.plain import K

# What counts as close: the noise beside the spread of the true effects, and one error beside another.
SMALL_NOISE, _CLOSE = 0.25, 1.1
# What counts as much larger, and as nearly the same.
MUCH, _SAME = 2.0, 1.25


def size_of(table: pd.DataFrame, method: str, epsilon: float, column: str) -> float:
    """Return a column of a method at an epsilon: the root mean square over bins where there are several."""
    own = table[(table["method"] == method) & (table["epsilon"] == epsilon)][column]
    return float(np.sqrt(np.mean(np.square(own))))


def _ends(table: pd.DataFrame) -> tuple[float, float]:
    return float(table["epsilon"].min()), float(table["epsilon"].max())


def _falls(table: pd.DataFrame, method: str, column: str) -> bool:
    """Return whether a column falls with epsilon by more than a hundredth from its first value to its last."""
    epsilons = sorted(set(table["epsilon"]))
    sizes = [size_of(table, method, epsilon, column) for epsilon in epsilons]
    return all(b < a for a, b in pairwise(sizes)) and sizes[-1] < 0.99 * sizes[0]


def converges(figure: str, methods: tuple[str, ...]) -> Callable[[Tables], Judged]:
    """Return what decides whether noise falls with the budget to a small part of the differences between people."""

    def judge(tables: Tables) -> Judged:
        table = tables[figure]
        least, most = _ends(table)
        spread = float(table[table["method"] == methods[0]]["truth"].std())
        parts = {method: size_of(table, method, most, "noise") / spread for method in methods}
        holds = (
            all(_falls(table, method, "noise") for method in methods) and max(parts.values()) < SMALL_NOISE
        )
        first = size_of(table, methods[0], least, "noise") / spread
        number = f"noise over spread of the effects: {first:.2g} at epsilon {least:g}; " + ", ".join(
            f"{part:.2g} ({method})" for method, part in parts.items()
        )
        return Judged.of(holds, f"{number} at {most:g}", "the noise is in proportion to 1/epsilon")

    return judge


def same_learners(tables: Tables) -> Judged:
    """Return whether a forest and a network give nearly the same predictions."""
    table = tables["figure14"]
    least, _ = _ends(table)
    noises = [size_of(table, method, least, "noise") for method in (FOREST, NETWORK)]
    floors = [size_of(table, method, least, "floor") for method in (FOREST, NETWORK)]
    ratio = max(floors) / min(floors)
    return Judged.of(
        ratio < _SAME,
        f"noise {noises[0] / noises[1]:.2f} times, error without noise {floors[0]:.2f} and {floors[1]:.2f}",
        "the noise is alike, so small budgets look alike; the fits under it are not",
    )


def functional_usable(tables: Tables) -> Judged:
    """Return whether a functional release is much closer to the effects than zero is."""
    table = tables["figure4"]
    _, most = _ends(table)
    errors = {method: size_of(table, method, most, "error") for method in (LITERAL, ALPHA)}
    zero = float(np.sqrt(np.mean(np.square(table[table["method"] == LITERAL]["truth"]))))
    return Judged.of(
        min(errors.values()) < zero / MUCH,
        f"error at epsilon {most:g}: {errors[LITERAL]:.2g} as printed, {errors[ALPHA]:.2g} with scikit-learn's "
        f"lambda; zero has {zero:.2g}",
        "lambda = 1 beside the mean loss shrinks every effect towards zero; as scikit-learn's alpha its noise is huge",
    )


def errors_fall(tables: Tables) -> Judged:
    """Return whether errors on Dataset 2 fall to those without noise."""
    table = tables["figure5"]
    _, most = _ends(table)
    ratios = {
        m: size_of(table, m, most, "error") / size_of(table, m, most, "floor") for m in (FOREST, NETWORK)
    }
    return Judged.of(
        all(_falls(table, method, "error") for method in ratios) and max(ratios.values()) < _CLOSE,
        f"at epsilon {most:g} {ratios[FOREST]:.3f} (forest) and {ratios[NETWORK]:.3f} (network) times the error "
        "without noise",
        "the noise is in proportion to 1/epsilon",
    )


def functional_alike(tables: Tables) -> Judged:
    """Return whether the functional form's error on Dataset 2 falls with the budget."""
    table = tables["figure5"]
    least, most = _ends(table)
    change = size_of(table, LITERAL, least, "error") / size_of(table, LITERAL, most, "error") - 1
    noise = size_of(table, LITERAL, least, "noise")
    return Judged.of(
        _falls(table, LITERAL, "error"),
        f"error {100 * change:.1g} % larger at epsilon {least:g} than at {most:g}; noise {noise:.1g}",
        "with 30 covariates the printed power of the bandwidth makes noise and fit vanish: the answer is zero, and "
        "its flat curve is no sign of accuracy",
    )


def correct(tables: Tables) -> Judged:
    """Return whether a published form is closer to the effects of Dataset 2 than one private effect for all."""
    table = tables["figure5"]
    forms = (FOREST, NETWORK, LITERAL)
    best = min(size_of(table, method, 1.0, "clipped") for method in forms)
    zero, constant = (size_of(table, method, 1.0, "error") for method in (ZERO, CONSTANT))
    ours = size_of(table, OURS, 1.0, "error")
    return Judged.of(
        best < constant,
        f"error at epsilon 1: {best:.2g} at best, zero {zero:.2g}, one private effect for all {constant:.2g}, "
        f"ours {ours:.2g}",
        "answers are clipped to the outcome's range before they are scored, in the published forms' favour",
    )


def dr_noise(tables: Tables) -> Judged:
    """Return whether the DR-learner needs much more noise than the R-learner."""
    ratios = [
        size_of(tables["figure9"], method, 1.0, "noise") / size_of(tables["figure3"], method, 1.0, "noise")
        for method in (FOREST, NETWORK)
    ]
    return Judged.of(
        min(ratios) > MUCH,
        f"noise of DR over R: {ratios[0]:.2f} (forest), {ratios[1]:.2f} (network)",
        "propensities of Dataset 1 lie in [0.5, 0.8], where the DR-learner's largest influence is little above the "
        "R-learner's",
    )


def dr_functional(tables: Tables) -> Judged:
    """Return the noise of the DR-learner's functional form beside its finite one; settings not printed decide."""
    finite = size_of(tables["figure9"], NETWORK, 1.0, "noise")
    functional = {m: size_of(tables["figure10"], m, 1.0, "noise") for m in (LITERAL, ALPHA)}
    return Judged.of(
        None,
        f"noise at epsilon 1: functional {functional[LITERAL]:.2g} as printed, {functional[ALPHA]:.2g} with "
        f"scikit-learn's lambda; finite {finite:.2g}",
        "the size of the functional noise follows the bandwidth, which is not printed, and the reading of lambda; both "
        "fall in proportion to 1/epsilon",
    )


def one_sided(tables: Tables) -> Judged:
    """Return whether the functional noise is off in one direction."""
    shares = [
        size_of(tables[figure], method, 1.0, "shift") / size_of(tables[figure], method, 1.0, "noise")
        for figure, method in (("figure4", LITERAL), ("figure3", NETWORK))
    ]
    return Judged.of(
        shares[0] > MUCH * shares[1],
        f"mean of the noise over its size: {shares[0]:.2f} functional, {shares[1]:.2f} finite",
        "one path of a Gaussian process is off in the same direction at neighbouring queries",
    )


def boosted_worse(tables: Tables) -> Judged:
    """Return whether private boosted trees are further off at every budget."""
    if "figure11" not in tables:
        return Judged(Verdict.CANNOT_BE_CHECKED, "", "Figure 11 needs the extra interpret")
    ratios = []
    for epsilon in sorted(set(tables["figure11"]["epsilon"])):
        theirs = size_of(tables["figure12"], NETWORK, epsilon, "error")
        ratios.append((epsilon, size_of(tables["figure11"], BOOSTED, epsilon, "error") / theirs))
    return Judged.of(
        all(ratio > _SAME for _, ratio in ratios),
        "error of DP-EBM over DP-CATE's (network): "
        + ", ".join(f"{ratio:.2g} at {epsilon:g}" for epsilon, ratio in ratios),
        "DP-EBM privatises all of its models and needs less noise where the budget is small; DP-CATE leaves its "
        "nuisances unprotected",
    )


def anonymous_worse(tables: Tables) -> Judged:
    """Return how often k-anonymisation is further off; the k of the paper is not printed and decides."""
    table = tables["figure13"]
    epsilons = sorted(set(table["epsilon"]))
    wins = [
        size_of(table, published, epsilon, "error") < size_of(table, anonymous, epsilon, "error")
        for anonymous, published in ANONYMOUS.items()
        for epsilon in epsilons
    ]
    return Judged.of(
        None,
        f"DP-CATE has the smaller error in {sum(wins)} of {len(wins)} pairs of learner and epsilon",
        f"k is not printed: with k = {K} averaging two covariates costs little; it has no guarantee",
    )


def relative(tables: Tables) -> Judged:
    """Return whether the relative error falls with the budget."""
    table = tables["figure15"]
    least, most = _ends(table)
    sizes = [size_of(table, NETWORK, epsilon, "relative") for epsilon in (least, most)]
    return Judged.of(
        all(_falls(table, method, "relative") for method in (FOREST, NETWORK)),
        f"network: {sizes[0]:.0f} % of the error without noise at epsilon {least:g}, {sizes[1]:.0f} % at {most:g}",
        "the error falls with the budget, from many times that of the learner itself",
    )

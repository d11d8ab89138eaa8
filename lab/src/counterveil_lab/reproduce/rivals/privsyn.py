"""PrivSyn (Zhang et al. 2021), reduced: noisy one- and two-way marginals, made consistent, then records for them.

All of it is rho-zCDP: a tenth for how far pairs are from independence, a tenth for the one-way marginals and the rest
for the chosen pairs. Noise is for one record replaced. Records are then moved towards the marginals in rounds (GUM).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

import numpy as np

from counterveil_lab.reproduce.rivals.encoding import (
    Answer,
    Budget,
    Codes,
    Floats,
    Records,
    binned,
    synthetic,
)
from counterveil_lab.reproduce.rivals.simple import by_arms

_PART = {"pairs": 0.1, "single": 0.1, "chosen": 0.8}
# Rounds of the record update, and by how much the first of them moves; later ones move less.
_ROUNDS, _FIRST, _SLOWER = 30, 1.0, 0.9
# Rounds of consistency between marginals that share a column.
_CONSISTENT = 3


@dataclass(frozen=True)
class Marginal:
    """Columns and the released shares of their cells, in C order."""

    columns: tuple[int, ...]
    shares: Floats


def rho_of(budget: Budget) -> float:
    """Return the zCDP that (epsilon, delta) affords: epsilon = rho + 2 sqrt(rho ln(1 / delta))."""
    root = sqrt(log(1 / budget.delta))
    return (sqrt(root**2 + budget.epsilon) - root) ** 2


def cells(codes: Codes, columns: Sequence[int], sizes: Sequence[int]) -> Codes:
    """Return each record's cell of a marginal."""
    found = np.zeros(len(codes), dtype=np.int64)
    for column in columns:
        found = found * sizes[column] + codes[:, column]
    return found


def _counts(codes: Codes, columns: Sequence[int], sizes: Sequence[int]) -> Floats:
    size = int(np.prod([sizes[column] for column in columns]))
    return np.bincount(cells(codes, columns, sizes), minlength=size).astype(np.float64)


def dependence(codes: Codes, pair: tuple[int, int], sizes: Sequence[int]) -> float:
    """Return how far a pair's counts are from the product of their margins, in the l1 norm.

    One record replaced moves the counts by 2, each margin by 2, and so the distance by 6 + 4 / n at most.
    """
    first, second = (_counts(codes, (column,), sizes) for column in pair)
    independent = np.outer(first, second).ravel() / len(codes)
    return float(np.abs(_counts(codes, pair, sizes) - independent).sum())


def chosen_pairs(
    noisy: dict[tuple[int, int], float], sizes: Sequence[int], sd_at: float
) -> list[tuple[int, int]]:
    """Return pairs in the order of gain, while measuring one gains more than its noise costs the others.

    The error of leaving a pair out is its dependence; that of measuring k pairs is their cells' expected noise at
    equal shares, which grows with the root of k.
    """
    cost = {pair: sd_at * sizes[pair[0]] * sizes[pair[1]] * 0.8 for pair in noisy}
    order = sorted(noisy, key=lambda pair: noisy[pair] - cost[pair], reverse=True)
    found: list[tuple[int, int]] = []
    best = sum(noisy.values())
    for pair in order:
        tried = [*found, pair]
        noise = sqrt(len(tried)) * sum(cost[one] for one in tried)
        left = sum(max(gap, 0.0) for one, gap in noisy.items() if one not in tried)
        if left + noise >= best:
            break
        found, best = tried, left + noise
    return found


def _share(counts: Floats) -> Floats:
    """Return shares: nothing below zero, the excess taken off the others alike (norm-sub)."""
    total, found = counts.sum(), counts.copy()
    if total <= 0:
        return np.full(len(counts), 1 / len(counts))
    for _ in range(len(counts)):
        found = np.maximum(found, 0)
        positive = found > 0
        excess = (found.sum() - total) / max(1, int(positive.sum()))
        if excess <= 1e-9 * total:
            break
        found[positive] -= excess
    found = np.maximum(found, 0)
    return np.asarray(found / found.sum())


def measure(codes: Codes, sizes: Sequence[int], budget: Budget, rng: np.random.Generator) -> list[Marginal]:
    """Return the noisy marginals, each summing to one."""
    rho, rows = rho_of(budget), len(codes)
    pairs = list(combinations(range(len(sizes)), 2))
    # The l2 change of all pairs' dependences together is at most that of one times sqrt(pairs).
    spread = (6 + 4 / rows) * sqrt(len(pairs) / (2 * _PART["pairs"] * rho))
    noisy = {pair: dependence(codes, pair, sizes) + rng.normal(0, spread) for pair in pairs}
    # One record replaced moves a marginal by sqrt(2) in the l2 norm, so that rho / sd^2 = 1 for one marginal.
    chosen = chosen_pairs(noisy, sizes, sqrt(1 / (_PART["chosen"] * rho)))
    single_sd = sqrt(len(sizes) / (_PART["single"] * rho))
    pair_sd = sqrt(max(1, len(chosen)) / (_PART["chosen"] * rho))
    found = []
    for columns in [*((column,) for column in range(len(sizes))), *chosen]:
        counts = _counts(codes, columns, sizes)
        sd = single_sd if len(columns) == 1 else pair_sd
        noisy_counts = counts + rng.normal(0, sd, len(counts))
        noisy_counts += (rows - noisy_counts.sum()) / len(counts)
        found.append(Marginal(columns, _share(noisy_counts)))
    return consistent(found, sizes)


def consistent(marginals: list[Marginal], sizes: Sequence[int]) -> list[Marginal]:
    """Return marginals that agree on shared columns: each column's shares are averaged, fewer cells count more."""
    found = list(marginals)
    for _ in range(_CONSISTENT):
        for column in range(len(sizes)):
            places = [place for place, one in enumerate(found) if column in one.columns]
            own = [_summed(found[place], column, sizes) for place in places]
            weights = np.array([sizes[column] / len(found[place].shares) for place in places])
            mean = np.average(own, axis=0, weights=weights)
            for place, summed in zip(places, own, strict=True):
                found[place] = _moved(found[place], column, sizes, mean - summed)
    return [Marginal(one.columns, _share(one.shares)) for one in found]


def _summed(marginal: Marginal, column: int, sizes: Sequence[int]) -> Floats:
    shape = [sizes[one] for one in marginal.columns]
    axes = tuple(place for place, one in enumerate(marginal.columns) if one != column)
    return np.asarray(marginal.shares.reshape(shape).sum(axis=axes))


def _moved(marginal: Marginal, column: int, sizes: Sequence[int], gap: Floats) -> Marginal:
    shape = [sizes[one] for one in marginal.columns]
    place = marginal.columns.index(column)
    others = int(np.prod(shape)) // shape[place]
    spread = (gap / others).reshape([-1 if at == place else 1 for at in range(len(shape))])
    return Marginal(marginal.columns, (marginal.shares.reshape(shape) + spread).ravel())


def records_for(
    marginals: list[Marginal], sizes: Sequence[int], rows: int, rng: np.random.Generator
) -> Codes:
    """Return records whose marginals are close to the given ones: cells that hold too many hand records to others."""
    codes = np.zeros((rows, len(sizes)), dtype=np.int64)
    for one in marginals:
        if len(one.columns) == 1:
            codes[:, one.columns[0]] = rng.choice(len(one.shares), rows, p=one.shares)
    several = [one for one in marginals if len(one.columns) > 1]
    step = _FIRST
    for _ in range(_ROUNDS if several else 0):
        for place in rng.permutation(len(several)):
            _update(codes, several[int(place)], sizes, step, rng)
        step *= _SLOWER
    return codes


def _update(
    codes: Codes, marginal: Marginal, sizes: Sequence[int], step: float, rng: np.random.Generator
) -> None:
    """Rewrite records of cells that hold too many; half of them become copies of whole records of their new cell."""
    rows = len(codes)
    cell = cells(codes, marginal.columns, sizes)
    size = len(marginal.shares)
    gap = np.round(step * (marginal.shares * rows - np.bincount(cell, minlength=size))).astype(np.int64)
    order = rng.permutation(rows)
    order = order[np.argsort(cell[order], kind="stable")]
    starts = np.searchsorted(cell[order], np.arange(size))
    over, under = np.flatnonzero(gap < 0), np.flatnonzero(gap > 0)
    free = np.concatenate([order[starts[one] : starts[one] - gap[one]] for one in over] or [order[:0]])
    wanted = np.repeat(under, gap[under])
    rng.shuffle(free)
    rng.shuffle(wanted)
    few = min(len(free), len(wanted))
    free, wanted = free[:few], wanted[:few]
    ends = np.append(starts[1:], rows)
    held = ends[wanted] > starts[wanted]
    copied = held & (rng.random(few) < 0.5)
    if copied.any():
        width = (ends - starts)[wanted[copied]]
        source = order[starts[wanted[copied]] + (rng.random(int(copied.sum())) * width).astype(np.int64)]
        codes[free[copied]] = codes[source]
    left, rest = free[~copied], wanted[~copied]
    for column in reversed(marginal.columns):
        codes[left, column] = rest % sizes[column]
        rest = rest // sizes[column]


def privsyn(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the effect in synthetic records."""
    rng = np.random.default_rng(seed)
    codes, sizes = binned(records)
    made = records_for(measure(codes, sizes, budget, rng), sizes, records.rows, rng)
    return Answer(by_arms(synthetic(records, made)))

"""The stratified effect under replacement of a row: exact worst cases against the local and the smooth bound."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from tests.thinned import examples, thinned_rows
from tests.unit.published.stratified_worst_cases import (
    ESTIMANDS,
    KINDS,
    PAIRINGS,
    SEEKERS,
    arrivals,
    counts_of,
    departures,
    exact_change,
    neighbours,
    signatures,
    weights,
)

from counterveil.errors import ParameterError
from counterveil.published.strata_sensitivity import global_change, local_change, smooth_change, smooth_weight

SOME = thinned_rows(KINDS, *KINDS[::2])


def effect(rows, estimand, pairing):
    """N times the effect of a list of (stratum, treated, outcome), by the definition alone."""
    total = Fraction(0)
    for stratum in {row[0] for row in rows}:
        one = [y for x, t, y in rows if x == stratum and t]
        two = [y for x, t, y in rows if x == stratum and not t]
        if one and two:
            seek_treated, seek_control = SEEKERS[estimand]
            if pairing == "all":
                h = seek_treated * len(one) + seek_control * len(two)
                total += h * (Fraction(sum(one), len(one)) - Fraction(sum(two), len(two)))
            else:
                total += seek_treated * sum(y - two[i % len(two)] for i, y in enumerate(one))
                total += seek_control * sum(one[i % len(one)] - y for i, y in enumerate(two))
    return total


@pytest.mark.parametrize(("estimand", "pairing"), SOME)
def test_the_worst_cases_are_those_of_all_data_sets_row_by_row(estimand, pairing):
    rows = tuple(product((0, 1), (0, 1), (0, 1)))
    for n in (2, 3, 4) if pairing == "single" else (2, 3):
        value = {data: effect(data, estimand, pairing) for data in product(rows, repeat=n)}
        worst = defaultdict(Fraction)
        for data, at in value.items():
            cells = [[0, 0], [0, 0]]
            for x, t, _ in data:
                cells[x][1 - t] += 1
            key = tuple(sorted(map(tuple, cells)))
            for place, row in product(range(n), rows):
                moved = value[(*data[:place], row, *data[place + 1 :])]
                worst[key] = max(worst[key], abs(moved - at))
        assert {key: exact_change(key, estimand, pairing) for key in worst} == worst


@pytest.mark.parametrize(("estimand", "pairing"), SOME)
def test_no_replacement_exceeds_the_local_bound_and_many_attain_it(estimand, pairing):
    attained = checked = 0
    for rows, strata in ((1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (4, 3), (5, 3)):
        for signature in signatures(rows, strata):
            exact = exact_change(signature, estimand, pairing)
            claim = local_change(counts_of(signature), estimand, pairing)
            assert exact <= claim * (1 + 1e-14)
            attained += claim <= exact * (1 + 1e-14)
            checked += 1
    assert attained > checked / 3


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_global_bound_is_attained(estimand, pairing):
    for rows in range(1, 7):
        worst = max(exact_change(signature, estimand, pairing) for signature in signatures(rows, 2))
        assert worst == global_change(rows, estimand)
    assert global_change(6, "ATE") == 7
    assert global_change(6, "ATT") == 5
    assert global_change(6, "ATE", Fraction(1, 8)) == Fraction(57, 8)


@pytest.mark.parametrize(("estimand", "pairing"), SOME)
def test_the_smooth_bound_is_smooth_and_covers_every_change(estimand, pairing):
    for rows, strata, public in ((2, 2, 2), (5, 2, 3), (3, 3, 7), (3, 2, 2), (6, 2, 2), (4, 3, 3))[
        : examples(3, 6)
    ]:
        for smoothness in (Fraction(1, 20), Fraction(1, 5), Fraction(1)):
            bound = {
                s: smooth_change(counts_of(s, public), smoothness, estimand, pairing)
                for s in signatures(rows, strata)
            }
            for signature, at in bound.items():
                assert exact_change(signature, estimand, pairing) <= at
                assert max(float(at / bound[other]) for other in neighbours(signature)) <= exp(smoothness)


class Reference:
    """The formulas of the proof page, every stratum, pair and split gone through."""

    def __init__(self, signature, estimand, pairing):
        weight = {"ATE": ((1, 1), (1, 1)), "ATT": ((1, 0), (0, 1)), "ATC": ((0, 1), (1, 0))}[estimand]
        self.rows, self.pairing = sum(map(sum, signature)), pairing
        self.largest, self.flip = float(global_change(self.rows, estimand)), 2 if estimand == "ATE" else 1
        self.stratum = np.tile(np.arange(len(signature)), 2)
        self.own = np.array([cell[arm] for arm in (0, 1) for cell in signature])
        self.opp = np.array([cell[1 - arm] for arm in (0, 1) for cell in signature])
        self.alpha, self.beta = (np.repeat(part, len(signature)) for part in zip(*weight, strict=True))

    def value(self, p, o, line):
        share = p / o if self.pairing == "all" else 1 + (p - 1) / o if line else np.ceil(p / o)
        return np.where(p >= 1, self.alpha + self.beta * share, 0.0)

    def removal(self, up, down, cap=None):
        o = np.maximum(1, self.own - down)
        p = np.where((self.own == 0) & (up == 0), 0, self.opp + up - (self.own == 0))
        return self.value(p if cap is None else np.minimum(p, cap - o), o, cap is None)

    def insertion(self, up, down, cap=None):
        o, p = np.maximum(0, self.own - down), self.opp + up
        return self.value(p if cap is None else np.minimum(p, cap - o), o + 1, cap is None)

    def between(self, k):
        apart = self.stratum[:, None] != self.stratum
        return max(
            (self.removal(up, down)[:, None] + self.insertion(k - up, k - down))[apart].max(initial=0)
            for up, down in product(range(k + 1), repeat=2)
        )

    def change(self, k):
        rem, add = self.removal(k, k, self.rows).max(), self.insertion(k, k, self.rows).max()
        within = max(rem, add) + self.flip if max(rem, add) > 0 else 0
        return min(self.largest, rem + add, max(within, self.between(k)))


@pytest.mark.parametrize(("estimand", "pairing"), SOME)
def test_the_search_finds_what_going_through_every_k_finds(estimand, pairing):
    rng = np.random.default_rng(3)
    chain = [(i, i + i // 3 + 1) for i in range(1, 12)]
    drawn = [
        [tuple(map(int, rng.integers(0, 9, 2))) for _ in range(int(rng.integers(1, 6)))] for _ in range(4)
    ]
    for signature in (chain, *drawn):
        reference = Reference(signature, estimand, pairing)
        for smoothness in (Fraction(2, 5), Fraction(1)):
            last = min(reference.rows, 12)
            values = [exp(-k * smoothness) * reference.change(k) for k in range(last + 1)]
            # Beyond the last k looked at, the global bound settles it.
            assert exp(-(last + 1) * smoothness) * reference.largest < max(values)
            found = float(smooth_change(counts_of(signature), smoothness, estimand, pairing))
            assert found == pytest.approx(max(values), rel=1e-9)


@pytest.mark.parametrize(("estimand", "pairing"), SOME)
def test_random_data_sets_of_up_to_forty_rows(estimand, pairing):
    rng = np.random.default_rng(5)
    smoothness = Fraction(1, 10)
    for _ in range(examples(2, 4)):
        strata = int(rng.integers(2, 5))
        cells = rng.multinomial(int(rng.integers(7, 41)), rng.dirichlet(np.full(2 * strata, 0.7)))
        signature = tuple(zip(cells[::2].tolist(), cells[1::2].tolist(), strict=True))
        public = strata + int(rng.integers(0, 2))
        exact = exact_change(signature, estimand, pairing)
        assert exact <= local_change(counts_of(signature, public), estimand, pairing) * (1 + 1e-14)
        at = smooth_change(counts_of(signature, public), smoothness, estimand, pairing)
        assert exact <= at
        for other in neighbours(signature):
            near = smooth_change(counts_of(other, public), smoothness, estimand, pairing)
            assert max(float(at / near), float(near / at)) <= exp(smoothness)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_the_weight_covers_every_row_and_every_insertion_and_is_smooth(estimand):
    smoothness = Fraction(1, 5)
    for rows, strata, public in ((4, 2, 2), (6, 2, 3), (5, 3, 3)):
        bound = {
            s: smooth_weight(counts_of(s, public), smoothness, estimand) for s in signatures(rows, strata)
        }
        for signature, at in bound.items():
            for cell in signature:
                assert max(abs(w) for arm in weights(*cell, estimand, "all") for w in (*arm, 0)) <= at
                assert max(*departures(*cell, estimand, "all"), *arrivals(*cell, estimand, "all")) <= at
            assert exact_change(signature, estimand, "all") <= 2 * at
            assert max(float(at / bound[other]) for other in neighbours(signature)) <= exp(smoothness)


def test_an_empty_public_stratum_is_counted():
    full = [(50, 50)] * 10
    smoothness = Fraction(1, 10)
    without_empty = smooth_change(counts_of(full), smoothness, "ATE", "all")
    with_empty = smooth_change(counts_of(full, 11), smoothness, "ATE", "all")
    assert float(without_empty) == pytest.approx(2 + 1 + 50 / 51)
    assert float(with_empty) == pytest.approx(
        max(exp(-k / 10) * (1 + 50 / (50 - k) + 1 + k) for k in range(1, 50))
    )


def test_refusals_name_parameters_only():
    counts = counts_of([(1, 1)])
    with pytest.raises(ParameterError, match="CV-P320"):
        local_change(counts, "ATE", "double")
    with pytest.raises(ParameterError, match="CV-P002"):
        local_change(counts, "LATE", "all")
    for smoothness in (Fraction(0), Fraction(65)):
        with pytest.raises(ParameterError, match="CV-P321"):
            smooth_change(counts, smoothness, "ATE", "all")
    with pytest.raises(ParameterError, match="CV-P322"):
        counts_of([(2**31, 0)])

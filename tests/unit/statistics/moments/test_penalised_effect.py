"""Brute force: no exchange of a record moves the penalised weights further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.small_records import largest_change

from counterveil.statistics.moments.kernels.unit_rows import STATISTIC_BITS, statistics
from counterveil.statistics.moments.sensitivity import PenalisedEffect

REACH = 0.9
ANGLES = np.arange(0, np.pi, np.pi / 4)
RECORDS = [
    (r * REACH * np.array([np.cos(a), np.sin(a)]), v)
    for a in ANGLES
    for r in (0.3, 1.0)
    for v in (-1.0, 0.4, 1.0)
]


def weights(records, penalty):
    u, v = (np.array(part) for part in zip(*records, strict=True))
    total = statistics([(u, np.zeros(len(v), np.intp), v)], 1)
    unit = 1 / (len(v) * 4.0**STATISTIC_BITS)
    gram = np.array(total.grams[0], dtype=float) * unit
    return np.linalg.solve(gram + penalty * np.eye(2), np.array(total.products[0], dtype=float) * unit)


@pytest.mark.parametrize(("penalty", "least"), [(0.003, 0.005), (0.03, 0.05), (0.3, 0.3), (3.0, 0.6)])
def test_no_exchange_exceeds_the_claim(penalty, least):
    claim = float(PenalisedEffect(3, Fraction("0.9"), Fraction(penalty), Fraction(0)).weights)
    largest = 0.0
    for rest in product(RECORDS[::4], repeat=2):
        found = [weights([record, *rest], penalty) for record in RECORDS]
        largest = max(largest, largest_change(found))
    assert least * claim < largest <= claim


def test_tolerance_is_paid_for():
    exact = PenalisedEffect(100, Fraction(1), Fraction(1, 10), Fraction(0)).weights
    loose = PenalisedEffect(100, Fraction(1), Fraction(1, 10), Fraction(1, 1000)).weights
    assert loose - exact == Fraction(1, 100)
    assert float(exact) == pytest.approx(2 * (1 + 1 / (2 * 0.1**0.5)) / 10, rel=1e-8)


def test_solver_reaches_the_public_tolerance_in_exact_arithmetic():
    from counterveil.statistics.moments.cate_random_features import solved

    rng = np.random.default_rng(3)
    for penalty, size in ((1e-6, 20), (1e-3, 40), (1.0, 10)):
        # Nearly collinear features, the worst for a solver.
        base = rng.normal(size=size)
        u = np.stack([base + 1e-3 * rng.normal(size=size) for _ in range(60)])
        u /= np.linalg.norm(u, axis=1).max()
        v = rng.uniform(-1, 1, 60)
        blocks = [(u, np.zeros(60, np.intp), v)]
        found = [Fraction(float(w)) for w in solved(blocks, 60, size, penalty)]
        total, unit = statistics(blocks, 1), Fraction(1, 60 * 4**STATISTIC_BITS)
        left = [
            sum(entry * unit * w for entry, w in zip(row, found, strict=True))
            + Fraction(penalty) * own
            - p * unit
            for row, own, p in zip(total.grams[0], found, total.products[0], strict=True)
        ]
        gradient = 2 * float(sum(part * part for part in left)) ** 0.5
        assert gradient <= 1e-8 * (1 + penalty)

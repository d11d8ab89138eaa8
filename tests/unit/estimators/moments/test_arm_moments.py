"""Brute force: no exchange of a record moves moments, statistics or balance by arm further than claimed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.estimators.moments import small_records
from tests.unit.estimators.moments.small_records import NotingGate, largest_change, records

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import counted_features
from counterveil.estimators.moments.adjusted_means import release_own_scores
from counterveil.estimators.moments.arm_balance import (
    CELLS,
    BalanceColumns,
    CutScore,
    differences,
    exact_sums,
    release_cells,
    release_moments,
    score_of,
)
from counterveil.estimators.moments.doubly_robust import (
    SIZES,
    WHOLE,
    Centre,
    RowScale,
    release_arm_grams,
    release_arm_residuals,
    release_arm_score,
    release_look,
    release_place,
    release_sizes,
)
from counterveil.estimators.moments.records import TableRecords
from counterveil.numerics.products import Standard
from counterveil.rows.counts import COUNTS_L1
from counterveil.rows.moments.scores import (
    ArmLines,
    ArmScore,
    OwnScore,
)
from counterveil.rows.moments.sensitivity import (
    SQUARES,
    balance_sums,
    free_gram,
    look_moments,
)

STANDARD = Standard(np.full(5, 0.1), np.full(5, 0.5), 2.0, 6.0)
LINES = ArmLines(np.array([[0.1, 0.3, -0.2, 0.1, 0.0, 0.05], [-0.2, 0.1, 0.4, 0.0, -0.3, 0.1]]))
WEIGHTS = np.array([[2.0, 0.3, -0.1, 0.0, 0.4, 0.1], [2.5, -0.2, 0.5, 0.3, 0.0, 0.1]])
SCORE = ArmScore(LINES, WEIGHTS, (1.0, 1.0), 0.3)
GRID = list(product((-1.0, 0.1, 1.0), (0, 1), ("u", "v", "z"), (0, 1), (-1.0, 0.1, 1.0)))


def scale(constant, outcome):
    return RowScale(STANDARD, Centre(0.1, 0.2, 0.0, 3.0), constant, outcome, 2.5)


def handed_over(name, release):
    """Return what a release hands to the gate for every record of the grid, and its claim."""
    values = []
    for record in GRID:
        gate = NotingGate()
        release(gate, records(record))
        values.append(gate.values[name])
    return values, float(gate.sensitivity[name])


@pytest.mark.parametrize(("constant", "outcome"), [(4.2, 1.8), (0.5, 7.0)])
def test_two_grams_cost_what_one_does(constant, outcome):
    form = scale(constant, outcome)
    values, claim = handed_over("gram", lambda gate, rows: release_arm_grams(gate, rows, form))
    assert claim == pytest.approx(np.sqrt(2) * (6 + constant + outcome) / 5, rel=1e-7)
    assert 0.8 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_full_rows_of_different_arms_attain_the_bound():
    full = np.ones(4)[:, None] * np.ones(4)
    upper = np.where(np.eye(4, dtype=bool), 1.0, np.sqrt(2))[np.triu_indices(4)] * full[np.triu_indices(4)]
    change = np.concatenate([upper, -upper])
    assert np.linalg.norm(change) == pytest.approx(float(free_gram(1, Fraction(4))), rel=1e-7)


@pytest.mark.parametrize("share", [True, False])
def test_looks_at_features(share):
    everything = np.ones(5, dtype=bool)

    def release(gate, rows):
        counted = counted_features(rows.features)
        return release_look(gate, "centre", rows, counted, everything, share)

    values, claim = handed_over("centre", release)
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)
    assert float(look_moments(1, 4, Fraction(1, 2))) == pytest.approx(np.sqrt(17), rel=1e-8)


@pytest.mark.parametrize("clip", [0.2, 1.0])
def test_residuals_of_both_arms(clip):
    form = scale(4.2, 1.8)
    values, claim = handed_over(
        "residual 1", lambda gate, rows: release_arm_residuals(gate, "residual 1", rows, form, LINES, clip)
    )
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("clip", [0.5, 4.0])
@pytest.mark.parametrize("people", [(1.0, 1.0), (0.0, 2.5), (1.7, 0.0)])
def test_scores(clip, people):
    form, score = scale(4.2, 1.8), ArmScore(LINES, WEIGHTS, people, 0.3)
    values, claim = handed_over("score", lambda gate, rows: release_arm_score(gate, rows, form, score, clip))
    assert claim == 2 / 5
    assert 0.9 * claim < largest_change(values) <= claim * (1 + 1e-12)


def test_a_record_leaves_one_cell_and_enters_another():
    form, edges = scale(4.2, 1.8), np.array([0.1, 1.0, 3.0])
    for name, release in {
        "place 1": lambda gate, rows: release_place(gate, rows, pure=True, cells=8),
        "sizes": lambda gate, rows: release_sizes(gate, rows, form, SCORE, edges, pure=True),
    }.items():
        values, claim = handed_over(name, release)
        found = np.array(values, dtype=float)
        assert claim == COUNTS_L1 == max(np.abs(found - one).sum(axis=1).max() for one in found)
        assert (found.sum(axis=1) == 5).all()
        assert found.shape[1] == (8 if name == "place 1" else 4)


THREE = cv.Study(
    cv.Treatment("t", arms=(0, 1, 2), reference=0), cv.Outcome("y", (-1, 1)), small_records.COVARIATES
)
THREE_REST = [*small_records.REST, (0.2, 0, "u", 2, 0.3), (-0.1, 1, "v", 2, -0.5)]
THIRD = ArmLines(np.vstack([LINES.values, [0.3, -0.1, 0.2, 0.0, 0.2, -0.4]]))
OWN = OwnScore(
    THIRD, np.vstack([WEIGHTS, [6.0, 1.0, 0.0, -2.0, 0.5, 0.3]]), np.array([0.0, 0.5, -1.0]), np.ones(3)
)
SEVERAL = {
    "gram": lambda gate, rows, _: release_arm_grams(gate, rows, scale(4.2, 1.8)),
    "residual 1": lambda gate, rows, _: release_arm_residuals(
        gate, "residual 1", rows, scale(4.2, 1.8), THIRD, 0.4
    ),
    "sizes": lambda gate, rows, pure: release_sizes(gate, rows, scale(4.2, 1.8), OWN, SIZES, pure),
    "score": lambda gate, rows, pure: release_own_scores(gate, rows, scale(4.2, 1.8), OWN, pure),
}


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("name", SEVERAL)
def test_releases_of_several_arms_move_as_far_as_those_of_two(name, pure):
    values = []
    for record in product((-1.0, 0.1, 1.0), (0, 1), ("u", "v"), (0, 1, 2), (-1.0, 0.1, 1.0)):
        gate = NotingGate()
        SEVERAL[name](gate, records(record, THREE, rest=THREE_REST), pure)
        values.append(gate.values[name])
    claim, found = float(gate.sensitivity[name]), np.array(values, dtype=float)
    counted = pure and name in ("sizes", "score")
    worst = max(np.abs(found - one).sum(axis=1).max() for one in found) if counted else largest_change(values)
    assert 0.8 * claim < worst <= claim * (1 + 1e-12)


def test_sums_of_own_scores_are_those_of_weighted_residuals():
    rows, form = (
        records((0.5, 1, "v", 2, 0.2), THREE, rest=THREE_REST),
        RowScale(STANDARD, WHOLE, 1.0, 1.0, 1.0),
    )
    score = OwnScore(THIRD, OWN.weights, OWN.centres, np.full(3, 20.0))
    u, _, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    arm, sums = rows.source.arm, release_own_scores(NotingGate(), rows, form, score, pure=True)
    sizes, _ = release_sizes(NotingGate(), rows, form, score, SIZES, pure=True)
    for k in range(3):
        own = arm == k
        left = (u[own] @ OWN.weights[k]) * (y[own] - u[own] @ THIRD.values[k])
        r = (left - OWN.centres[k]) / 20
        wanted = ((1 - r) ** 2 / 4).sum(), ((1 - r**2) / 2).sum(), ((1 + r) ** 2 / 4).sum()
        assert sums[k] == pytest.approx(wanted, abs=1e-4)
        counts = np.histogram(np.abs(r), [0, *SIZES, np.inf])[0]
        assert sizes.reshape(3, -1)[k] == pytest.approx(counts)


def test_moments_are_read_back_by_arm():
    form, rows = scale(4.2, 1.8), records((0.5, 1, "v", 1, 0.2))
    grams, _ = release_arm_grams(NotingGate(), rows, form)
    u, t, y = next(TableRecords(rows.source, rows.features).models(STANDARD))
    v = np.column_stack([u, np.clip((y - 0.1) / 0.5, -1, 1)])
    for arm in (0, 1):
        assert grams[arm] == pytest.approx(v[t == arm].T @ v[t == arm] / 5, abs=1e-4)
    unit = (y - 0.1) / 0.5
    left = release_arm_residuals(NotingGate(), "r", rows, form, LINES, 5.0)
    for arm in (0, 1):
        own = t == arm
        wanted = u[own].T @ (unit[own] - u[own] @ LINES.values[arm]) / 5
        assert left.products[arm] == pytest.approx(wanted, abs=1e-4)
    m0, m1 = u @ LINES.values[0], u @ LINES.values[1]
    score = m1 - m0 - 0.3 + t * (u @ WEIGHTS[1]) * (unit - m1) - (1 - t) * (u @ WEIGHTS[0]) * (unit - m0)
    found = release_arm_score(NotingGate(), rows, form, SCORE, 50.0)
    assert found.score == pytest.approx(score.mean(), abs=1e-3)
    assert found.square == pytest.approx((score**2).mean(), abs=1e-2)


def test_place_of_outcomes_in_a_range_twenty_times_too_wide():
    rng = np.random.default_rng(0)

    class Rows:
        count = 20_000

        @staticmethod
        def parts():
            class Part:
                y = 0.3 + 0.01 * rng_values

            yield Part

        @classmethod
        def run(cls, kernel, *arguments, covariates=True):
            assert not covariates
            return kernel(cls, *arguments)

    rng_values = rng.normal(size=20_000)
    found = release_place(NotingGate(), Rows, pure=False, cells=32)
    assert found.centre == pytest.approx(0.3, abs=0.001)
    assert found.scale == pytest.approx(0.01, rel=0.15)
    assert found.tail < 0.01
    rng_values = np.minimum(rng.exponential(size=20_000) ** 2, 60.0)
    found = release_place(NotingGate(), Rows, pure=False, cells=32)
    assert found.heavy
    # A value that nearly all have, two values, and one value alone: what noise hides may lie anywhere.
    for rare in (
        np.where(rng.random(20_000) < 0.03, 50.0, 0.0),
        np.where(rng.random(20_000) < 0.4, 70.0, -130.0),
    ):
        rng_values = rare
        assert release_place(NotingGate(), Rows, pure=False, cells=32).whole
    rng_values = np.zeros(20_000)
    assert release_place(NotingGate(), Rows, pure=False, cells=8).whole
    # Few outcomes far out of the cells that are looked at again stand where they may be hidden, at their distance.
    rng_values = np.append(rng.normal(size=19_980), np.full(20, 60.0))
    found = release_place(NotingGate(), Rows, pure=False, cells=32)
    far = found.hidden.shares > 0
    assert found.hidden.shares[far].sum() == pytest.approx(0.001)
    assert found.hidden.distances[far] == pytest.approx(0.6, rel=0.3)
    assert found.hidden.distances.max() > 1.0
    lost, noise = found.hidden.lost(lambda distances: np.maximum(distances - 0.1, 0.0)[None])
    assert lost == pytest.approx(0.001 * 0.5, rel=0.35)
    assert noise < 1e-6


NUMBERS, BINARY, LABELS = {"x": cv.Range(-1, 1)}, {"b": cv.Binary()}, {"c": cv.Categories(["u", "v", "w"])}
REST = [(0.1, 0, "u", 0, 0.0), (0.2, 1, "v", 1, 0.5), (-0.3, 0, "w", 0, 0.1), (0.4, 1, "u", 1, -0.2)]
POINTS = (-1.0, -0.7, 0.0, 0.3, 1.0)


def study(*kinds, numbers=1):
    covariates = {}
    for kind in kinds:
        covariates |= kind
    covariates |= {f"x{k}": cv.Range(-1, 1) for k in range(1, numbers)}
    return cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), covariates)


def table(first, declared):
    x, b, c, t, y = zip(first, *REST, strict=True)
    columns = {"x": x, "b": b, "c": c, "t": t, "y": y} | {
        name: x for name in declared.covariates if name.startswith("x")
    }
    return Table.attach({name: list(columns[name]) for name in declared.columns}, declared)


@pytest.mark.parametrize(
    "declared",
    [study(NUMBERS), study(BINARY), study(LABELS), study(NUMBERS, BINARY, LABELS), study(NUMBERS, numbers=6)],
    ids=["number", "binary", "labels", "all", "six numbers"],
)
def test_no_exchange_exceeds_the_claim_and_one_attains_it(declared):
    columns = BalanceColumns.of(declared)
    values = [
        exact_sums(table(record, declared), columns)
        for record in product(POINTS, (0, 1), ("u", "v", "w"), (0, 1), (0.0,))
    ]
    worst, claim = largest_change(values), float(columns.sensitivity)
    assert worst <= claim * (1 + 1e-9)
    assert worst == pytest.approx(claim, rel=1e-5)


def test_both_terms_of_the_bound_can_be_the_larger_one():
    assert float(balance_sums(1, 0, 0)) ** 2 == pytest.approx(2 + 2 + float(SQUARES) ** 2 / 2)
    assert float(balance_sums(6, 0, 0)) ** 2 == pytest.approx(24)
    assert float(balance_sums(0, 1, 0)) ** 2 == pytest.approx(4)
    assert float(balance_sums(0, 0, 2)) ** 2 == pytest.approx(18)


def test_counts_move_by_one_in_each_of_two_cells():
    declared = study(NUMBERS, BINARY, LABELS)
    columns = BalanceColumns.of(declared)
    score = CutScore(np.array([1.0, 0.3, 0.5, -0.2, 0.1]), np.linspace(-0.8, 0.8, CELLS - 1))
    values = []
    for record in product(POINTS, (0, 1), ("u", "v", "w"), (0, 1), (0.0,)):
        gate = NotingGate()
        release_cells(gate, table(record, declared), columns, score, "gaussian")
        values.append(gate.values["counts"])
        assert sum(gate.values["counts"]) == 5
    assert largest_change(values) == pytest.approx(float(gate.sensitivity["counts"]), rel=1e-6)


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(0.4 * rng.standard_normal(n), -1, 1)
    c = rng.choice(["u", "v", "w"], n, p=(0.5, 0.3, 0.2))
    t = (rng.random(n) < 1 / (1 + np.exp(-2 * x - 0.8 * (c == "w")))).astype(int)
    return {"x": x, "b": rng.integers(0, 2, n), "c": c, "t": t, "y": np.zeros(n)}


def test_without_noise_differences_are_those_of_the_data():
    declared = study(NUMBERS, BINARY, LABELS)
    data = people()
    gate = NotingGate()
    found = release_moments(gate, Table.attach(data, declared), BalanceColumns.of(declared))
    gap, _ = differences(found)
    flags = [data["x"], data["b"], *(data["c"] == label for label in "uvw")]
    expected = []
    for values in (np.asarray(flag, float) for flag in flags):
        one, other = values[data["t"] == 1], values[data["t"] == 0]
        expected.append((one.mean() - other.mean()) / np.sqrt((one.var() + other.var()) / 2))
    assert gap == pytest.approx(expected, abs=1e-4)
    assert found.shares[0] == pytest.approx(data["t"].mean())
    (cells,) = score_of(found).cells(BalanceColumns.of(declared), Table.attach(data, declared))
    assert cells.sum() == 3000
    shares = cells[0] / cells.sum(axis=0)
    assert shares[-1] > shares[0] + 0.3

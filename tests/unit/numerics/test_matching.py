import importlib
import sys

import numpy as np
import pytest

import counterveil.numerics as numerics
from counterveil.errors import InternalError, ParameterError
from counterveil.numerics import matching
from counterveil.numerics.matching import adaptive_limit, arm_limits, matching_coefficients

SEVEN_TREATED = np.array([True] * 3 + [False] * 4)
SEVEN_SCORES = np.array([0.40, 0.41, 0.9, 0.40, 0.40, 0.41, 0.41])


def test_seven_rows_whose_capacity_runs_out_give_one_outcome_three_shares():
    matching = matching_coefficients(SEVEN_TREATED, SEVEN_SCORES, 2, 2, 2)
    # The first two controls use up the near treated rows; the last two have row 2 alone.
    np.testing.assert_allclose(7 * matching.coefficients, [2, 2, 3, -1.5, -1.5, -2, -2], rtol=1e-15)
    assert matching.largest == 3 / 7
    assert matching.uses.tolist() == [2, 2, 2, 1, 1, 2, 2]
    assert matching.sizes.tolist() == [2, 2, 2, 2, 2, 1, 1]
    assert (matching.units, matching.kept, matching.short) == (7, 7, 2)
    assert matching.at_limit == 10 / 12
    mirrored = matching_coefficients(~SEVEN_TREATED, SEVEN_SCORES, 2, 2, 2)
    assert mirrored.coefficients.min() == -3 / 7
    assert mirrored.largest == 3 / 7


def test_distances_are_compared_without_rounding():
    # 1 - 1e-17 and 1 - 0 round to the same number, yet 1e-17 is nearer to 1.
    treated, score = np.array([True, False, False]), np.array([1.0, 0.0, 1e-17])
    matching = matching_coefficients(treated, score, 1, None, None, None, "ATT")
    assert matching.uses.tolist() == [0, 0, 1]


def cases(count, top):
    rng = np.random.default_rng(7)
    for _ in range(count):
        n = int(rng.integers(1, top))
        score = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 5, n) / 4
        capacity = None if rng.random() < 0.3 else int(rng.integers(1, 8))
        order = rng.permutation(n) if rng.random() < 0.5 else None
        yield rng.random(n) < 0.4, score, int(rng.integers(1, 6)), capacity, capacity, order


def outcomes():
    found = []
    for case in [*cases(60, 60), *cases(2, 6000)]:
        matching = matching_coefficients(*case)
        parts = (matching.coefficients, matching.uses, matching.sizes)
        found.append((matching.at_limit, *(part.tobytes() for part in parts)))
    return found


def test_plain_python_gives_the_same_bits_as_the_extension(monkeypatch):
    pytest.importorskip("counterveil.numerics._walk", reason="the extension was not built")
    assert matching.walk is not matching.plain_walk
    built = outcomes()
    monkeypatch.setattr(matching, "walk", matching.plain_walk)
    assert outcomes() == built


def test_without_the_extension_the_walk_is_plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "counterveil.numerics._walk", None)
    monkeypatch.delitem(sys.modules, "counterveil.numerics.matching")
    fresh = importlib.import_module("counterveil.numerics.matching")
    monkeypatch.setattr(numerics, "matching", matching)
    assert fresh.walk is fresh.plain_walk


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_a_fault_of_ours(bad):
    with pytest.raises(InternalError, match="CV-X300"):
        matching_coefficients(np.array([True, False]), np.array([0.5, bad]), 1)


@pytest.mark.parametrize(
    ("epsilon", "n_larger", "M1", "limit"),
    [
        (0.5, 608, 100.0, 12),  # sqrt(152) = 12.33
        (4, 608, 12.4, 12),  # sqrt(150.8) = 12.28, below the cap
        (4, 260, 3.8, 3),  # sqrt(19.8) = 4.4, capped at the whole part of M1
        (0.5, 10, 0.4, 1),
    ],
)
def test_the_adaptive_limit_is_the_papers(epsilon, n_larger, M1, limit):
    assert adaptive_limit(epsilon, 0.01, n_larger, M1) == limit


@pytest.mark.parametrize(
    ("limit", "treated", "control", "expected"),
    [
        (8, 139, 608, (8, 2)),
        (8, 608, 139, (2, 8)),
        (1, 10, 90, (1, 1)),
        (5, 50, 50, (5, 5)),
        (3, 0, 0, (3, 3)),
    ],
)
def test_the_larger_arm_has_the_limit_times_the_ratio_of_sizes(limit, treated, control, expected):
    assert arm_limits(limit, treated, control) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"neighbours": 0},
        {"capacity_treated": 0},
        {"capacity_control": -1},
        {"score": np.zeros(2)},
        {"order": np.array([0, 1])},
        {"order": np.array([0, 1, 1])},
        {"order": np.array([-1, 0, 1])},
        {"order": np.array([0, 1, 3])},
        {"estimand": "ATX"},
    ],
)
def test_wrong_arguments_are_refused(change):
    arguments = {"treated": np.array([True, False, True]), "score": np.zeros(3), "neighbours": 1} | change
    with pytest.raises(ParameterError, match="CV-P300"):
        matching_coefficients(**arguments)

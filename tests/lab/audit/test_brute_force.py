import math
from fractions import Fraction

import pytest

from counterveil.errors import ParameterError
from counterveil_lab.audit import (
    Universe,
    all_outcome_changes,
    all_record_replacements,
    check_local_bound,
    check_smooth_bound,
    l1,
    l2,
    largest_change,
)

B = Fraction(3)
GRID = (Fraction(0), B / 2, B)


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def difference_in_means(rows):
    return mean([y for arm, y in rows if arm]) - mean([y for arm, y in rows if not arm])


@pytest.mark.parametrize(("treated", "control"), [(1, 1), (2, 3), (4, 1), (3, 3)])
def test_the_difference_in_means_moves_by_the_range_over_the_smaller_arm(treated, control):
    universe = all_outcome_changes(treated + control, GRID, fixed=[1] * treated + [0] * control)
    change = largest_change(difference_in_means, universe, claimed=B / min(treated, control))
    assert change.largest == B / min(treated, control)
    assert change.attained == 1
    assert not change.violated


def test_a_bound_that_is_too_small_by_any_amount_is_violated():
    universe = all_outcome_changes(3, (0, 1))
    change = largest_change(
        lambda ys: Fraction(sum(ys), 3), universe, claimed=Fraction(1, 3) - Fraction(1, 10**30)
    )
    assert change.violated
    assert "VIOLATED" in str(change)
    assert sum(a != b for a, b in zip(change.first, change.second, strict=True)) == 1


@pytest.mark.parametrize("n", [3, 4])
def test_a_replaced_record_may_change_arms(n):
    def contrast(rows):
        arms = [[Fraction(y) for arm, y in rows if arm == side] for side in (0, 1)]
        means = [mean(arm) if arm else Fraction(0) for arm in arms]
        return means[1] - means[0]

    records = [(arm, y) for arm in (0, 1) for y in (0, 1)]
    change = largest_change(contrast, all_record_replacements(n, records))
    # All treated, one outcome 1 and the others 0: 1/n. That person turns control: 0 - 1.
    assert change.largest == 1 + Fraction(1, n)
    assert largest_change(contrast, all_record_replacements(n, records), claimed=1).violated


def test_a_restricted_universe_keeps_both_neighbours_inside():
    records = [(arm, y) for arm in (0, 1) for y in (0, 1)]
    both_arms = all_record_replacements(3, records).where(lambda rows: {arm for arm, _ in rows} == {0, 1})
    assert all({arm for arm, _ in rows} == {0, 1} for pair in both_arms for rows in pair)
    change = largest_change(difference_in_means, both_arms)
    # By hand, two controls (0, 1) and a treated 0: the second control turns into a treated 1, and 0 - 1/2
    # becomes 1/2 - 0.
    assert change.largest == 1


def test_floats_that_meet_a_claim_are_not_violations_in_the_last_digit():
    universe = all_outcome_changes(3, (0.0, 0.1, 0.7))
    change = largest_change(lambda ys: sum(ys) / 3, universe, claimed=0.7 / 3)
    assert not change.violated
    assert change.attained == pytest.approx(1)


def test_a_statistic_that_is_not_a_number_counts_as_unbounded():
    universe = all_outcome_changes(2, (0, 1))
    change = largest_change(lambda ys: math.nan if sum(ys) == 2 else 0.0, universe, claimed=1)
    assert change.violated


def test_vectors_have_their_distances():
    universe = all_outcome_changes(2, (0, 1, 2))
    pair = lambda ys: (sum(ys), ys[0])  # noqa: E731
    assert largest_change(pair, universe, distance=l1).largest == 4
    assert largest_change(pair, universe, distance=l2).largest == pytest.approx(math.sqrt(8))


def test_a_local_bound_must_cover_every_neighbour():
    universe = all_outcome_changes(3, (0, 1, 2))
    local = lambda ys: max(max(ys), 2 - min(ys))  # noqa: E731
    good = check_local_bound(max, local, universe)
    assert not good.violated
    assert good.attained == 1
    bad = check_local_bound(max, lambda _: 1, universe)
    assert bad.violated
    assert bad.largest == 2
    assert check_local_bound(max, lambda _: 0, universe).largest == math.inf


def test_a_smooth_bound_must_move_slowly():
    universe = all_outcome_changes(4, (0, 1))
    smooth = check_smooth_bound(lambda ys: math.exp(-0.2 * sum(ys)), 0.2, universe)
    assert not smooth.violated
    assert smooth.largest == pytest.approx(0.2)
    assert check_smooth_bound(lambda ys: 1 + sum(ys), 0.2, universe).violated
    assert check_smooth_bound(sum, 0.2, universe).largest == math.inf


def test_a_universe_lists_every_data_set_and_every_pair_once():
    universe = all_outcome_changes(3, ("a", "b", "c"))
    datasets = list(universe.datasets())
    assert len(set(datasets)) == len(datasets) == 27
    pairs = list(universe)
    assert len(pairs) == 27 * 6 // 2
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert set(universe.neighbours(("a", "a", "a"))) == {
        ("b", "a", "a"),
        ("c", "a", "a"),
        ("a", "b", "a"),
        ("a", "c", "a"),
        ("a", "a", "b"),
        ("a", "a", "c"),
    }


def test_universes_that_are_too_large_or_empty_are_refused():
    with pytest.raises(ParameterError, match="CV-A006"):
        all_outcome_changes(40, (0, 1))
    with pytest.raises(ParameterError, match="CV-A001"):
        all_outcome_changes(3, (1, 1))
    with pytest.raises(ParameterError, match="CV-A001"):
        all_outcome_changes(3, (0, 1), fixed=[1])
    with pytest.raises(ParameterError, match="CV-A004"):
        largest_change(sum, Universe(((1,), (2,))))

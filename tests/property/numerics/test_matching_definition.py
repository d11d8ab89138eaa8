import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.numerics.definitions import coefficients_by_definition, match_sets_by_definition
from tests.thinned import examples, thinned, thinned_rows

from counterveil.numerics import matching as match_walk
from counterveil.numerics.matching import matching_coefficients

ROUNDING = 1e-13  # coefficients are sums of at most a few dozen fractions of at most 1


def assert_as_defined(treated, score, neighbours, capacity_treated, capacity_control, order, estimand):
    arguments = (treated, score, neighbours, capacity_treated, capacity_control, order, estimand)
    expected = match_sets_by_definition(*arguments)
    matching = matching_coefficients(*arguments)
    uses = np.zeros(len(treated), int)
    for donors in expected.values():
        uses[donors] += 1
    sizes = [len(donors) for donors in expected.values()]
    np.testing.assert_array_equal(matching.uses, uses)
    np.testing.assert_array_equal(matching.sizes, [len(expected.get(i, [])) for i in range(len(treated))])
    assert matching.units == len(sizes)
    assert matching.unmatched == sizes.count(0)
    assert matching.short == sum(0 < size < neighbours for size in sizes)
    exact = [float(value) for value in coefficients_by_definition(treated, expected)]
    np.testing.assert_allclose(matching.coefficients, exact, rtol=0, atol=ROUNDING)
    limits = {True: capacity_treated, False: capacity_control}
    full = sum(u for u, arm in zip(uses, treated, strict=True) if u == limits[bool(arm)])
    assert matching.at_limit == (full / uses.sum() if uses.sum() else 0)


def draw_scores(rng, n):
    kind = rng.integers(5)
    if kind == 0:
        return rng.random(n)
    if kind == 1:
        return rng.integers(0, 4, n) / 3  # many ties
    if kind == 2:
        return rng.integers(0, 3, n) * 0.5 + rng.integers(0, 2, n) * 1e-17  # distances that round to ties
    if kind == 3:
        return rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)
    return rng.choice([-0.0, 0.0, 0.1, 0.2, 0.1 + 0.2, 0.3, 0.5], n)


@pytest.mark.parametrize("seed", thinned(range(4), 0, 1))
def test_random_cases_equal_the_definition(seed):
    rng = np.random.default_rng(seed)
    for _ in range(500):
        n = int(rng.integers(0, 24))
        capacities = [None if rng.random() < 0.2 else int(rng.integers(1, 12)) for _ in range(2)]
        assert_as_defined(
            rng.random(n) < rng.random(),
            draw_scores(rng, n),
            int(rng.integers(1, 8)),
            *capacities,
            rng.permutation(n),
            ("ATE", "ATT", "ATC")[rng.integers(3)],
        )


@pytest.mark.parametrize(
    ("neighbours", "capacity"), thinned_rows([(1, 1), (2, 1), (1, 2), (2, 3)], (1, 1), (2, 3))
)
def test_every_order_of_four_units_equals_the_definition(neighbours, capacity):
    for pattern in itertools.product([False, True], repeat=4):
        if all(pattern) or not any(pattern):
            continue
        for score in ([0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 1.0, 0.5], [0.3, 0.1, 0.2, 0.4]):
            for order in itertools.permutations(range(4)):
                treated, scores = np.array(pattern), np.array(score)
                assert_as_defined(treated, scores, neighbours, capacity, capacity, np.array(order), "ATE")


@pytest.mark.parametrize("capacity", thinned((1, 2, 5, 255), 2, 5, 255))
@pytest.mark.parametrize("walk", [match_walk.walk, match_walk.plain_walk])
def test_rows_served_by_either_walk_equal_the_definition(capacity, walk, monkeypatch):
    monkeypatch.setattr(match_walk, "walk", walk)
    rng = np.random.default_rng(capacity)
    n = 300 if capacity < 9 else 600
    for share in (0.5, 0.05) if capacity < 9 else (0.002,):
        treated, scores = rng.random(n) < share, draw_scores(rng, n)
        assert_as_defined(treated, scores, 2, capacity, capacity, rng.permutation(n), "ATE")


finite = st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=True)
few = st.sampled_from([0.0, 0.25, 0.5, 5e-324, 1.0])


@st.composite
def problems(draw):
    rows = draw(st.lists(st.tuples(st.booleans(), finite | few), min_size=0, max_size=14))
    limit = st.none() | st.integers(1, 5)
    return (
        np.array([arm for arm, _ in rows], dtype=bool),
        np.array([score for _, score in rows], dtype=float),
        draw(st.integers(1, 5)),
        draw(limit),
        draw(limit),
        np.array(draw(st.permutations(range(len(rows)))), dtype=int),
        draw(st.sampled_from(["ATE", "ATT", "ATC"])),
    )


@settings(max_examples=examples(150, 400))
@given(problems())
def test_any_case_equals_the_definition(problem):
    assert_as_defined(*problem)


@settings(max_examples=examples(100, 200))
@given(problems())
def test_the_coefficients_compare_arms_and_respect_the_limits(problem):
    treated, _, _, capacity_treated, capacity_control, _, _ = problem
    matching = matching_coefficients(*problem)
    total = 1.0 if matching.kept else 0.0
    assert matching.coefficients[treated].sum() == pytest.approx(total, abs=ROUNDING)
    assert matching.coefficients[~treated].sum() == pytest.approx(-total, abs=ROUNDING)
    assert np.all(matching.coefficients[treated] >= 0)
    assert np.all(matching.coefficients[~treated] <= 0)
    for limit, arm in ((capacity_treated, treated), (capacity_control, ~treated)):
        assert limit is None or np.all(matching.uses[arm] <= limit)


@settings(max_examples=100)
@given(problems(), st.randoms(use_true_random=False))
def test_without_a_limit_the_order_does_not_matter(problem, random):
    treated, score, neighbours, _, _, order, estimand = problem
    shuffled = order.tolist()
    random.shuffle(shuffled)
    first = matching_coefficients(treated, score, neighbours, None, None, order, estimand)
    again = matching_coefficients(treated, score, neighbours, None, None, np.array(shuffled, int), estimand)
    np.testing.assert_array_equal(first.coefficients, again.coefficients)

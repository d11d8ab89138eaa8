"""The subset of least variance: equal to brute force, and to hand-made cases."""

from itertools import chain, combinations

import numpy as np
import pytest

from counterveil.inference.pooling import best_subset


def variance(chosen, sizes, variances):
    part = sizes[chosen]
    return float((part**2 * variances[chosen]).sum() / part.sum() ** 2)


def masks(count):
    return ((np.arange(1, 2**count)[:, None] >> np.arange(count)) & 1).astype(bool)


def best_by_force(sizes, variances):
    every = masks(len(sizes)).astype(float)
    return float((every @ (sizes**2 * variances) / (every @ sizes) ** 2).min())


def cases(rng, count):
    """Sizes and variances of many kinds: alike, far apart, whole numbers with ties, zeros."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(1, 2, count), rng.uniform(1, 2, count)
    if kind == 1:
        return np.exp(rng.normal(0, 2, count)), np.exp(rng.normal(0, 3, count))
    if kind == 2:
        return rng.integers(1, 5, count).astype(float), rng.integers(1, 5, count).astype(float)
    return rng.integers(1, 50, count).astype(float), rng.integers(0, 3, count) * rng.uniform(0, 1, count)


def test_equals_brute_force_over_all_subsets():
    rng = np.random.default_rng(11)
    tried = 0
    for count in chain([1, 2, 3, 4, 5, 6, 7, 8] * 400, [9, 10, 11] * 150, [12] * 200):
        sizes, variances = cases(rng, count)
        found = best_subset(sizes, variances)
        assert found.any()
        least = best_by_force(sizes, variances)
        assert variance(found, sizes, variances) == pytest.approx(least, rel=1e-12, abs=1e-300)
        tried += 1
    assert tried == 3850


def test_every_optimum_is_a_prefix_without_ties_across_its_end():
    rng = np.random.default_rng(12)
    for _ in range(300):
        count = int(rng.integers(2, 7))
        sizes = rng.integers(1, 6, count).astype(float)
        variances = rng.integers(1, 6, count).astype(float)
        least = best_by_force(sizes, variances)
        ratio = sizes * variances
        for size in range(1, count + 1):
            for chosen in combinations(range(count), size):
                mask = np.isin(np.arange(count), chosen)
                if variance(mask, sizes, variances) <= least * (1 + 1e-12) and not mask.all():
                    assert ratio[mask].max() < ratio[~mask].min()


def test_a_very_noisy_site_is_left_out_and_a_good_one_kept():
    sizes = np.array([100.0, 100.0, 50.0])
    assert best_subset(sizes, np.array([1.0, 100.0, 1.0])).tolist() == [True, False, True]
    assert best_subset(sizes, np.array([1.0, 1.0, 1.0])).all()
    # A large site with much noise loses against a small one with little.
    assert best_subset(np.array([1000.0, 10.0]), np.array([1.0, 1e-4])).tolist() == [False, True]

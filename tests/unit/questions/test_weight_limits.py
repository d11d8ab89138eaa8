"""Limits of weights: no site above its own, weights from sizes and noise, and an estimate inside its limits."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv

STUDY = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)


def site(rows, seed, epsilon=1):
    source = np.random.default_rng(seed)
    treated = source.permutation(rows) % 2
    data = {"t": treated, "y": np.clip(source.normal(0.4 + 0.1 * treated, 0.2), 0, 1)}
    return cv.ate(data, STUDY, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))


@pytest.fixture(scope="module")
def sites():
    return {"north": site(4000, 1), "south": site(400, 2), "west": site(600, 3)}


def weights(sites, method="ivw", **limits):
    bounds = cv.settings.WeightLimits(**limits) if limits else None
    return {each.name: each.weight for each in cv.pool(sites, method=method, weight_limits=bounds).sites}


@pytest.mark.parametrize("method", ["ivw", "mvagg", "all", "largest", "random_effects"])
def test_no_site_is_above_the_limit_and_all_add_up(sites, method):
    found = weights(sites, method, max_weight=0.4)
    assert max(found.values()) <= 0.4 + 1e-12
    assert sum(found.values()) == pytest.approx(1)


def test_a_site_may_have_a_limit_of_its_own(sites):
    assert weights(sites)["north"] > 0.75
    assert weights(sites, max_weight=0.5)["north"] == pytest.approx(0.5)
    assert weights(sites, max_weight=0.5, own={"north": 0.7})["north"] == pytest.approx(0.7)


def test_a_variance_that_a_site_reports_does_not_make_its_weight(sites):
    known = sites["south"].uncertainty
    bold = replace(sites["south"], uncertainty=replace(known, variance=0.0))
    modest = replace(sites["south"], uncertainty=replace(known, variance=known.variance_cap))
    few = {"west": sites["west"], "east": site(500, 9)}
    # One number for all sites moves with it, so weights move a little and together.
    moved = [weights(few | {"south": each}, max_weight=1)["south"] for each in (bold, modest)]
    believed = [weights(few | {"south": each})["south"] for each in (bold, modest)]
    assert abs(moved[0] - moved[1]) < 0.1 * abs(believed[0] - believed[1])


def test_a_site_is_not_weighed_with_less_than_its_least_variance(sites):
    usual = weights(sites, max_weight=1)
    floored = weights(sites, max_weight=1, min_variance={"north": 1.0})
    assert floored["north"] < 0.01 < usual["north"]


def test_the_estimate_is_cut_to_what_effects_can_be():
    noisy = {name: site(8, seed, epsilon="1/50") for seed, name in enumerate("abcd")}
    high = {name: replace(each, estimate=abs(each.estimate) + 2) for name, each in noisy.items()}
    assert cv.pool(high, method="all").estimate == 1.0

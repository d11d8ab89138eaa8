"""Intervals end where the outcome's declared range does; what was released stays as it was."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.inference.measures import NoisyRatio
from counterveil.privacy.caveats import Target
from counterveil.results.effect import within
from counterveil.session import SeededNoise

# Outcomes of width 2; half of the people are treated.
TRIAL = cv.Study("t", "y", (1, 3), {"g": cv.Categories(["a", "b"])}, treated=1, control=0, randomised=True)
TRUTH, FEW = 0.5, "0.05"


def people(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(rows) % 2
    y = 1.5 + rng.random(rows) * 0.5 + TRUTH * t
    return {"t": t, "y": y, "g": np.array(["a", "b"])[np.arange(rows) // 2 % 2]}


def ask(seed=0, epsilon=FEW, **extra):
    words = {"protects": "outcome", "method": "difference_in_means", "noise": SeededNoise(seed)} | extra
    return cv.ate(people(seed=seed), TRIAL, epsilon=epsilon, **words)


@pytest.mark.parametrize(
    ("ends", "cut"),
    [((-3, 1), (-2, 1)), ((-1, 3), (-1, 2)), ((-9, 9), (-2, 2)), ((3, 4), (2, 2)), ((-4, -3), (-2, -2))],
)
def test_what_lies_beyond_the_limits_is_cut_and_nothing_is_reversed(ends, cut):
    assert within(ends, (-2, 2)) == cut
    assert within(ends, None) == ends


def test_intervals_are_cut_and_cover_no_less_while_what_was_released_stays():
    shorter, beyond = 0, 0
    for seed in range(60):
        found = ask(seed)
        (low, high), (least, most) = found.interval(), found.untruncated_interval()
        assert -2 <= low <= high <= 2
        assert (low <= TRUTH <= high) == (least <= TRUTH <= most)
        assert (low <= 0 <= high) == (found.p_value >= 0.05)
        assert found.estimate == pytest.approx((least + most) / 2)
        assert most - least == pytest.approx(2 * found.uncertainty.half_width(0.95))
        shorter += high - low < most - least
        beyond += abs(found.estimate) > 2
        again = cv.results.Result.from_dict(found.to_dict())
        assert again == found
        assert again.interval() == (low, high)
        (row,) = found.tidy()
        assert (row["conf_low"], row["conf_high"]) == (low, high)
    assert shorter > 40
    assert beyond  # the estimate itself is not moved


def test_intervals_for_something_else_are_left_as_they_are():
    found = replace(ask(), interval_target=Target.ONE_FOLD)
    assert found.interval() == found.untruncated_interval()


def test_pooling_uses_what_was_released():
    sites = [ask(seed) for seed in range(4)]
    for method in ("mvagg", "ivw", "all", "random_effects"):
        pooled = cv.pool(sites, method=method)
        plain = cv.pool([replace(site, limits=None) for site in sites], method=method)
        assert (pooled.estimate, pooled.std_error) == (plain.estimate, plain.std_error)
        assert pooled.untruncated_interval() == plain.interval()
        assert pooled.interval() == within(plain.interval(), (-2, 2))
        assert plain.limits is None
    with pytest.raises(cv.CounterveilError, match="CV-P502"):
        cv.pool([replace(sites[0], limits=(1.0, -1.0)), *sites[1:]])


@pytest.mark.parametrize("method", ["difference_in_means", "weighting"])
def test_effects_of_groups_and_arms_are_cut_too(method):
    groups = cv.groups(
        people(400), TRIAL, by="g", protects="outcome", epsilon=FEW, method=method, noise=SeededNoise(2)
    )
    assert cv.results.GroupsResult.from_dict(groups.to_dict()) == groups
    ends = [*groups.interval().values(), *groups.interval(simultaneous=True).values()]
    assert max(abs(end) for pair in ends for end in pair) == 2
    data = people(200) | {"t": np.arange(200) % 3}
    study = cv.Study("t", "y", (1, 3), {"g": cv.Categories(["a", "b"])}, arms=(0, 1, 2), reference=0)
    arms = cv.arms(data, study, protects="outcome", epsilon=FEW, method=method, noise=SeededNoise(2))
    assert cv.results.ArmsResult.from_dict(arms.to_dict()) == arms
    for mean in arms.means:
        assert mean.interval() == within(replace(mean.known, limits=None).interval(mean.level), (1, 3))
    ends = [*arms.interval().values(), *arms.interval(simultaneous=True).values()]
    assert max(abs(end) for pair in ends for end in pair) == 2


def test_noisy_ratios_beyond_what_is_possible_are_the_nearer_end():
    for sign in (-1, 1):
        found = NoisyRatio(sign * 300.0, 100.0, 0.01, 0.1, 0.1, limit=2.0)
        assert found.interval(0.95) == (2.0 * sign, 2.0 * sign)

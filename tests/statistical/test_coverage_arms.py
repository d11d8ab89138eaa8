"""Intervals of several arms, one by one and together, cover as often as they say."""

import pytest
from tests.unit.questions.arm_trials import GAINS, METHODS, ask, study, trial


def coverage(method, draws, epsilon, confounded, n=400):
    alone = together = both_alone = 0
    for seed in range(draws):
        data = trial(n, seed=1000 + seed, confounded=confounded)
        result = ask(data, study(), seed=seed, epsilon=epsilon, method=method)
        inside = [
            low <= t <= high for (low, high), t in zip(result.interval().values(), GAINS[1:], strict=True)
        ]
        all_of = result.interval(simultaneous=True).values()
        alone += sum(inside) / 2
        together += all(low <= t <= high for (low, high), t in zip(all_of, GAINS[1:], strict=True))
        both_alone += all(inside)
    return alone / draws, together / draws, both_alone / draws


def least(draws):
    """Three standard errors below 93 %."""
    return 0.93 - 3 * (0.93 * 0.07 / draws) ** 0.5


def test_coverage_of_plain_means():
    alone, together, both_alone = coverage("difference_in_means", 80, 1, confounded=False)
    assert alone >= least(80)
    assert together >= least(80)
    # Single intervals do not hold together as often: what the simultaneous ones are for.
    assert both_alone < together


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.5, 2, 8])
def test_coverage_over_many_draws(method, epsilon):
    confounded = method != "difference_in_means"
    alone, together, _ = coverage(method, 300, epsilon, confounded=confounded, n=1000)
    assert min(alone, together) >= 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5

"""The tester of one run: a bound that holds, and that catches a third of the noise."""

from dataclasses import dataclass

import numpy as np
import pytest

from counterveil.audit import OneRunTester, ThresholdTester, audit
from counterveil.audit.one_run import one_run_epsilon
from counterveil.errors import ParameterError
from counterveil.privacy import Budget


@dataclass(frozen=True)
class Responses:
    """Randomized response of every canary: the best case for one run."""

    epsilon: float

    def sample(self, dataset, count, rng):
        return self.scores(rng.random(count) < 0.5, rng)

    def scores(self, forms, rng):
        truth = 1 / (1 + np.exp(-self.epsilon))
        told = np.where(rng.random(len(forms)) < truth, forms, ~forms)
        return np.where(told, 1.0, -1.0)


def test_randomized_response_passes_and_more_truth_is_caught():
    report = audit(Budget(1), Responses(1.0), Responses(3.0), [(0, 1)], [OneRunTester(1000)], seed=1)
    assert report.passed, str(report)
    assert report.rows[0].ours.found > 0.6


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_bound_is_rarely_above_the_truth(delta):
    rng = np.random.default_rng(2)
    right = rng.binomial(200, 1 / (1 + np.exp(-1.0)), 400)
    counts, times = np.unique(right, return_counts=True)
    above = [one_run_epsilon(int(count), 200, 200, delta, 0.05) > 1 for count in counts]
    assert np.average(above, weights=times) <= 0.08


def test_the_bound_is_that_of_a_binomial_tail():
    # 100 of 100 right: (e^eps / (1 + e^eps))^100 = .05.
    truth = 0.05 ** (1 / 100)
    assert one_run_epsilon(100, 100, 100, 0.0, 0.05) == pytest.approx(np.log(truth / (1 - truth)), rel=1e-6)
    assert one_run_epsilon(50, 100, 100, 0.0, 0.05) == 0
    assert one_run_epsilon(100, 100, 100, 1e-3, 0.05) < one_run_epsilon(100, 100, 100, 0.0, 0.05)


def test_a_mechanism_without_canaries_is_refused():
    class Plain:
        def sample(self, dataset, count, rng):
            return rng.random(count)

    with pytest.raises(ParameterError, match="CV-A002"):
        OneRunTester().examine(Plain(), (0, 1), Budget(1), error=0.05, rng=np.random.default_rng(1))
    with pytest.raises(ParameterError, match="CV-A001"):
        OneRunTester(canaries=1)
    assert ThresholdTester().name != OneRunTester().name

"""The testers of many runs and of one: bounds that hold, and that catch a third of the noise."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from counterveil.errors import ParameterError
from counterveil.privacy import Budget
from counterveil_lab.audit import LikelihoodRatio, OneRunTester, ThresholdTester, audit
from counterveil_lab.audit.threshold import lower_bound, one_run_epsilon, upper_bound

PAIR = (0.0, 1.0)
ERROR = 1e-3


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("error", [0.2, 0.01])
def test_clopper_pearson_limits_cover_for_every_probability(trials, error):
    # Coverage is computed, not simulated: the sum of the binomial weights whose limits miss.
    hits = np.arange(trials + 1)
    low, high = lower_bound(hits, trials, error), upper_bound(hits, trials, error)
    for probability in np.linspace(0.001, 0.999, 97):
        weights = binom.pmf(hits, trials, probability)
        assert weights[low > probability].sum() <= error * (1 + 1e-9)
        assert weights[high < probability].sum() <= error * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_bound_on_laplace_is_close_to_epsilon_and_below_it(toys, rng, epsilon):
    tester = ThresholdTester(samples=100_000)
    finding = tester.examine(toys.Laplace(1 / epsilon), PAIR, Budget(epsilon), error=ERROR, rng=rng)
    assert finding.confidence == 1 - ERROR
    assert epsilon - max(0.05, 0.08 * epsilon) <= finding.found <= epsilon


def test_the_bound_is_wrong_no_more_often_than_allowed(toys):
    # 300 small audits of a tight distribution with error 0.2: the number of false alarms is at most binomial.
    tester = ThresholdTester(samples=200)
    alarms = 0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        finding = tester.examine(toys.Laplace(1.0), PAIR, Budget(1), error=0.2, rng=generator)
        alarms += finding.violated
    assert alarms <= binom.ppf(0.999, 300, 0.2)


def test_delta_lowers_the_bound(toys, rng):
    mechanism, tester = toys.Gaussian(1.0), ThresholdTester()
    exact = float(toys.gaussian_delta(1.0, 1.0))
    honest = tester.examine(mechanism, PAIR, Budget(1, exact), error=ERROR, rng=rng)
    assert 0.7 < honest.found <= 1
    pure = tester.examine(mechanism, PAIR, Budget(1), error=ERROR, rng=rng)
    assert pure.found > 2


def test_noise_that_is_forgotten_now_and_then_is_caught(toys, rng):
    finding = ThresholdTester().examine(toys.Forgetful(1.0), PAIR, Budget(1), error=ERROR, rng=rng)
    assert finding.violated
    assert "score = " in finding.witness


def test_a_changed_spread_is_caught_by_intervals(toys, rng):
    finding = ThresholdTester().examine(toys.Spread(), (1.0, 4.0), Budget(1), error=ERROR, rng=rng)
    assert finding.found > 2


def test_a_vector_is_projected_on_a_trained_direction(toys, rng):
    pair = (np.zeros(5), np.array([0.6, 0.0, -0.8, 0.0, 0.0]))
    finding = ThresholdTester().examine(toys.L2Ball(1 / 2), pair, Budget(2), error=ERROR, rng=rng)
    assert 0.8 < finding.found <= 2


def test_the_likelihood_ratio_is_at_least_as_good_a_score(toys):
    pair = (np.zeros(5), np.array([0.6, 0.0, -0.8, 0.0, 0.0]))
    claim = Budget(2)
    trained, best = (
        tester.examine(toys.L2Ball(1 / 2), pair, claim, error=ERROR, rng=np.random.default_rng(5)).found
        for tester in (ThresholdTester(), ThresholdTester(projections=(LikelihoodRatio(),)))
    )
    assert best >= trained - 0.02
    assert best <= 2


def test_heavy_tails_do_not_blind_the_trained_direction(rng):
    class Cauchy:
        def sample(self, dataset, count, rng):
            return np.asarray(dataset) + rng.standard_cauchy((count, 2))

    finding = ThresholdTester().examine(
        Cauchy(), (np.zeros(2), np.full(2, 3.0)), Budget(1), error=ERROR, rng=rng
    )
    assert finding.found > 1.5


def test_outputs_that_cannot_be_audited_are_refused(rng):
    class Bad:
        def __init__(self, function):
            self.function = function

        def sample(self, dataset, count, rng):
            return self.function(dataset, count)

    bad = [
        lambda _, count: np.full(count, np.nan),
        lambda _, count: np.zeros(count + 1),
        lambda dataset, count: np.zeros((count, 1 + int(dataset))),
    ]
    for function in bad:
        with pytest.raises(ParameterError, match="CV-A003"):
            ThresholdTester(samples=100).examine(Bad(function), PAIR, Budget(1), error=ERROR, rng=rng)


def test_settings_out_of_range_are_refused(toys, rng):
    with pytest.raises(ParameterError, match="CV-A001"):
        ThresholdTester(samples=2)
    with pytest.raises(ParameterError, match="CV-A001"):
        ThresholdTester(samples=100).examine(toys.Laplace(1.0), PAIR, Budget(1), error=0.0, rng=rng)
    with pytest.raises(ParameterError, match="CV-A002"):
        ThresholdTester(100, (LikelihoodRatio(),)).examine(
            toys.Forgetful(1.0), PAIR, Budget(1), error=ERROR, rng=rng
        )


def test_events_are_counted_on_samples_they_were_not_chosen_on(rng):
    class OnlyAtFirst:
        """Tells the data sets apart in the training half and not at all in the other."""

        def sample(self, dataset, count, rng):
            return np.where(np.arange(count) < count // 2, float(dataset), 0.0) + rng.normal(0, 1e-3, count)

    finding = ThresholdTester(samples=10_000).examine(OnlyAtFirst(), PAIR, Budget(1), error=ERROR, rng=rng)
    assert finding.found < 0.01


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

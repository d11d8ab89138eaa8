import numpy as np
import pytest

from counterveil.errors import ParameterError
from counterveil.privacy import Budget
from counterveil_lab.audit import (
    WEAKENED_FACTOR,
    Cloud,
    ExactTester,
    LikelihoodRatio,
    Points,
    ThresholdTester,
    Verdict,
    all_outcome_changes,
    audit,
)

PAIRS = [(0.0, 1.0), (0.5, 0.0)]
TESTERS = (ExactTester(), ThresholdTester())


def run(claim, mechanism, testers=TESTERS, pairs=PAIRS, **options):
    weakened = mechanism.with_noise_factor(WEAKENED_FACTOR)
    return audit(claim, mechanism, weakened, pairs, testers, seed=1, **options)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_honest_laplace_noise_passes(toys, epsilon):
    report = run(Budget(epsilon), toys.Laplace(1 / epsilon))
    assert report.verdict is Verdict.PASSED, str(report)
    assert [row.verdict for row in report.rows] == [Verdict.PASSED, Verdict.PASSED]


def test_honest_gaussian_noise_passes(toys):
    report = run(Budget(1, float(toys.gaussian_delta(1.0, 1.0))), toys.Gaussian(1.0))
    assert report.passed, str(report)


def test_honest_vector_noise_passes(toys):
    pair = (np.zeros(3), np.array([0.0, 1.0, 0.0]))
    testers = (ExactTester(Cloud()), ThresholdTester(), ThresholdTester(projections=(LikelihoodRatio(),)))
    assert run(Budget(1), toys.L2Ball(1.0), testers, [pair]).passed
    claim = Budget(1, float(toys.gaussian_delta(1.0, 1.0)))
    assert run(claim, toys.GaussianVector(1.0), testers[1:], [pair]).passed


def test_a_wrong_sensitivity_is_violated(toys):
    # Noise calibrated to a change of 1 where a change of 1.5 is possible.
    report = run(Budget(1), toys.Laplace(1.0), pairs=[(0.0, 1.0), (0.0, 1.5)])
    assert report.verdict is Verdict.VIOLATED
    assert {row.verdict for row in report.rows} == {Verdict.VIOLATED}
    assert "VIOLATED" in str(report)
    assert report.rows[0].ours.witness in str(report)


def test_too_few_samples_are_inconclusive_and_never_passed(toys):
    report = run(Budget(1), toys.Laplace(1.0), (ThresholdTester(samples=30),))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert not report.passed


def test_one_blind_tester_makes_the_whole_audit_inconclusive(toys):
    report = run(Budget(1), toys.Laplace(1.0), (ExactTester(), ThresholdTester(samples=30)))
    assert [row.verdict for row in report.rows] == [Verdict.PASSED, Verdict.INCONCLUSIVE]
    assert report.verdict is Verdict.INCONCLUSIVE


def test_neighbours_that_hardly_differ_are_inconclusive(toys):
    report = run(Budget(1), toys.Laplace(1.0), pairs=[(0.0, 0.1)])
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_coarse_integral_is_inconclusive(toys):
    report = run(Budget(1, 1e-3), toys.Geometric(1.0), (ExactTester(Points.integers(-5, 6)),), [(0, 1)])
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_universe_serves_as_neighbours(toys):
    class Mean(toys.Laplace):
        def sample(self, dataset, count, rng):
            return super().sample(sum(dataset) / len(dataset), count, rng)

        def log_density(self, dataset, outputs):
            return super().log_density(sum(dataset) / len(dataset), outputs)

    report = run(Budget(1), Mean(1 / 3), (ExactTester(),), all_outcome_changes(3, (0, 1)))
    assert report.pairs == 12
    assert report.passed, str(report)


def test_the_same_seed_gives_the_same_report_and_testers_do_not_disturb_each_other(toys):
    first = run(Budget(1), toys.Laplace(1.0), (ThresholdTester(samples=4000),), [PAIRS[0]])
    again = run(Budget(1), toys.Laplace(1.0), (ThresholdTester(samples=4000),), [PAIRS[0]])
    assert first == again
    both = run(Budget(1), toys.Laplace(1.0), (ThresholdTester(samples=4000), ExactTester()), [PAIRS[0]])
    # The error is shared, so the bound is a little lower; the samples, and so the event, are the same.
    assert both.rows[0].ours.witness.split(" (")[0] == first.rows[0].ours.witness.split(" (")[0]


def test_the_error_is_shared_among_pairs_and_testers(toys):
    report = run(
        Budget(1), toys.Laplace(1.0), (ExactTester(), ThresholdTester(samples=1000)), confidence=0.99
    )
    assert report.rows[1].ours.confidence == pytest.approx(1 - 0.01 / 4)
    assert report.rows[0].ours.confidence == 1


def test_an_audit_of_nothing_is_refused(toys):
    for pairs, testers in (([], TESTERS), (PAIRS, ())):
        with pytest.raises(ParameterError, match="CV-A004"):
            run(Budget(1), toys.Laplace(1.0), testers, pairs)


def test_the_weakened_copy_must_be_another_object(toys):
    mechanism = toys.Laplace(1.0)
    with pytest.raises(ParameterError, match="CV-A008"):
        audit(Budget(1), mechanism, mechanism, PAIRS, TESTERS, seed=1)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2.0])
def test_the_confidence_must_be_a_probability(toys, confidence):
    with pytest.raises(ParameterError, match="CV-A001"):
        run(Budget(1), toys.Laplace(1.0), confidence=confidence)

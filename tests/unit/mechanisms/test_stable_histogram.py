"""Labels that nobody declared: exact probabilities of all outcomes on all small neighbours."""

from itertools import product
from math import exp

import numpy as np
import pytest

import counterveil as cv
from counterveil.mechanisms import SeededNoise, StableHistogram

BUDGETS = [(1.0, 1e-2), (0.5, 1e-3), (3.0, 1e-4)]
# Sums of a few thousand doubles.
ROUNDING = 1e-12


def shown(count, epsilon, threshold, most, share=1.0):
    """Probabilities of what is shown of a label: hidden first, then each noisy count up to `most` and beyond."""
    if not count:
        return np.array([1.0] + [0.0] * (most - threshold + 1))
    scale = share * 2 / epsilon
    edges = np.arange(threshold + 0.5, most + 1) - count
    tail = np.where(edges > 0, np.exp(-np.abs(edges) / scale) / 2, 1 - np.exp(-np.abs(edges) / scale) / 2)
    return np.concatenate([[1 - tail[0]], tail[:-1] - tail[1:], tail[-1:]])


def excess(one, two, epsilon, threshold, share=1.0):
    """The least delta for two data sets, given by the counts of the labels in which they differ."""
    most = threshold + 40
    parts = [[shown(count, epsilon, threshold, most, share) for count in counts] for counts in (one, two)]
    joint = [part[0] if len(part) == 1 else np.outer(*part) for part in parts]
    return float(np.maximum(joint[0] - exp(epsilon) * joint[1], 0).sum())


def neighbours(most):
    """Counts of the labels that one row leaves and enters, before and after; a row may have no label."""
    for count in range(most):
        yield (count,), (count + 1,)
        yield (count + 1,), (count,)
    for left, entered in product(range(1, most + 1), range(most)):
        yield (left, entered), (left - 1, entered + 1)


def worst(epsilon, threshold, share=1.0, most=None):
    beyond = threshold + 3 if most is None else most
    return max(excess(one, two, epsilon, threshold, share) for one, two in neighbours(beyond))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_no_neighbours_exceed_the_claim(epsilon, delta):
    threshold = StableHistogram(epsilon, delta).threshold
    assert worst(epsilon, threshold) <= delta + ROUNDING


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_claim_is_nearly_reached_and_less_noise_exceeds_it(epsilon, delta):
    threshold = StableHistogram(epsilon, delta).threshold
    # The threshold is rounded up by less than one, and halves count for the label: at most one step and a half.
    assert worst(epsilon, threshold, most=1) >= delta * exp(-epsilon * 1.5 / 2)
    assert worst(epsilon, threshold, share=1 / 3) > delta
    # A third of the noise with a threshold that suits it.
    assert worst(epsilon, StableHistogram(3 * epsilon, delta).threshold, share=1 / 3) > delta


def test_a_lower_threshold_exceeds_the_claim():
    # Here rounding takes away next to nothing, so that two steps less show.
    epsilon, delta = 1.0, exp(-5.0) / 2
    threshold = StableHistogram(epsilon, delta).threshold
    assert worst(epsilon, threshold) <= delta < worst(epsilon, threshold - 2)


def test_the_sampler_has_these_probabilities():
    mechanism, draws = StableHistogram(1, "0.05"), 6_000
    threshold = mechanism.threshold
    counts = dict.fromkeys(range(draws), 4)
    found = mechanism.release(counts, SeededNoise(5))
    wanted = shown(4, 1.0, threshold, threshold + 60)
    assert abs(len(found) / draws - (1 - wanted[0])) < 4 * (wanted[0] / draws) ** 0.5
    exactly = sum(count == threshold + 1 for count in found.values()) / draws
    assert abs(exactly - wanted[1]) < 4 * (wanted[1] / draws) ** 0.5


def test_the_gate_charges_every_column_its_part_of_delta():
    from counterveil.privacy import ApproximateEvent
    from counterveil.session import Gate, Kind, Plan

    kinds = {"x": Kind.LABELS, "y": Kind.LABELS}
    plan = Plan.split(cv.Budget(1, "1e-6"), {"x": 1, "y": 1}, "laplace", kinds)
    half = ApproximateEvent(plan.amount("x", Kind.LABELS), plan.budget.delta / 2)
    assert plan.charge.events == (half, half)
    gate = Gate(plan, SeededNoise(1))
    gate.release_labels("x", {"a": 500})
    with pytest.raises(cv.CounterveilError, match="CV-X003"):
        gate.release_labels("x", {"a": 500})

"""Every mechanism under the auditor: it must pass, and a copy with a third of its noise must be caught."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from counterveil.audit import Cloud, ExactTester, Line, Points, ThresholdTester, audit
from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    Grid,
    Laplace,
    Lomax,
    RandomizedResponse,
    ScaledNoise,
    SeededNoise,
    Staircase,
    StudentT,
)
from counterveil.privacy import Budget

SAMPLES = 40_000
GRID = Grid(Fraction(1, 2**20))


def seeded(rng):
    return SeededNoise(int(rng.integers(2**60)))


@dataclass(frozen=True)
class Additive:
    """A release of value + noise; a data set is (value, smooth sensitivity)."""

    mechanism: object
    shrink: int = 1

    def noise(self, smooth):
        known = not hasattr(self.mechanism, "distribution")
        noise = self.mechanism if known else self.mechanism.distribution(Fraction(smooth))
        return ScaledNoise(noise.unit, noise.scale / self.shrink)

    def sample(self, dataset, count, rng):
        value, smooth = dataset
        units = self.noise(smooth).draw(count, GRID, seeded(rng)) + GRID.units(Fraction(value))
        return units.astype(float) * float(GRID.step)

    def log_density(self, dataset, outputs):
        value, smooth = dataset
        return self.noise(smooth).log_density(outputs - value)


@dataclass(frozen=True)
class Vector:
    """A release of a vector with noise of the ball or the box."""

    mechanism: Ball | Box

    def sample(self, dataset, count, rng):
        source, values = seeded(rng), [Fraction(value) for value in dataset]
        return np.array([self.mechanism.release(values, GRID, source) for _ in range(count)], dtype=float)

    def log_density(self, dataset, outputs):
        return self.mechanism.log_density(outputs - np.asarray(dataset))


@dataclass(frozen=True)
class Answer:
    """One randomized answer."""

    mechanism: RandomizedResponse

    def sample(self, dataset, count, rng):
        return self.mechanism.release_many(np.full(count, dataset), seeded(rng)).astype(float)

    def log_density(self, dataset, outputs):
        return np.log(self.mechanism.probabilities[dataset, outputs.astype(int)])


KNOWN = [((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (0.5, 1.0))]
GROWN = float(np.exp(0.1))
SMOOTH = [((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (1.0, GROWN)), ((0.0, GROWN), (0.0, 1.0))]
ONE = Budget(1)


@pytest.mark.parametrize(
    ("claim", "mechanism", "pairs"),
    [
        (ONE, Laplace(1, 1), KNOWN),
        (ONE, Staircase(1, 1), KNOWN),
        (Budget(1, "1e-3"), Gaussian.calibrated(1, Budget(1, "1e-3")), KNOWN),
        (ONE, Lomax(1, "1/10"), SMOOTH),
        (ONE, StudentT(1, "1/10"), SMOOTH),
    ],
    ids=["laplace", "staircase", "gaussian", "lomax", "student"],
)
def test_additive_noise_passes_and_a_third_of_it_is_caught(claim, mechanism, pairs):
    # The staircase has jumps, which the pilot grid of the tester must not miss: centres are given.
    line = Line(centres=(0.0, 1.0), scale=0.5)
    testers = [ExactTester(line), ThresholdTester(SAMPLES)]
    report = audit(claim, Additive(mechanism), Additive(mechanism, 3), pairs, testers, seed=1)
    assert [row.verdict.value for row in report.rows] == ["passed", "passed"], str(report)


def test_ball_noise_passes_and_a_third_of_it_is_caught():
    pairs = [((0.0, 0.0, 0.0), (0.6, 0.64, 0.48))]
    ours, third = Vector(Ball(1, 1, 3)), Vector(Ball("1/3", 1, 3))
    testers = [ExactTester(Cloud(draws=512)), ThresholdTester(3_000)]
    report = audit(ONE, ours, third, pairs, testers, seed=1)
    assert [row.verdict.value for row in report.rows] == ["passed", "passed"], str(report)


def test_box_noise_passes_and_a_third_of_it_is_caught():
    pairs = [((0.0, 0.0, 0.0), (1.0, -1.0, 1.0))]
    ours, third = Vector(Box(1, 1, 3)), Vector(Box("1/3", 1, 3))
    testers = [ExactTester(Cloud(draws=512)), ThresholdTester(3_000)]
    report = audit(ONE, ours, third, pairs, testers, seed=1)
    assert [row.verdict.value for row in report.rows] == ["passed", "passed"], str(report)


@pytest.mark.parametrize("categories", [2, 4])
def test_randomized_response_passes_and_a_third_of_the_lies_is_caught(categories):
    mechanism = RandomizedResponse(1, categories)
    lies = (1 - mechanism.truth) / 3
    third = RandomizedResponse(float(np.log((1 - lies) * (categories - 1) / lies)), categories)
    testers = [ExactTester(Points.integers(0, categories - 1)), ThresholdTester(SAMPLES)]
    report = audit(ONE, Answer(mechanism), Answer(third), [(0, 1)], testers, seed=1)
    assert [row.verdict.value for row in report.rows] == ["passed", "passed"], str(report)

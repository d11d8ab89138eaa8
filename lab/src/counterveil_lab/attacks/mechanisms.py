"""Every mechanism as the auditor sees it: a release of given numbers, on the neighbours that it must hide best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, tanh
from typing import Any

import numpy as np

from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    Grid,
    Laplace,
    Lomax,
    Noise,
    RandomizedResponse,
    ScaledNoise,
    SeededNoise,
    StableHistogram,
    Staircase,
    SummedBall,
    SummedGaussian,
    SummedLaplace,
)
from counterveil.privacy import Budget
from counterveil_lab.attacks.asking import WEAKER, fewer_lies
from counterveil_lab.audit import Cloud, ExactTester, Given, Line, Points, Tester, ThresholdTester
from counterveil_lab.audit.report import FloatArray, Mechanism, Pair

GRID = Grid(Fraction(1, 2**20))
_PURE, _APPROXIMATE = Budget(1), Budget(1, "1e-3")
_SMOOTHNESS = Fraction(1, 10)


def _seeded(rng: np.random.Generator) -> SeededNoise:
    return SeededNoise(int(rng.integers(2**60)))


@dataclass(frozen=True)
class Additive:
    """A release of value + noise; a data set is (value, smooth sensitivity), of which known noise has no use."""

    mechanism: Noise | Lomax
    shrink: int = 1

    def noise(self, smooth: float) -> ScaledNoise:
        """Return the noise on a data set of this smooth sensitivity."""
        known = isinstance(self.mechanism, Noise)
        noise: Any = self.mechanism if known else self.mechanism.distribution(Fraction(smooth))  # type: ignore[union-attr]
        return ScaledNoise(noise.unit, noise.scale / self.shrink)

    def sample(self, dataset: tuple[float, float], count: int, rng: np.random.Generator) -> FloatArray:
        """Return exact draws on the grid."""
        value, smooth = dataset
        units = self.noise(smooth).draw(count, GRID, _seeded(rng)) + GRID.units(Fraction(value))
        found: FloatArray = units.astype(float) * float(GRID.step)
        return found

    def log_density(self, dataset: tuple[float, float], outputs: FloatArray) -> FloatArray:
        """Return the log density of the noise at its place."""
        value, smooth = dataset
        return self.noise(smooth).log_density(outputs - value)


@dataclass(frozen=True)
class Vector:
    """A release of a vector with the noise of a ball or a box."""

    mechanism: Ball | Box

    def sample(self, dataset: tuple[float, ...], count: int, rng: np.random.Generator) -> FloatArray:
        """Return exact draws on the grid."""
        source, values = _seeded(rng), [Fraction(value) for value in dataset]
        return np.array([self.mechanism.release(values, GRID, source) for _ in range(count)], dtype=float)

    def log_density(self, dataset: tuple[float, ...], outputs: FloatArray) -> FloatArray:
        """Return the log density of the noise at its place."""
        return self.mechanism.log_density(outputs - np.asarray(dataset))


@dataclass(frozen=True)
class Answer:
    """One randomized answer."""

    mechanism: RandomizedResponse

    def sample(self, dataset: int, count: int, rng: np.random.Generator) -> FloatArray:
        """Return independent answers."""
        return self.mechanism.release_many(np.full(count, dataset), _seeded(rng)).astype(float)

    def log_density(self, dataset: int, outputs: FloatArray) -> FloatArray:
        """Return the log probabilities."""
        found: FloatArray = np.log(self.mechanism.probabilities[dataset, outputs.astype(int)])
        return found


@dataclass(frozen=True)
class Labels:
    """Labels that many rows have; a data set says how many rows have each of two, and the other way round."""

    mechanism: StableHistogram
    threshold: int

    def sample(self, dataset: tuple[int, int], count: int, rng: np.random.Generator) -> FloatArray:
        """Return by how much the first noisy count exceeds the second; a hidden one counts as at the threshold."""
        # Every copy of a label has noise of its own, so that one release holds all samples.
        copies = {
            (label, place): rows for label, rows in enumerate(dataset) if rows for place in range(count)
        }
        shown = self.mechanism.release(copies, _seeded(rng))
        pairs = [[shown.get((label, place), self.threshold) for label in (0, 1)] for place in range(count)]
        return np.array([[first - second] for first, second in pairs], dtype=np.float64)


@dataclass(frozen=True)
class Shares:
    """A sum of sites' numbers, less the shares of those that collude: the noise of the honest is left."""

    mechanism: SummedLaplace
    step: Fraction = Fraction(1, 4)

    def sample(self, dataset: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Return the sums of the honest sites, in steps."""
        source, value = _seeded(rng), Fraction(dataset)
        sites = [(value, *(Fraction(0),) * (self.mechanism.honest - 1))] * count
        parts = [self.mechanism.release_all(one, Grid(self.step), source) for one in sites]
        return np.array([float(sum(part) / self.step) for part in parts])

    def log_density(self, dataset: float, outputs: FloatArray) -> FloatArray:
        """Return the log probabilities of the sums: discrete Laplace noise."""
        decay = float(self.step / self.mechanism.scale)
        return -decay * np.abs(outputs - dataset / float(self.step)) + log(tanh(decay / 2))


@dataclass(frozen=True)
class NormalShares:
    """The same for shares of normal numbers, on a fine grid; `law` is the noise of the honest together."""

    mechanism: SummedGaussian | SummedBall
    law: Gaussian | Ball

    def sample(self, dataset: tuple[float, ...], count: int, rng: np.random.Generator) -> FloatArray:
        """Return the sums of the honest sites."""
        source, values = _seeded(rng), [Fraction(value) for value in dataset]
        sites = [values, *([Fraction(0)] * len(values),) * (self.mechanism.honest - 1)]
        drawn = [[self.mechanism.release_all(one, GRID, source) for one in sites] for _ in range(count)]
        sums: FloatArray = np.array(drawn, dtype=float).sum(axis=1)
        return sums if len(values) > 1 else sums[:, 0]

    def log_density(self, dataset: tuple[float, ...], outputs: FloatArray) -> FloatArray:
        """Return the log density of the noise of the honest at its place."""
        return self.law.log_density(outputs - np.asarray(dataset))


@dataclass(frozen=True)
class AuditedMechanism:
    """A mechanism, its copy with a third of the noise, and the pairs and testers they are audited with."""

    name: str
    claim: Budget
    ours: Mechanism
    weakened: Mechanism
    pairs: tuple[Pair, ...]
    testers: Callable[[int], list[Tester]]
    samples: int = 40_000


_KNOWN = (((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (0.5, 1.0)))
_GROWN = exp(_SMOOTHNESS)
_SMOOTH = (((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (1.0, _GROWN)), ((0.0, _GROWN), (0.0, 1.0)))
# The staircase has jumps, which the pilot grid of the tester must not miss: centres are given.
_LINE = Line(centres=(0.0, 1.0), scale=0.5)


def _additive(
    name: str, claim: Budget, mechanism: Noise | Lomax, pairs: tuple[Pair, ...]
) -> AuditedMechanism:
    def testers(samples: int) -> list[Tester]:
        return [ExactTester(_LINE), ThresholdTester(samples)]

    return AuditedMechanism(name, claim, Additive(mechanism), Additive(mechanism, WEAKER), pairs, testers)


def _response(categories: int) -> AuditedMechanism:
    mechanism = RandomizedResponse(1, categories)

    def testers(samples: int) -> list[Tester]:
        return [ExactTester(Points.integers(0, categories - 1)), ThresholdTester(samples)]

    weak = Answer(fewer_lies(mechanism, WEAKER))
    return AuditedMechanism(f"response of {categories}", _PURE, Answer(mechanism), weak, ((0, 1),), testers)


def _vector(name: str, shape: type[Ball] | type[Box], apart: tuple[float, ...]) -> AuditedMechanism:
    def testers(samples: int) -> list[Tester]:
        return [ExactTester(Cloud(draws=512)), ThresholdTester(samples)]

    pairs = (((0.0, 0.0, 0.0), apart),)
    ours, third = Vector(shape(1, 1, 3)), Vector(shape(Fraction(1, WEAKER), 1, 3))
    return AuditedMechanism(name, _PURE, ours, third, pairs, testers, 3_000)


def _shares() -> AuditedMechanism:
    def testers(samples: int) -> list[Tester]:
        return [ExactTester(Points.integers(-80, 84)), ThresholdTester(samples)]

    ours, third = (Shares(SummedLaplace(Fraction(1, part), 1, 3, 2)) for part in (1, WEAKER))
    return AuditedMechanism("shares of laplace", _PURE, ours, third, ((0.0, 1.0),), testers, 3_000)


def _normal_shares() -> AuditedMechanism:
    def testers(samples: int) -> list[Tester]:
        return [ExactTester(_LINE), ThresholdTester(samples)]

    laws = [Gaussian.calibrated(Fraction(1, part), _APPROXIMATE) for part in (1, WEAKER)]
    ours, third = (NormalShares(SummedGaussian(law.sensitivity, law.mu, 3, 2), law) for law in laws)
    pairs = (((0.0,), (1.0,)),)
    return AuditedMechanism("shares of gaussian", _APPROXIMATE, ours, third, pairs, testers, 3_000)


def _ball_shares() -> AuditedMechanism:
    def testers(samples: int) -> list[Tester]:
        return [ExactTester(Cloud(draws=512)), ThresholdTester(samples)]

    laws = [Ball(Fraction(1, part), 1, 2) for part in (1, WEAKER)]
    ours, third = (NormalShares(SummedBall(law.sensitivity, 1, 2, 3, 2), law) for law in laws)
    pairs = (((0.0, 0.0), (0.6, 0.8)),)
    return AuditedMechanism("shares of ball", _PURE, ours, third, pairs, testers, 2_000)


def _labels() -> AuditedMechanism:
    claim = Budget(2, "1e-3")
    ours, third = (StableHistogram(claim.epsilon * part, claim.delta) for part in (1, WEAKER))
    near = ((ours.threshold + 1, ours.threshold - 1), (ours.threshold, ours.threshold))

    def testers(samples: int) -> list[Tester]:
        return [ThresholdTester(samples, (Given(lambda rows: rows[:, 0]),))]

    release, weak = Labels(ours, ours.threshold), Labels(third, ours.threshold)
    return AuditedMechanism("labels", claim, release, weak, (near, ((1, 0), (0, 1))), testers, 3_000)


MECHANISMS: dict[str, AuditedMechanism] = {
    f"mechanism/{one.name}": one
    for one in (
        _additive("laplace", _PURE, Laplace(1, 1), _KNOWN),
        _additive("staircase", _PURE, Staircase(1, 1), _KNOWN),
        _additive("gaussian", _APPROXIMATE, Gaussian.calibrated(1, _APPROXIMATE), _KNOWN),
        _additive("lomax", _PURE, Lomax(1, _SMOOTHNESS), _SMOOTH),
        _vector("ball", Ball, (0.6, 0.64, 0.48)),
        _vector("box", Box, (1.0, -1.0, 1.0)),
        _response(2),
        _response(4),
        _labels(),
        _shares(),
        _normal_shares(),
        _ball_shares(),
    )
}

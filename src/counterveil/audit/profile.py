"""The exact delta profile: how much probability a claimed epsilon leaves unexplained.

For laws P and Q the smallest delta at epsilon is the hockey-stick divergence, the integral of
(p - e^epsilon q)+ . Continuous laws are integrated panel by panel with two Gauss rules whose difference
bounds the error and decides which panels are halved; discrete laws are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counterveil.audit.outputs import Cloud, Line, Outputs, Points
from counterveil.audit.protocols import FloatArray, Pair, WhiteBox
from counterveil.errors import ParameterError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_ROUGH_NODES, _ROUGH_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Both rules are blind between their outermost node and the end of a panel, where a jump could hide. The
# value at the end is therefore compared with what the polynomial through the nodes expects there.
_TO_ENDS = np.linalg.solve(
    np.polynomial.legendre.legvander(_NODES, 15).T,
    np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), 15).T,
).T
_STRIP = 1.0 - float(_NODES[-1])
_ROUNDS = 60
_MOST_PANELS = 100_000
# Rounding of densities and sums, relative to the mass of a panel.
_FLOAT_ERROR = 1e-15
# A density whose integral is further from one than this is not a density.
_LOST_MASS = 1e-3


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta between `low` and `high`; the two differ by the numerical uncertainty."""

    low: float
    high: float
    direction: str


def hockey_stick(log_p: FloatArray, log_q: FloatArray, epsilon: float) -> FloatArray:
    """Return (p - e^epsilon q)+ pointwise, without cancellation where the two are close."""
    with np.errstate(invalid="ignore"):
        gap = np.minimum(epsilon + log_q - log_p, 0.0)
    p = np.exp(log_p)
    return np.where(p > 0, -p * np.expm1(gap), 0.0)


def delta_at(
    epsilon: float,
    mechanism: WhiteBox,
    pair: Pair,
    outputs: Outputs,
    rng: np.random.Generator,
    tolerance: float = 1e-12,
) -> Delta:
    """Return the smallest delta that makes `epsilon` true on this pair, in the worse direction."""
    if isinstance(outputs, Cloud):
        raise ParameterError(
            "CV-A007",
            "the exact delta of a vector is not computed",
            expected="outputs=Line(...) or Points(...) for a claim with delta > 0",
            got="outputs=Cloud(...)",
            fix="audit with ThresholdTester(projections=(LikelihoodRatio(),)), which takes vectors",
        )

    def columns(points: FloatArray) -> FloatArray:
        log_p, log_q = (mechanism.log_density(dataset, points) for dataset in pair)
        forth, back = hockey_stick(log_p, log_q, epsilon), hockey_stick(log_q, log_p, epsilon)
        return np.stack([np.exp(log_p), np.exp(log_q), forth, back])

    if isinstance(outputs, Points):
        totals = columns(outputs.values).sum(axis=-1)
        errors = _FLOAT_ERROR * np.maximum(totals, 1.0)
    else:
        totals, errors = integrate(columns, outputs.grid(mechanism, pair, rng)[0], tolerance)
    _check_mass(totals[:2], outputs)
    lost = np.maximum(1.0 - totals[:2], 0.0) + errors[:2]
    low = np.maximum(totals[2:] - errors[2:], 0.0)
    high = totals[2:] + errors[2:] + lost
    worse = int(np.argmax(low))
    direction = ("first over second", "second over first")[worse]
    return Delta(float(low[worse]), float(high.max()), direction)


def integrate(
    columns: Callable[[FloatArray], FloatArray], edges: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return the integrals of several functions over the span of `edges`, and bounds on their errors.

    `columns` maps points of shape (m,) to values of shape (c, m); the first two columns are the densities,
    whose mass sets the floor below which rounding makes a smaller error meaningless.
    """
    left, right = edges[:-1], edges[1:]
    allowance = tolerance / len(left)
    pieces: list[FloatArray] = []
    doubts: list[FloatArray] = []
    for last in [False] * _ROUNDS + [True]:
        value, error = _panels(columns, left, right)
        floor = allowance + 4 * _FLOAT_ERROR * (value[0] + value[1])
        middle = (left + right) / 2
        halve = (error > floor).any(axis=0) & (left < middle) & (middle < right)
        if last or 2 * int(halve.sum()) > _MOST_PANELS:
            halve[:] = False
        pieces.append(value[:, ~halve])
        doubts.append(error[:, ~halve])
        if not halve.any():
            break
        left, right = (
            np.concatenate([left[halve], middle[halve]]),
            np.concatenate([middle[halve], right[halve]]),
        )
    return np.concatenate(pieces, axis=1).sum(axis=1), np.concatenate(doubts, axis=1).sum(axis=1)


def _panels(
    columns: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the integrals over each panel and their error bounds, both of shape (c, panels)."""
    half = (right - left) / 2
    places = np.concatenate([_NODES, _ROUGH_NODES])
    inner = (left + half)[:, None] + half[:, None] * places
    # The ends are taken as given: computed from the middle they could fall just outside the panel.
    points = np.concatenate([inner, left[:, None], right[:, None]], axis=1)
    values = columns(points.reshape(-1)).reshape(-1, *points.shape)
    fine, rough, ends = np.split(values, [len(_NODES), len(places)], axis=2)
    value = (fine @ _WEIGHTS) * half
    surprise = np.abs(ends - fine @ _TO_ENDS.T).sum(axis=2)
    error = np.abs(value - (rough @ _ROUGH_WEIGHTS) * half) + _STRIP * half * surprise
    return value, error + _FLOAT_ERROR * (value[0] + value[1])


def _check_mass(masses: FloatArray, outputs: Outputs) -> None:
    most = masses.max() > 1 + _LOST_MASS
    least = isinstance(outputs, Line) and masses.min() < 1 - _LOST_MASS
    if most or least:
        raise ParameterError(
            "CV-A005",
            "the law the mechanism reports does not sum to one",
            expected="log_density is normalised on every data set",
            got=f"total mass {masses[0]:.6g} and {masses[1]:.6g} on the two neighbours",
            fix="include the normalising constant; for a discrete law pass outputs=Points(...)",
        )


def check_normalised(mechanism: WhiteBox, pair: Pair, line: Line, rng: np.random.Generator) -> None:
    """Raise CV-A005 unless both densities integrate to one: a missing constant could hide a broken claim."""

    def densities(points: FloatArray) -> FloatArray:
        return np.exp(np.stack([mechanism.log_density(dataset, points) for dataset in pair]))

    masses, _ = integrate(densities, line.grid(mechanism, pair, rng)[0], _LOST_MASS / 10)
    _check_mass(masses, line)

"""The exact privacy profile of Gaussian noise, with every answer rounded to the safe side.

For noise of standard deviation (l2 sensitivity) / mu the smallest delta at a given epsilon is
    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),
which increases in mu and decreases in epsilon (Balle and Wang 2018). It is evaluated in ball
arithmetic, so a figure that leaves this module is proved, not merely computed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from counterveil.errors import refusal

MANTISSA_BITS = 48  # answers of the two inversions are this tight, relatively
DELTA_BITS = 64  # significant bits kept of a delta
SMALLEST_DELTA = Fraction(1, 2**2000)  # below this a delta is reported as this
_PRECISIONS = (96, 192, 384, 768, 1536, 3072)
_DEEPEST = 400  # |log2| of the smallest and largest answer that is searched


@lru_cache(maxsize=1024)
def delta_of(mu: Fraction, epsilon: Fraction) -> Fraction:
    """Return the smallest delta that noise of size mu reaches at epsilon, rounded up."""
    _check(mu=mu, epsilon=epsilon)
    ball = arb(1)
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            ball = _profile(mu, epsilon)
            if ball.rel_accuracy_bits() >= DELTA_BITS or ball < _ball(SMALLEST_DELTA):
                break
    return min(Fraction(1), max(SMALLEST_DELTA, _round_up(ball)))


@lru_cache(maxsize=1024)
def epsilon_of(mu: Fraction, delta: Fraction) -> Fraction:
    """Return the smallest epsilon >= 0 at which noise of size mu keeps delta, rounded up."""
    _check(mu=mu, delta=delta)
    if _keeps(mu, Fraction(0), delta):
        return Fraction(0)
    # The holding side is the upper one: double until it holds, then close in from above.
    exponent = _first(lambda power: _keeps(mu, _two_to(power), delta))
    holds = 1 << MANTISSA_BITS
    fails = 1 << (MANTISSA_BITS - 1)
    unit = _two_to(exponent - MANTISSA_BITS)
    while holds - fails > 1:
        middle = (holds + fails) // 2
        if _keeps(mu, middle * unit, delta):
            holds = middle
        else:
            fails = middle
    return holds * unit


@lru_cache(maxsize=1024)
def mu_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest mu whose noise keeps (epsilon, delta), rounded down."""
    _check(epsilon=epsilon, delta=delta)
    exponent = _first(lambda power: not _keeps(_two_to(power), epsilon, delta))
    holds = 1 << (MANTISSA_BITS - 1)
    fails = 1 << MANTISSA_BITS
    unit = _two_to(exponent - MANTISSA_BITS)
    while fails - holds > 1:
        middle = (holds + fails) // 2
        if _keeps(middle * unit, epsilon, delta):
            holds = middle
        else:
            fails = middle
    return holds * unit


def _profile(mu: Fraction, epsilon: Fraction) -> arb:
    """Return a ball that holds delta(epsilon), at the working precision."""
    root = arb(2).sqrt()
    shift = _ball(mu / 2)
    tilt = _ball(epsilon / mu)
    near = ((tilt - shift) / root).erfc()
    far = ((tilt + shift) / root).erfc()
    ball = (near - _ball(epsilon).exp() * far) / 2
    # e^epsilon overflows only at an absurd epsilon; the second term is not negative, so drop it.
    return ball if ball.is_finite() else arb(0).union(near / 2)


def _keeps(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Return True only when delta(epsilon) <= delta is proved; doubt counts as False."""
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            ball = _profile(mu, epsilon)
            limit = _ball(delta)
            if ball <= limit:
                return True
            if ball > limit:
                return False
    return False


def _first(test: Callable[[int], bool]) -> int:
    """Return the smallest power at which a test that turns from False to True is True."""
    low = -_DEEPEST
    high = _DEEPEST
    while high - low > 1:
        middle = (low + high) // 2
        if test(middle):
            high = middle
        else:
            low = middle
    return high


def _two_to(power: int) -> Fraction:
    return Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _round_up(ball: arb) -> Fraction:
    """Return a rational of DELTA_BITS significant bits that is not below any point of the ball."""
    with ctx.workprec(DELTA_BITS):
        mantissa, exponent = ball.upper().man_exp()
    value = Fraction(int(mantissa)) * _two_to(max(int(exponent), -100_000))
    return max(value, Fraction(0))


def _check(**given: Fraction) -> None:
    """Raise CV-P110 unless mu > 0, epsilon >= 0 and 0 < delta < 1."""
    valid = {
        "mu": lambda value: value > 0,
        "epsilon": lambda value: value >= 0,
        "delta": lambda value: 0 < value < 1,
    }
    for name, value in given.items():
        if not valid[name](value):
            raise refusal("CV-P110", name=name, value=value)

"""Types of arrays, bounds of square roots, and linear algebra on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import cache
from importlib import import_module
from math import isqrt
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]
Ends: TypeAlias = tuple[float, float]  # of an interval


def sqrt_down(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 below it."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt((value.numerator << 128) // value.denominator), 1 << 64)


def sqrt_up(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 above it."""
    below = sqrt_down(value)
    return below if below * below == value else below + Fraction(1, 1 << 64)


# One thread for linear algebra.
#
# Our products are tall and thin, and read in blocks that stay in a core's cache. Threads for them cost more than they
# save, and many times more when another process holds the other cores.


@cache
def _libraries() -> Any:
    # scipy brings a library of its own, which must be loaded to be found.
    import_module("scipy.linalg")
    return import_module("threadpoolctl").ThreadpoolController()


class _Shared:
    """How many answers are being computed, and what gives the threads back after the last."""

    def __init__(self) -> None:
        self.lock, self.inside, self.ending = Lock(), 0, ExitStack()


_SHARED = _Shared()


@contextmanager
def one_thread() -> Iterator[None]:
    """Multiply and solve on one thread in numpy and scipy, until the last of the answers that overlap has ended."""
    with _SHARED.lock:
        if _SHARED.inside == 0:
            _SHARED.ending.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _SHARED.inside += 1
    try:
        yield
    finally:
        with _SHARED.lock:
            _SHARED.inside -= 1
            if _SHARED.inside == 0:
                _SHARED.ending.close()

"""Types of arrays, exact square roots, and how loops are compiled.

Loops are compiled by numba when it is there; plain Python runs them, to the same bit, when it is not.

Modules that use `compiled` are imported inside the functions that need them: numba takes half a
second to load and most uses of the package never touch these loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from math import isqrt
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=np.generic)


def compiled(function: F) -> F:
    """Return `function` compiled by numba, its machine code cached on disk; unchanged without numba."""
    return _compiled(function, {})


def compiled_any_order(function: F) -> F:
    """Return the same, with leave to add up in any order and to round a product and a sum at once.

    So sums go through whole vectors of the processor. The code is compiled once, so that one machine always
    gives the same bits; another, or plain Python, may differ in the last ones.
    """
    return _compiled(function, {"fastmath": {"reassoc", "contract", "nsz"}})


def _compiled(function: F, options: dict[str, Any]) -> F:
    try:
        njit = import_module("numba").njit
    except ImportError:
        return function
    try:
        return njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written: compile anew in each process.
        return njit(function, **options)  # type: ignore[no-any-return]


def is_compiled(function: Callable[..., Any]) -> bool:
    """Return whether numba compiled this function."""
    return hasattr(function, "py_func")


def bit_scans() -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return two functions of a positive integer below 2**63: the places of its highest and of its lowest set bit.

    Compiled code uses the processor's instructions for them, which numba does not offer by name.
    """
    try:
        numba, intrinsic = import_module("numba"), import_module("numba.extending").intrinsic
    except ImportError:
        return (lambda bits: bits.bit_length() - 1), (lambda bits: (bits & -bits).bit_length() - 1)

    @intrinsic  # type: ignore[untyped-decorator]
    def highest_bit(_context: Any, _bits: Any) -> Any:
        def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            zeros = builder.ctlz(arguments[0], context.get_constant(numba.boolean, 1))
            return builder.sub(context.get_constant(numba.int64, 63), zeros)

        return numba.int64(numba.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def lowest_bit(_context: Any, _bits: Any) -> Any:
        def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], context.get_constant(numba.boolean, 1))

        return numba.int64(numba.int64), code

    return highest_bit, lowest_bit


def run(function: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[NDArray[Any]]) -> Any:
    """Return function(*inputs, *outputs); `outputs` are the arrays that it writes to.

    Inputs are passed as read-only views, so that a caller's read-only and writable arrays share one
    compiled version. Plain Python reads lists several times faster than arrays: there the arrays
    become lists for the time of the call and what was written is copied back.
    """
    if is_compiled(function):
        return function(*[_locked(value) for value in inputs], *outputs)
    lists = [array.tolist() for array in outputs]
    answer = function(*[v.tolist() if isinstance(v, np.ndarray) else v for v in inputs], *lists)
    for array, values in zip(outputs, lists, strict=True):
        array[...] = values
    return answer


def locked(array: NDArray[S]) -> NDArray[S]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _locked(value: Any) -> Any:
    return locked(value) if isinstance(value, np.ndarray) else value


# Types of arrays, and square roots of rationals that are never too small or never too large.


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]


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

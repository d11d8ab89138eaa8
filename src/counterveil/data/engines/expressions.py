"""The SQL of values, bins and steps: written once, in DuckDB's dialect, the same doubles in every engine.

Only operations that IEEE 754 fixes to the bit are used: comparison, subtraction, multiplication, floor. Every
comparison is one that a NaN fails whether the engine counts it as the largest number or as no number.
"""

from __future__ import annotations

import math

from counterveil.data.domains import Range
from counterveil.data.fixed_point import OUTCOME_STEPS
from counterveil.data.sources.kinds import Kind
from counterveil.data.sources.relations import is_blank, number_from_text

# The bin of a text where a number is needed.
WRONG = -1

INFINITY = "CAST('Infinity' AS DOUBLE)"
_LIMB = 2**62


def double(value: float) -> str:
    """Return SQL for exactly this finite double: a decimal literal could be read as its neighbour."""
    numerator, denominator = value.as_integer_ratio()
    # Odd numerators have at most 53 bits; the rest is powers of two, multiplied in without rounding.
    shift = (numerator & -numerator).bit_length() - 1 if numerator else 0
    text = f"CAST({numerator >> shift} AS DOUBLE)"
    power, mark = (shift, "*") if denominator == 1 else (denominator.bit_length() - 1, "/")
    while power > 0:
        step = min(power, _LIMB.bit_length() - 1)
        text += f" {mark} CAST({2**step} AS DOUBLE)"
        power -= step
    return f"({text})"


def number(identifier: str, kind: Kind, native: bool) -> str:
    """Return SQL for the double that a cell holds, NULL where it holds none; NaN may remain."""
    if kind is Kind.BOOLEAN:
        return f"CAST(CASE WHEN {identifier} THEN 1 WHEN NOT {identifier} THEN 0 END AS DOUBLE)"
    if kind is Kind.TEXT:
        return number_from_text(identifier)
    if kind is Kind.EXACT:
        # Through decimal text: the double nearest to the written number, as for every other source.
        return f"CAST(CAST({identifier} AS VARCHAR) AS DOUBLE)"
    if kind is Kind.UNBOUNDED:
        return _narrowed(identifier)
    value = f"CAST({identifier} AS DOUBLE)"
    if not native or kind is not Kind.FLOAT:
        return value
    # The number itself, wrapped and unwrapped so that nothing is known of it beforehand. DuckDB takes the least and
    # the largest number in the header of a Parquet file for bounds of all cells, NaN among them, and would decide
    # comparisons without looking.
    return f"union_value(cell := {value}).cell"


def _narrowed(identifier: str) -> str:
    """Return SQL for the double nearest to a PostgreSQL number of any size, which its own cast may refuse."""
    beyond = "1" + "0" * 301
    # Half the least double, and whatever lies nearer to zero, rounds to zero.
    least = f"0.{5**1075:01075d}"
    return (
        f"CASE WHEN CAST({identifier} AS VARCHAR) = 'NaN' THEN NULL "
        f"WHEN {identifier} > {beyond} THEN {INFINITY} WHEN {identifier} < -{beyond} THEN -{INFINITY} "
        f"WHEN {identifier} >= -{least} AND {identifier} <= {least} THEN CAST(0 AS DOUBLE) "
        f"ELSE CAST(CAST({identifier} AS VARCHAR) AS DOUBLE) END"
    )


def is_wrong(identifier: str, value: str) -> str:
    """Return SQL that says whether a text stands neither for a number nor for a gap."""
    return f"({value} IS NULL AND NOT {is_blank(identifier)})"


def bins(value: str, thresholds: tuple[float, ...], wrong: str | None) -> str:
    """Return SQL for the number of thresholds that a value has reached; NULL for a gap, WRONG for a text."""
    flaw = "" if wrong is None else f"WHEN {wrong} THEN {WRONG} "
    return f"CASE {flaw}WHEN {value} <= {INFINITY} THEN {_search(value, thresholds, 0)} END"


def _search(value: str, thresholds: tuple[float, ...], below: int) -> str:
    # A balanced tree: a fine grid costs its logarithm in comparisons.
    if not thresholds:
        return str(below)
    middle = len(thresholds) // 2
    left = _search(value, thresholds[:middle], below)
    right = _search(value, thresholds[middle + 1 :], below + middle + 1)
    return f"CASE WHEN {value} < {double(thresholds[middle])} THEN {left} ELSE {right} END"


def steps(value: str, bounds: Range) -> str:
    """Return SQL for the whole steps of an outcome, NULL for a gap; bit for bit `fixed_point.to_steps`."""
    low, high = float(bounds.lo), float(bounds.hi)
    steps_per_unit = float(OUTCOME_STEPS / bounds.width)
    inside = f"CAST(FLOOR(({value} - {double(low)}) * {double(steps_per_unit)}) AS BIGINT)"
    if (math.nextafter(high, low) - low) * steps_per_unit >= OUTCOME_STEPS + 1:
        inside = f"CASE WHEN {inside} > {OUTCOME_STEPS} THEN {OUTCOME_STEPS} ELSE {inside} END"
    above_low = math.nextafter(low, high) - low
    if above_low * steps_per_unit == 0:
        # PostgreSQL refuses a product that vanishes; below half a step the floor is 0 anyway.
        inside = (
            f"CASE WHEN {value} - {double(low)} < {double(0.5 / steps_per_unit)} THEN 0 ELSE {inside} END"
        )
    return (
        f"CASE WHEN {value} <= {double(low)} THEN 0 WHEN {value} < {double(high)} THEN {inside} "
        f"WHEN {value} <= {INFINITY} THEN {OUTCOME_STEPS} END"
    )


def literal(cell: object) -> str:
    """Return SQL for a cell as the engine gave it."""
    if isinstance(cell, str):
        return "'" + cell.replace("'", "''") + "'"
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int):
        return f"CAST({cell} AS BIGINT)" if -(2**63) < cell < 2**63 else f"CAST('{cell}' AS HUGEINT)"
    if isinstance(cell, float):
        return double(cell)
    raise TypeError(type(cell).__name__)

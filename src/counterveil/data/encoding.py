"""From cells to arrays: gaps, numbers, codes of labels, arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Coded, Column, Mask, Numbers
from counterveil.data.labels import LabelIndex, is_missing_text, number_of
from counterveil.data.missing import Fill, MissingRule
from counterveil.data.wrong_data import (
    constant_treatment,
    strange_treatment,
    text_for_number,
    undeclared_arm,
)

if TYPE_CHECKING:
    from counterveil.data.study import Study

_NO_LABEL = -1


def gaps(column: Column, index: LabelIndex | None) -> Mask:
    """Return which rows hold no value; blank text counts as none unless it is a declared label."""
    if isinstance(column, Numbers):
        return column.missing
    blank = np.array([is_missing_text(cell, index) for cell in column.cells], dtype=np.bool_)
    return column.take(blank, for_missing=True)


def numbers(column: Column, hole: Mask, fill: float, name: str) -> NDArray[np.float64]:
    """Return the column as doubles with `fill` in its gaps, or raise CV-D002."""
    if isinstance(column, Numbers):
        if column.text is not None and column.text.any():
            raise text_for_number(name)
        values = column.values.astype(np.float64)
    else:
        parsed = [_double(cell) for cell in column.cells]
        doubles = np.array([np.nan if value is None else value for value in parsed], dtype=np.float64)
        refused = np.array([value is None for value in parsed], dtype=np.bool_)
        if (column.take(refused, for_missing=False) & ~hole).any():
            raise text_for_number(name)
        values = column.take(doubles, for_missing=np.nan)
    values[hole] = fill
    return values


def codes(column: Column, hole: Mask, index: LabelIndex, rule: MissingRule | None) -> NDArray[np.int64]:
    """Return for each row the place of its label, or of the label filled in; -1 where it has none."""
    found = _codes(column, index)
    place = index.code(rule.value) if isinstance(rule, Fill) else None
    found[hole] = _NO_LABEL if place is None else place
    return found


def _codes(column: Column, index: LabelIndex) -> NDArray[np.int64]:
    if isinstance(column, Coded):
        places = [index.code(cell) for cell in column.cells]
        per_cell = np.array([_NO_LABEL if place is None else place for place in places], dtype=np.int64)
        return column.take(per_cell, for_missing=_NO_LABEL)
    found = np.full(len(column), _NO_LABEL, dtype=np.int64)
    whole = column.values.dtype.kind in "biu"
    for number, place in index.numbers.items():
        if not whole:
            found[column.values == float(number)] = place
        elif number.denominator == 1:
            found[column.values == int(number)] = place
    return found


def arms(column: Column, hole: Mask, study: Study) -> NDArray[np.intp]:
    """Return the arm of every row: 1 treated and 0 control, or the place in `study.arms`.

    Labels that are not declared raise CV-D017; in a study of two arms CV-D004 or CV-D005.
    """
    index = LabelIndex(study.treatment_labels)
    found = codes(column, hole, index, study.missing.get(study.treatment)).astype(np.intp)
    if study.arms is None:
        return _treated(column, found, study).astype(np.intp)
    if (found == _NO_LABEL).any():
        raise undeclared_arm(study.treatment, study.arms)
    return found


def _treated(column: Column, found: NDArray[np.intp], study: Study) -> Mask:
    treated: Mask = found == 0
    others: Mask = found == _NO_LABEL
    if not others.any():
        return treated
    single = _single_label(column.keep(others))
    if single and others.all():
        raise constant_treatment(study.treatment)
    if study.control is not None or not single or not treated.any():
        raise strange_treatment(study.treatment, study.treated, study.control)
    return treated


def _single_label(column: Column) -> bool:
    if isinstance(column, Numbers):
        return bool((column.values == column.values[0]).all())
    cells = [column.cells[code] for code in np.unique(column.codes)]
    return len({cell if number_of(cell) is None else number_of(cell) for cell in cells}) == 1


def _double(cell: object) -> float | None:
    """Return the double nearest to a cell, None for text that is no number."""
    if isinstance(cell, str) and cell.strip().lower() in ("true", "false"):
        return float(cell.strip().lower() == "true")
    try:
        return float(cell)  # type: ignore[arg-type]
    except ValueError:
        return None
    except OverflowError:
        # Beyond the largest double is beyond every bound.
        return np.inf if cell > 0 else -np.inf  # type: ignore[operator]

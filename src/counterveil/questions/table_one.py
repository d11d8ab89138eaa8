"""Table 1: covariates by arm as they are, for questions that protect outcomes alone; free of charge.

In: treatments and covariates, which are public there. Out: by arm, rows, means and standard deviations of
numbers (in units of the covariate), shares of labels, and standardised differences,

    (mean of the last arm - mean of the first) / sqrt((variance_last + variance_first) / 2).

No noise and no budget: no outcome is read, and two data sets that differ in an outcome have the same table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Binary, Categories, Range, silence
from counterveil.numerics.arrays import Floats
from counterveil.rows.public import PublicRows

# Cells that are worked on at once: short columns together, since each step costs more than its numbers.
_CELLS = 1 << 14


@silence()
def table_one(columns: PublicRows) -> dict[str, Any] | None:
    """Return means and standard deviations of numbers, and shares of labels, by arm; None without covariates.

    Standardised differences are those of the last arm and the first, in the root of their mean variance. Only for
    questions that protect outcomes: everything here is read off covariates and treatments as they are.
    """
    domains = columns.study.covariates
    if not domains:
        return None
    inside = {arm: np.flatnonzero(where) for arm, where in _arms(columns).items()}
    shown = {kind: _by_arm(columns, kind, list(inside.values())) for kind in (Range, Binary)}
    rows: list[dict[str, Any]] = []
    for name, domain in domains.items():
        if isinstance(domain, Categories):
            codes = columns.covariates[name].astype(np.intp)
            counts = [np.bincount(codes[arm], minlength=len(domain.labels)) for arm in inside.values()]
            sizes = [max(len(arm), 1) for arm in inside.values()]
            shares = [(count / size).tolist() for count, size in zip(counts, sizes, strict=True)]
            for label, *found in zip(domain.labels, *shares, strict=True):
                rows.append(_share(f"{name} = {label}", found))
        elif isinstance(domain, Range):
            means, sds = map(list, zip(*shown[Range][name], strict=True))
            rows.append(
                {"covariate": name, "means": means, "sds": sds, "difference": _difference(means, sds)}
            )
        else:
            rows.append(_share(name, [mean for mean, _ in shown[Binary][name]]))
    arms = [{"name": arm, "rows": len(own)} for arm, own in inside.items()]
    return {"arms": arms, "covariates": rows}


def _by_arm(
    columns: PublicRows, kind: type, arms: list[NDArray[np.intp]]
) -> dict[str, list[tuple[float, float]]]:
    """Return mean and standard deviation in each arm of all covariates of one kind, several columns at a time."""
    names = [name for name, domain in columns.study.covariates.items() if isinstance(domain, kind)]
    found: dict[str, list[tuple[float, float]]] = {}
    together = max(1, _CELLS // max(1, columns.rows))
    for start in range(0, len(names), together):
        own = names[start : start + together]
        values = np.array([columns.covariates[name] for name in own])
        figures = (_of_rows(values.take(arm, axis=1), kind is Range) for arm in arms)
        found |= zip(own, map(list, zip(*figures, strict=True)), strict=True)
    return found


def _of_rows(part: Floats, spread: bool) -> Iterable[tuple[float, float]]:
    """Return the mean of every row, and its standard deviation where that is wanted."""
    count = part.shape[1]
    means = np.add.reduce(part, axis=1) / np.intp(count)
    if not spread or count < 2:
        return zip(means.tolist(), repeat(0.0, len(part)), strict=True)
    part -= means[:, None]
    part *= part
    return zip(means.tolist(), np.sqrt(np.add.reduce(part, axis=1) / (count - 1)).tolist(), strict=True)


def _arms(columns: PublicRows) -> dict[str, Any]:
    """Return which rows are in which arm: treated and control, or all arms with the reference first."""
    if columns.study.arms is None:
        return {"treated": columns.treated, "control": ~columns.treated}
    return {str(label): columns.arm == code for code, label in enumerate(columns.study.treatment_labels)}


def _share(name: str, shares: list[float]) -> dict[str, Any]:
    sds = [sqrt(share * (1 - share)) for share in shares]
    return {"covariate": name, "means": shares, "sds": None, "difference": _difference(shares, sds)}


def _difference(means: list[float], sds: list[float]) -> float | None:
    """Return the difference of two arms in standard deviations; of several, the largest from the first of them."""
    found = [_standardised(means[0], sds[0], *other) for other in zip(means[1:], sds[1:], strict=True)]
    if len(found) == 1:
        return found[0]
    known = [-one for one in found if one is not None]
    return max(known, key=abs) if len(known) == len(found) else None


def _standardised(mean: float, sd: float, other_mean: float, other_sd: float) -> float | None:
    gap, scale = mean - other_mean, sqrt((sd**2 + other_sd**2) / 2)
    if gap == 0:
        return 0.0
    return gap / scale if scale > 0 and isfinite(gap / scale) else None

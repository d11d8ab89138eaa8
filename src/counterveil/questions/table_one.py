"""Table 1 of a study whose covariates and treatments are public: exact figures by arm, free of charge."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Any

import numpy as np

from counterveil.data import Categories, Range, Table, silence
from counterveil.numerics.arrays import Floats


@silence()
def table_one(table: Table) -> dict[str, Any] | None:
    """Return means and standard deviations of numbers, and shares of labels, by arm; None without covariates.

    Standardised differences are those of the last arm and the first, in the root of their mean variance. Only for
    questions that protect outcomes: everything here is read off covariates and treatments as they are.
    """
    domains = table.study.covariates
    if not domains:
        return None
    inside = {arm: np.flatnonzero(where) for arm, where in _arms(table).items()}
    rows: list[dict[str, Any]] = []
    for name, domain in domains.items():
        values = table.covariates[name]
        if isinstance(domain, Categories):
            codes = values.astype(np.intp)
            counts = [np.bincount(codes[arm], minlength=len(domain.labels)) for arm in inside.values()]
            shares = [
                (count / max(len(arm), 1)).tolist()
                for count, arm in zip(counts, inside.values(), strict=True)
            ]
            for label, *found in zip(domain.labels, *shares, strict=True):
                rows.append(_share(f"{name} = {label}", found))
        elif isinstance(domain, Range):
            rows.append(_numbers(name, [values[arm] for arm in inside.values()]))
        else:
            rows.append(_share(name, [float(_mean(values[arm])) for arm in inside.values()]))
    arms = [{"name": arm, "rows": len(own)} for arm, own in inside.items()]
    return {"arms": arms, "covariates": rows}


def _arms(table: Table) -> dict[str, Any]:
    """Return which rows are in which arm: treated and control, or all arms with the reference first."""
    if table.study.arms is None:
        return {"treated": table.treated, "control": ~table.treated}
    return {str(label): table.arm == code for code, label in enumerate(table.study.treatment_labels)}


def _numbers(name: str, parts: list[Floats]) -> dict[str, Any]:
    centres = [_mean(part) for part in parts]
    means, sds = [float(mean) for mean in centres], list(map(_sd, parts, centres))
    return {"covariate": name, "means": means, "sds": sds, "difference": _difference(means, sds)}


# What numpy's own functions compute, without what they look at for other arrays: most of the time of short columns.


def _mean(part: Floats) -> np.float64:
    return np.float64(np.add.reduce(part) / np.intp(len(part)))


def _sd(part: Floats, mean: np.float64) -> float:
    gaps = part - mean
    gaps *= gaps
    return sqrt(np.add.reduce(gaps) / (len(part) - 1)) if len(part) > 1 else 0.0


def _share(name: str, shares: list[float]) -> dict[str, Any]:
    sds = [sqrt(share * (1 - share)) for share in shares]
    return {"covariate": name, "means": shares, "sds": None, "difference": _difference(shares, sds)}


def _difference(means: list[float], sds: list[float]) -> float | None:
    """Return the difference of two arms in standard deviations; of several, the largest from the first of them."""
    first, *others = zip(means, sds, strict=True)
    found = [_standardised(first, other) for other in others]
    if len(found) == 1:
        return found[0]
    known = [-one for one in found if one is not None]
    return max(known, key=abs) if len(known) == len(found) else None


def _standardised(one: tuple[float, float], other: tuple[float, float]) -> float | None:
    gap, scale = one[0] - other[0], sqrt((one[1] ** 2 + other[1] ** 2) / 2)
    if gap == 0:
        return 0.0
    return gap / scale if scale > 0 and isfinite(gap / scale) else None

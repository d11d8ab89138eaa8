"""The covariates of a table as people wrote them, and public points that cover their domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Range
from counterveil.data.labels import Label
from counterveil.data.study import Study
from counterveil.data.table import Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import shuffled


def covariate_columns(table: Table, part: slice | NDArray[np.intp] | None = None) -> dict[str, NDArray[Any]]:
    """Return every covariate by name: float64 numbers after clamping, or the declared labels as objects.

    `part` picks rows. A row of what is returned depends on that row and on public declarations alone.
    """
    rows = slice(None) if part is None else part
    coded = {name: table.covariates[name][rows] for name in table.study.covariates}
    return columns_as_written(coded, table.study)


def columns_as_written(coded: Mapping[str, Floats], study: Study) -> dict[str, NDArray[Any]]:
    """Return columns of numbers and of codes with the codes turned into the declared labels."""
    found: dict[str, NDArray[Any]] = {}
    for name, domain in study.covariates.items():
        values = coded[name]
        found[name] = values if isinstance(domain, Range) else _labels(domain.labels)[values.astype(np.intp)]
    return found


def public_points(study: Study, count: int) -> dict[str, Floats]:
    """Return evenly spaced points in the covariates' domains, numbers and codes, the same in every process.

    A Latin square: every covariate takes evenly spaced values, each in a fixed order of its own.
    """
    names = list(study.covariates)
    order = shuffled(count * len(names))
    found: dict[str, Floats] = {}
    for place, name in enumerate(names):
        part = (order[order // count == place] % count + 0.5) / count
        domain = study.covariates[name]
        if isinstance(domain, Range):
            low, high = domain.floats()
            found[name] = np.clip(low + (high - low) * part, low, high)
        else:
            found[name] = np.minimum(np.floor(part * len(domain.labels)), len(domain.labels) - 1.0)
    return found


def _labels(labels: tuple[Label, ...]) -> NDArray[np.object_]:
    """Return the labels as an array of objects, whatever their types."""
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found

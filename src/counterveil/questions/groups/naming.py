"""Public groups: which covariates make them, what each is called, and which one a row is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Range, Study, Table, check_study, strata_codes
from counterveil.data.domains import Domain
from counterveil.errors import ParameterError, shown
from counterveil.privacy import exact, show
from counterveil.statistics.moments.doubly_robust_releases import Part

Codes = NDArray[np.int64]
By = str | Sequence[str] | Mapping[str, Sequence[Any] | None]

# More groups than this are a function of the covariates: `cate` is for those.
_MOST_GROUPS = 2000


def layout_of(study: Study, by: By) -> Layout:
    """Return the layout of the groups: covariates by name, cut points where they are given."""
    check_study(study)
    if isinstance(by, str):
        by = (by,)
    names = tuple(by) if isinstance(by, Mapping | Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError(
            "CV-P541",
            "no grouping covariates were named",
            expected='by="site", by=("site", "sex"), or by={"age": (40, 65), "sex": None} with cut points',
            got=f"by={shown(by)}",
            fix="name one covariate of the study, or several",
        )
    cuts: dict[str, tuple[Fraction, ...]] = {}
    if isinstance(by, Mapping):
        for name, points in by.items():
            if points is not None and not isinstance(points, Sequence):
                raise _no_cut_points(name, points)
            if points is not None:
                cuts[name] = tuple(exact(point, f"a cut point of {name!r}") for point in points)
    layout = Layout.of(study, names, cuts)
    if layout.public > _MOST_GROUPS:
        raise ParameterError(
            "CV-P542",
            "there are too many groups",
            expected=f"at most {_MOST_GROUPS} groups",
            got=f"{layout.public} groups",
            fix="cross fewer covariates or cut ranges more coarsely; counterveil.cate gives the effect as a "
            "function of all covariates",
        )
    return layout


def _no_cut_points(name: str, points: object) -> ParameterError:
    return ParameterError(
        "CV-P541",
        "no grouping covariates were named",
        expected=f"cut points of {name!r} as a list of numbers, or None for its labels",
        got=f"by={{{name!r}: {shown(points)}}}",
        fix='list the points at which the range is cut: by={"age": (40, 65)}',
    )


def group_names(layout: Layout) -> tuple[str, ...]:
    """Return what every group is called, in the order of their places."""
    labels = [_labels(name, domain) for name, domain in zip(layout.names, layout.domains, strict=True)]
    return tuple(", ".join(parts) for parts in product(*labels))


def _labels(name: str, domain: Domain) -> list[str]:
    if not isinstance(domain, Range):
        return [f"{name}={label}" for label in domain.labels]
    ends = [domain.lo, *domain.cuts, domain.hi]
    last = len(ends) - 2
    return [
        f"{name} in [{show(ends[place])}, {show(ends[place + 1])}{']' if place == last else ')'}"
        for place in range(last + 1)
    ]


@dataclass(slots=True)
class LayoutPlaces:
    """The group of every row of a block; a batch is coded once, however many blocks it is read in."""

    layout: Layout
    _batch: Table | None = field(default=None, init=False)
    _codes: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.int64), init=False)

    def __call__(self, part: Part) -> Codes:
        """Return the places of a block's rows."""
        if self._batch is not part.batch:
            self._batch, self._codes = part.batch, strata_codes(part.batch, self.layout)
        return self._codes[part.rows]

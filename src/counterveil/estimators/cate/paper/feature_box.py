"""The public box of features that learners see: rows, queries and points drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.estimators.ate.unit_features import UnitFeatures
from counterveil.estimators.cate.paper.pseudo_outcomes import Rows
from counterveil.kernels.public_numbers import public_uniforms

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureBox:
    """Numbers scaled to [0, 1] by their declared ranges, labels as columns of zeros and ones."""

    study: Study
    shape: UnitFeatures

    @classmethod
    def of(cls, study: Study) -> FeatureBox:
        """Return the box that a study's declarations give."""
        return cls(study, UnitFeatures.of(study))

    @property
    def columns(self) -> int:
        """Number of features."""
        return self.shape.columns

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which features may take every value in [0, 1]."""
        domains = [self.study.covariates[name] for name in self.shape.names]
        return np.concatenate(
            [
                np.full(max(1, size), isinstance(d, Range))
                for d, size in zip(domains, self.shape.labels, strict=True)
            ]
        )

    def rows(self, table: Table) -> Rows:
        """Return the table's rows as learners see them."""
        low = float(table.study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome.astype(np.float64)
        return Rows(self.points(table.covariates), table.treated, y)

    def points(self, columns: Mapping[str, Floats]) -> Floats:
        """Return the features of columns by name: numbers inside their bounds, or codes of labels."""
        parts = []
        for name, size in zip(self.shape.names, self.shape.labels, strict=True):
            domain, values = self.study.covariates[name], columns[name]
            if size:
                parts.append((values[:, None] == np.arange(size)).astype(np.float64))
            elif isinstance(domain, Range):
                low, high = domain.floats()
                parts.append(np.clip((values - low) / (high - low), 0.0, 1.0)[:, None])
            else:
                parts.append(values[:, None])
        return np.hstack(parts)

    def draw(self, count: int, seed: int, corners: bool = False) -> Floats:
        """Return public points of the box: spread over it, or among its corners; labels are drawn evenly."""
        uniform, parts = public_uniforms(count, len(self.shape.names), seed), []
        for place, (name, size) in enumerate(zip(self.shape.names, self.shape.labels, strict=True)):
            own = uniform[:, place]
            if size:
                parts.append(np.eye(size)[(own * size).astype(np.intp)])
            else:
                whole = corners or not isinstance(self.study.covariates[name], Range)
                parts.append((own >= 0.5).astype(np.float64)[:, None] if whole else own[:, None])
        return np.hstack(parts)

"""The orthogonal loss of the published learners: weights rho and pseudo-outcomes phi from fitted nuisances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.data.features import UnitFeatures
from counterveil.numerics.public_choices import public_uniforms
from counterveil.published.cate_learners import Function, fitted_classifier, fitted_regressor, takes_weights

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

R, DR = "R", "DR"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as the learners see them: features in the unit box, treatments, outcomes."""

    x: Floats
    treated: Flags
    y: Floats

    def __len__(self) -> int:
        return len(self.y)

    def part(self, places: NDArray[np.intp]) -> Rows:
        """Return the rows at these places."""
        return Rows(self.x[places], self.treated[places], self.y[places])


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Fitted functions of the features: the propensity and the expected outcome in each arm."""

    propensity: Function
    control: Function
    treated: Function


def fitted_nuisances(rows: Rows, outcome: object, propensity: object, clip: float) -> Nuisances:
    """Return the nuisances, one outcome model an arm."""
    own = rows.treated
    return Nuisances(
        fitted_classifier(propensity, rows.x, own, clip),
        fitted_regressor(outcome, rows.x[~own], rows.y[~own]),
        fitted_regressor(outcome, rows.x[own], rows.y[own]),
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """The learner's loss at points: rho (phi - g)^2 with phi = slope * y + offset, and the weight lambda."""

    rho: Floats
    slope: Floats
    offset: Floats
    weight: Floats

    def phi(self, y: Floats | float) -> Floats:
        """Return the pseudo-outcomes for these outcomes."""
        return self.slope * y + self.offset


def loss_at(nuisances: Nuisances, learner: str, x: Floats, treated: Flags) -> Loss:
    """Return the loss of the R- or the DR-learner at these features and treatments.

    R: lambda = pi(1 - pi), so rho = (a - pi)^2 and phi = (y - mu_a)/(a - pi) + mu_1 - mu_0.
    DR: lambda = 1, so rho = 1 and phi = (a - pi)(y - mu_a)/(pi(1 - pi)) + mu_1 - mu_0.
    """
    pi = nuisances.propensity(x)
    control, with_treatment = nuisances.control(x), nuisances.treated(x)
    gap = treated - pi
    own = np.where(treated, with_treatment, control)
    # Both learners divide by a - pi: (a - pi)/(pi(1 - pi)) is 1/(a - pi) for the R-learner times lambda/rho.
    slope = 1 / gap if learner == R else gap / (pi * (1 - pi))
    offset = with_treatment - control - slope * own
    if learner == R:
        return Loss(gap**2, slope, offset, pi * (1 - pi))
    return Loss(np.ones(len(x)), slope, offset, np.ones(len(x)))


def fitted_effect(rows: Rows, nuisances: Nuisances, learner: str, second: object) -> Function:
    """Return the second stage: the regression of phi on the features with weights rho."""
    loss = loss_at(nuisances, learner, rows.x, rows.treated)
    # A learner that takes no weights is refused before, unless they are all one.
    weights = loss.rho if takes_weights(second) else np.ones(len(rows))
    return fitted_regressor(second, rows.x, loss.phi(rows.y), weights)


# The public box of features that learners see: rows, queries and points drawn from it.


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

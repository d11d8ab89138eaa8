"""The orthogonal loss of the published learners: weights rho and pseudo-outcomes phi from fitted nuisances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.cate.paper.learners import (
    Function,
    fitted_classifier,
    fitted_regressor,
    takes_weights,
)

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

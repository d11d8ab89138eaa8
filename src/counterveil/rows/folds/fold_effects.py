"""Sample and aggregate: the average of effects that any learner estimates in separate folds of the rows.

    u_k = clip((A(rows of fold k) - h) / c, -1, 1),    released: the means of u and of u^2 over K folds,

with A the learner, which returns an effect in units of the outcome, h a centre and c > 0 a bound in the same
units, both public or released before. Estimate and standard error follow from the two means by public
arithmetic: h plus c times the mean of u.

In: private rows, divided into K folds by their place alone. Out: both means, without units, with noise.

Why it is right: a record lies in one fold, and moves one u within [-1, 1], so that the mean of u moves by at
most 2 / K and that of squares by 1 / K. Nothing about the learner has to be known (sample and aggregate,
Nissim, Raskhodnikova and Smith 2007) [1]_.

Proof: `rows/folds/fold_average.proof.md`. Privacy does not depend on K, h and c; they decide noise and bias.

References
----------
.. [1] Nissim, K., Raskhodnikova, S. and Smith, A. (2007). Smooth sensitivity and sampling in private data
   analysis. STOC 2007, 75-84.
"""

# Proof: fold_average.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.numerics.arrays import Integers
from counterveil.numerics.public_choices import fold_rows
from counterveil.rows.folds.quiet_learners import effects_of_folds
from counterveil.rows.moments.weighted_moments import (
    GRID_BITS,
    WeightedMeans,
    contribution_sums,
    release_moments,
)
from counterveil.session import Gate, Plan


@dataclass(frozen=True, slots=True)
class FoldEffects:
    """Effects of folds, clipped, in parts of the bound.

    Attributes
    ----------
    learner : object
        Name of a learner of ours, a pair of models, or a function of covariates, treatment and outcome.
    features : UnitFeatures
        Covariates with public bounds as columns.
    folds : int
        K; rows are divided by their place alone.
    centre : Fraction
        h, public or released, in units of the outcome.
    bound : Fraction
        c, how far effects may lie from the centre, in units of the outcome.
    """

    learner: object
    features: UnitFeatures
    folds: int
    centre: Fraction
    bound: Fraction

    def release(self, gate: Gate, plan: Plan) -> WeightedMeans:
        """Return the means of u and of u^2, with noise for one changed u."""
        steps = self.steps(gate.rows.table)
        return release_moments(
            gate,
            plan,
            row_sums=contribution_sums(steps, np.zeros(len(steps), np.bool_)),
            unit=self.bound,
            averaged_over=1.0,
        )

    def steps(self, table: Table) -> Integers:
        """Return u of every fold in whole parts of 2**-GRID_BITS."""
        z = self.features.values(table)
        y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome.astype(np.float64)
        t = table.treated.astype(np.float64)
        effects = effects_of_folds(self.learner, z, t=t, y=y, folds=fold_rows(table.rows, self.folds))
        clipped = np.clip((effects - float(self.centre)) / float(self.bound), -1.0, 1.0)
        return np.trunc(np.ldexp(clipped, GRID_BITS)).astype(np.int64)

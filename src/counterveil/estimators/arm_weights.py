"""Public balancing weights of both arms, for tables of times and counts of outcomes.

Outcomes alone are private: covariates and treatments are public, and so are all weights. Each arm a is
weighted so that its weighted covariate means come near those of everybody,

    sum over i in a of w_i x_i / sum over i in a of w_i = about mean of x.

In: public covariates, treatments and, if declared, propensities; the variance of the noise that weights are
traded off against. Out: weights of every row of an arm in whole units, of which the largest counts as 1, and
the imbalance that they leave, in standard deviations of the covariates.

Since no weight is above 1, a row moves a weighted table by no more than an unweighted one:
`rows/distribution.proof.md` for counts of outcomes, `rows/time_tables.proof.md` for times. `_EXPLAINED`
supposes how much covariates explain and sets lengths of intervals; privacy does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import covariate_features
from counterveil.estimators.linear.arm_balance import arm_balance
from counterveil.estimators.linear.arms_design import balanced_arms
from counterveil.estimators.linear.kernels.balancing import WeightSettings
from counterveil.numerics.propensity import fit_multinomial
from counterveil.privacy.caveats import BiasBeyond, Caveat, Fact
from counterveil.privacy.provenance import BalancedArms, Estimator
from counterveil.results.answering import Facts
from counterveil.results.survival import ARMS
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.rows.public import PublicRows
from counterveil.rows.weighted_counts import ArmWeights
from counterveil.settings.methods import YES_OR_NO

# The share of what varies that covariates are supposed to explain where weights leave them unbalanced.
_EXPLAINED = 1 / 3
# What of the covariates' variance counts as none.
_SINGULAR = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedArm:
    """The rows of one arm and their public weights.

    Attributes
    ----------
    rows : ndarray of int
        Places of the rows.
    form : LinearForm
        Their weights in whole units.
    off : float
        Square of the imbalance that they leave, in standard deviations of the covariates.
    """

    rows: NDArray[np.intp]
    form: LinearForm
    off: float

    @property
    def total(self) -> Fraction:
        """Sum of the weights, the largest being 1."""
        return Fraction(int(self.form.units.sum()), int(self.form.units.max()))

    @property
    def design(self) -> float:
        """Sum of squared weights over sum of weights, the largest being 1; more if imbalance is beyond chance.

        Where covariates explain a part r of what varies, squared errors are 1 - r, and r times the squared
        imbalance in those that chance leaves in an arm of the same effective size.
        """
        mean_squared_weight = float(self.form.squares / self.form.largest**2 / self.total)
        return mean_squared_weight * max(1.0, 1 + _EXPLAINED * (self.off / float(self.form.squares) - 1))

    @property
    def weights(self) -> ArmWeights:
        """The rows with their weights in whole units, as `rows` sums them."""
        return ArmWeights(self.rows, self.form.units)


def weighted_arms(
    people: PublicRows, noise_variance: float
) -> tuple[tuple[WeightedArm, ...], dict[str, Any]]:
    """Return the weights of both arms, control first, of least supposed error, and their balance.

    `noise_variance` is that of a curve where the largest weight is 1. The share that is free of the event
    at a time is a binary outcome.
    """
    score = people.score
    scores = (
        fit_multinomial(covariate_features(people).values, people.arm, len(ARMS), 1 / people.rows).scores
        if score is None
        else np.column_stack([1 - score, score])
    )
    arms: list[tuple[NDArray[np.intp], LinearForm]] = []
    supposed = WeightSettings(YES_OR_NO, YES_OR_NO)
    for rows, weights, balanced in balanced_arms(people, scores, noise_variance, supposed):
        arms.append((rows, linear_form(np.maximum(weights, 0.0))))
        # Those of one arm are not held while the other's are made.
        del balanced
    features = covariate_features(people)
    spread = np.linalg.pinv(
        features.values.T @ features.values / people.rows, rcond=_SINGULAR, hermitian=True
    )
    weighted = []
    for rows, form in arms:
        gap = np.ldexp(form.units.astype(np.float64), -form.bits) @ features.values[rows]
        weighted.append(WeightedArm(rows, form, float(gap @ spread @ gap)))
    return tuple(weighted), arm_balance(features, scores, arms, ARMS)


def weights_facts(facts: Facts, estimator: Estimator, bias: float, diagnostics: dict[str, Any]) -> Facts:
    """Return the fields of an answer with what weights add to them; `bias` is allowed for, in standard errors."""
    beyond: tuple[Fact, ...] = (BiasBeyond(bias, of_each_arm=False),) if bias else ()
    return Facts(
        facts
        | {
            "method": BalancedArms(estimator),
            "not_covered": (*facts["not_covered"], Caveat.IMBALANCE, *beyond),
            "details": facts["details"] | {"bias_allowed_standard_errors": bias},
            "diagnostics": diagnostics,
        }
    )

"""A normal posterior of the weights of an effect as a function, from what noisy releases ("looks") measured.

A look measures v = A Z theta + error of all weights theta, with a public map A, public rows Z, and an error
of known covariance C (sampling and noise). With independent prior variances D of the weights,

    I = sum over looks of (A Z)' C^-1 A Z,    s = sum over looks of (A Z)' C^-1 v,
    posterior covariance = (I + D^-1)^-1,    posterior mean = (I + D^-1)^-1 s,

in units of the outcome and their square: Bayes' rule for normal errors. Prior variances are estimated from
what was measured, covariate by covariate (spike and slab: a covariate matters or it does not), and the mean
is averaged over them. Intervals use the larger of these and a least variance, lest a covariate that was
passed over count as known.

In: public rows and released numbers. Out: a `Posterior`. All of it is post-processing: privacy does not
depend on it.

Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`, some
of them by `python -m experiments.cate.tuning`; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.linear.series_basis import Places, slab, supposed
from counterveil.estimators.linear.series_features import Functions
from counterveil.numerics.arrays import Floats
from counterveil.numerics.shrinkage import spike_and_slab

# Variances that a group of weights may have, in units of the supposed variance of effects.
_SCALES = (0.003, 0.03, 0.3, 1.0)
# The part of what is unknown that clipping may hide from a release, for each unit of the share that is
# clipped.
_HIDDEN = 0.1
# A variance this far below the supposed one stands for zero.
_NOTHING = 1e-6
# A ridge on the information, in parts of its mean, lest rounding make it singular.
_RIDGE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What releases said so far about all k weights.

    Attributes
    ----------
    information : ndarray of float, shape (k, k)
        I, the sum of (A Z)' C^-1 A Z over looks with covariances C.
    score : ndarray of float, shape (k,)
        s, the sum of (A Z)' C^-1 times what was measured.
    before : ndarray of float, shape (k,)
        Variances that were supposed before any release.
    least : ndarray of float, shape (k,)
        The least that intervals suppose, lest a covariate that was passed over count as known not to matter.
    variances : ndarray of float, shape (k,)
        What is supposed by now.
    weights : ndarray of float, shape (k,)
        Posterior means.
    measured : ndarray of bool, shape (k,)
        Which weights a look measured.
    """

    information: Floats
    score: Floats
    before: Floats
    least: Floats
    variances: Floats
    weights: Floats
    measured: NDArray[np.bool_]

    @property
    def posterior(self) -> Floats:
        """The covariance of the weights, as far as they are known."""
        return self._given(self.variances)

    @property
    def cautious(self) -> Floats:
        """The same where no weight counts as known to be zero."""
        return self._given(np.maximum(self.variances, self.least))

    def _given(self, variances: Floats) -> Floats:
        root = np.sqrt(variances)
        inner = np.eye(len(root)) + self.information * np.outer(root, root)
        return np.asarray(root[:, None] * np.linalg.inv(inner) * root)


@dataclass(frozen=True, slots=True, eq=False)
class LookWeights:
    """What one look measured of m weights.

    Attributes
    ----------
    places : ndarray of int, shape (m,)
        Places of these weights among all k.
    values : ndarray of float, shape (m,)
        A Z theta + noise.
    covariance, noise : ndarray of float, shape (m, m)
        Covariance of the values' errors, and its part that is noise.
    design : ndarray of float, shape (m, k)
        A Z.
    """

    places: Places
    values: Floats
    covariance: Floats
    noise: Floats
    design: Floats


def before_release(functions: Functions, width: float) -> Posterior:
    """Return what is known before any release: supposed variances, from the width of the outcome's range."""
    size = 2 * functions.size
    before = supposed(functions.basis, width)
    least = _SCALES[0] * np.tile(slab(functions.basis, width), 2)
    return Posterior(
        information=np.zeros((size, size)),
        score=np.zeros(size),
        before=before,
        least=least,
        variances=before,
        weights=np.zeros(size),
        measured=np.zeros(size, np.bool_),
    )


def updated(
    functions: Functions, posterior: Posterior, look: LookWeights, width: float, clipped: float
) -> Posterior:
    """Return what is known with one more look; `clipped` is the share of residuals that may have been clipped."""
    hidden = _HIDDEN * clipped * look.design @ posterior.posterior @ look.design.T
    solved = np.linalg.solve(look.covariance + hidden, np.column_stack((look.design, look.values)))
    information = posterior.information + look.design.T @ solved[:, :-1]
    score = posterior.score + look.design.T @ solved[:, -1]
    groups = functions.groups
    jitter = _RIDGE * np.trace(information) / len(information)
    steady = information + jitter * np.eye(len(information))
    sparse = spike_and_slab(
        steady, score, groups=groups, base=np.tile(slab(functions.basis, width), 2), scales=_SCALES
    )
    measured = posterior.measured.copy()
    measured[look.places] = True
    # Weights that no look has measured may be as large as was supposed, if their covariate matters.
    smallest = np.where(measured, _NOTHING, sparse.included) * posterior.before
    variances = np.where(groups == 0, posterior.before, np.maximum(sparse.variances, smallest))
    return Posterior(
        information=information,
        score=score,
        before=posterior.before,
        least=posterior.least,
        variances=variances,
        weights=sparse.weights,
        measured=measured,
    )

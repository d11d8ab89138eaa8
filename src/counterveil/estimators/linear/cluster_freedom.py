"""Degrees of freedom of a clustered standard error, and its expected size before any release.

The squared standard error is |u|^2 for a vector u of residual totals by cluster
(`rows/linear/clustered_error.py`). With W the covariance of u, up to a constant, for outcomes of one variance
that have the correlation rho within clusters, |u|^2 is matched in mean and variance by a multiple of a
chi-square (Satterthwaite) with

    (trace W)^2 / trace W^2

degrees of freedom, which for equal weights and rho = 0 are those of Bell and McCaffrey [1]_. The least over
rho = 0 and 0.3 is taken, for rho is not known. From more than 400 clusters on (`_MANY`), W is taken to be
diagonal.

In: coefficients, arms and clusters, all public. Out: degrees of freedom, and for `expected_error` a standard
error in units of the standard deviation of an outcome. No outcome is read: these numbers set the length of
intervals, and privacy does not depend on them.

References
----------
.. [1] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with
   multi-stage samples. Survey Methodology 28, 169-181.
"""

from __future__ import annotations

import numpy as np

from counterveil.rows.linear.clustered_error import FACTOR_BITS, ClusterForm

# Degrees of freedom are the least over these correlations of outcomes within a cluster.
_CORRELATIONS = (0.0, 0.3)
# Beyond this many clusters each counts as independent of the arm's mean, which takes off one or two degrees.
_MANY = 400


def degrees_of_freedom(form: ClusterForm) -> float:
    """Return the degrees of freedom of the squared standard error, the least over likely correlations."""
    return min(freedom_at(form, correlation) for correlation in _CORRELATIONS)


def freedom_at(form: ClusterForm, correlation: float) -> float:
    """Return (trace W)^2 / trace W^2 for outcomes with this correlation within clusters."""
    factor = form.factors / 2.0**FACTOR_BITS
    total = np.ldexp(form.sizes.astype(np.float64), -form.bits)
    signed = np.ldexp(form.signed.astype(np.float64), -form.bits)
    within = (factor**2 * form.squares).sum(axis=1) * (1 - correlation)
    within += correlation * (factor * signed).sum(axis=1) ** 2
    if form.clusters > _MANY:
        return float(within.sum() ** 2 / (within @ within))
    between = factor * form.parts
    apart = np.diag((factor**2 * form.squares).sum(axis=1))
    for a in (0, 1):
        turned = factor[:, a] * form.turned[:, a]
        shared = np.outer(between[:, a], turned)
        apart += np.outer(between[:, a], between[:, a]) * form.squares[:, a].sum() - shared - shared.T
    together = np.diag((factor * signed).sum(axis=1)) - between @ total.T
    both = (1 - correlation) * apart + correlation * (together @ together.T)
    return float(np.trace(both) ** 2 / (both * both).sum())


def expected_error(form: ClusterForm, correlation: float) -> float:
    """Return the standard error for outcomes of variance one and this correlation within clusters."""
    totals = np.ldexp(form.signed.sum(axis=1).astype(np.float64), -form.bits)
    return float(np.sqrt((1 - correlation) * form.squares.sum() + correlation * (totals @ totals)))

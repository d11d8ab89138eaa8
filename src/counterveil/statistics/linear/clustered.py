"""Weighted sums of outcomes that come in clusters: one draw for the effect, one for its clustered standard error.

Lineage: cluster-robust variance (Liang and Zeger 1986) with the factors and degrees of freedom of Bell and McCaffrey
(2002) for few clusters. The standard error is released, not the variance: it is the length of a vector, which one
outcome moves by no more than it moves the effect, whatever the size of its cluster.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.inference import ClusterUncertainty, t_factor
from counterveil.numerics.arrays import Integers
from counterveil.numerics.linear_form import ClusterForm, LinearForm, cluster_form, linear_form
from counterveil.privacy import exact
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question, too_few_clusters
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings.methods import asked_share
from counterveil.statistics.linear.budget import TYPICAL_SD
from counterveil.statistics.linear.effect import LinearEffect, linear_effect, treatment_shares
from counterveil.statistics.linear.sensitivity import ClusteredEstimate

PAGE = "statistics/linear/clustered_error.proof.md"
NAMES = ("effect", "error")
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1
# Shares of the budget that may go to the standard error.
_SHARES = [Fraction(k, 20) for k in range(1, 15)]
# A public guess of the correlation within clusters, and of what the noise of the standard error adds to it, in its
# standard deviations; they only steer the split.
_CORRELATION, _ALLOWED = 0.1, 0.5
# Fewest clusters of an arm, and degrees of freedom, that a t interval is given for.
FEWEST_CLUSTERS, LEAST_FREEDOM = 3, 3.0


def clustered_effect(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator; only outcomes are private, clusters are public."""
    table, study = effect.table or session.table, session.study
    assert table.cluster is not None
    assert study.cluster is not None
    column = study.cluster.column
    form = linear_form(effect.coefficients)
    clusters = cluster_form(form, table.cluster, table.treated)
    freedom = checked_freedom(column, clusters)
    sensitivity = sensitivity_of(table, effect, form, clusters)
    share = asked_share(question.settings)
    if share is None:
        share = chosen_share(sensitivity, clusters, question, freedom)
    shares = treatment_shares(session.table)

    def compute(gate: Gate) -> Facts:
        value, length = exact_numbers(form, clusters, table.outcome)
        released = gate.release(NAMES[0], value * sensitivity.width, sensitivity.estimate)
        releases = [("effect", f"sensitivity {float(sensitivity.estimate):.6g}")]
        cap = float(sensitivity.cap) ** 2
        variance, noise = cap, None
        if share > 0:
            error = gate.release(NAMES[1], length * sensitivity.width * sensitivity.factor, sensitivity.error)
            variance, noise = max(float(error), 0.0) ** 2, error.noise
            releases.append(("its standard error", f"sensitivity {float(sensitivity.error):.6g}"))
        known = ClusterUncertainty(released.noise, variance, cap, sd_noise=noise, freedom=freedom)
        return Facts(
            estimate=float(released),
            uncertainty=known,
            method=clustered_method(effect.method, column, clusters.clusters),
            releases=tuple(releases),
            not_covered=clustered_caveats(effect),
            details=effect.details
            | effect.with_bias(known.sampling_sd)
            | cluster_details(clusters, table, freedom)
            | {"mechanism": question.mechanism, "variance_budget_share": float(share)},
            diagnostics=effect.diagnostics | shares,
            assumes=effect.assumes,
        )

    # A variance that is not released has no page.
    pages, plan = (*effect.pages[:1], PAGE), _plan(question, share)
    return settled(Result, session, question, plan, compute, pages=pages, remarks=effect.remarks)


def _plan(question: Question, share: Fraction) -> Plan:
    """Return the plan of the effect and, for `share` of the budget, its standard error."""
    return Plan.split(question.budget, dict(zip(NAMES, (1 - share, share), strict=True)), question.mechanism)


def exact_numbers(form: LinearForm, clusters: ClusterForm, outcome: Integers) -> tuple[Fraction, Fraction]:
    """Return the weighted sum and its standard error for outcomes in steps, in units of the range."""
    return form.total(outcome) / OUTCOME_STEPS, clusters.length(outcome, _STEP_BITS)


def effect_of(session: BaseSession, question: Question, effect: LinearEffect) -> Result:
    """Return the private value of a public linear estimator, with its error by cluster where the study has clusters."""
    return (clustered_effect if session.study.clustered else linear_effect)(session, question, effect)


def sensitivity_of(
    table: Table, effect: LinearEffect, form: LinearForm, clusters: ClusterForm
) -> ClusteredEstimate:
    """Return how far one outcome can move the effect and its standard error, which allows for bias."""
    lo, hi = table.study.outcome_range
    factor = exact(sqrt(effect.factor), "bias")
    change = Fraction(clusters.largest_change) + clusters.rounding
    return ClusteredEstimate(hi - lo, form.largest, change, Fraction(clusters.cap), factor)


def chosen_share(
    sensitivity: ClusteredEstimate, clusters: ClusterForm, question: Question, freedom: float
) -> Fraction:
    """Return the share for the standard error of the shortest expected interval; reads public numbers only."""
    typical = float(sensitivity.factor * sensitivity.width * TYPICAL_SD) * clusters.typical(_CORRELATION)
    wide = t_factor(freedom, 1 - question.level)

    def expected(share: Fraction) -> float:
        plan = _plan(question, share)
        own = plan.noise(NAMES[0], sensitivity.estimate).variance
        other = plan.noise(NAMES[1], sensitivity.error).variance
        return own + (wide * (typical + _ALLOWED * sqrt(other))) ** 2

    return min(_SHARES, key=expected)


def checked_freedom(column: str, clusters: ClusterForm) -> float:
    """Return the degrees of freedom, or raise CV-S066 where clusters are too few for an interval."""
    treated, control = clusters.clusters_by_arm
    freedom = clusters.freedom if min(treated, control) >= FEWEST_CLUSTERS else 0.0
    if freedom < LEAST_FREEDOM:
        raise too_few_clusters(
            column,
            f"{FEWEST_CLUSTERS} clusters in each arm and {LEAST_FREEDOM:g} degrees of freedom, more clusters where a "
            "few large ones outweigh the others",
            f"{treated} clusters with treated rows and {control} with others, {freedom:.1f} degrees of freedom",
        )
    return freedom


def clustered_method(method: str, column: str, count: int) -> str:
    """Return the method with how its standard error was found."""
    return f"{method}; standard error clustered by {column}, {count} clusters"


def clustered_caveats(effect: LinearEffect) -> tuple[Fact, ...]:
    """Return what an interval does not cover: that of the estimator, and dependence beyond clusters."""
    # Residual totals of clusters hold every heteroskedasticity.
    kept = (one for one in effect.not_covered if one is not Caveat.UNEVEN_VARIANCE)
    return (*kept, Caveat.CLUSTERS_DEPEND)


def cluster_details(clusters: ClusterForm, table: Table, freedom: float) -> dict[str, float | str]:
    """Return the single figures of the clusters, all public."""
    treated, control = clusters.clusters_by_arm
    assert table.cluster is not None
    sizes = np.bincount(table.cluster)
    return {
        "clusters": clusters.clusters,
        "clusters_treated": treated,
        "clusters_control": control,
        "largest_cluster": int(sizes.max()),
        "degrees_of_freedom": freedom,
    }

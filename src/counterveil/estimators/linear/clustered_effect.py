"""A weighted effect of outcomes in public clusters, released with its cluster-robust standard error.

    effect = sum_i c_i y_i,    S = |u|,    u_g = sum over the rows of cluster g of f_ga c_i (y_i - M_a),

in units of the outcome, with public weights c, M_a the weighted mean of the row's arm a, and public factors
f_ga that make the mean of u_g^2 right for independent outcomes of one variance
(`rows/linear/clustered_error.py`). One outcome is private; in a range of width B it moves the effect by at
most B max |c_i|, and S by a bound of that size whatever the size of its cluster. So S is released, not its
square. Proof: `rows/linear/clustered_error.proof.md`.

In: public covariates, treatments, clusters and coefficients; private outcomes, read through the gate alone
(it adds noise and lets each release of the plan through once). Out: the effect and S with their noise. With
few clusters an interval takes Student's t with the degrees of freedom of Bell and McCaffrey (2002), from
`cluster_freedom.py`; fewer than 3 clusters in an arm, or 3 degrees of freedom, are refused.

The share of the budget for S is that of the shortest expected interval. It supposes a correlation within
clusters of 0.1 (`_CORRELATION`), and allows half a standard deviation of the noise of S (`_ALLOWED`): guesses
that steer the split alone; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.errors import CounterveilError
from counterveil.estimators.linear.budget_split import TYPICAL_SD
from counterveil.estimators.linear.cluster_freedom import degrees_of_freedom, expected_error
from counterveil.estimators.linear.diagnostics import treatment_shares
from counterveil.estimators.linear.linear_estimator import LinearEffect
from counterveil.estimators.method import Prepared
from counterveil.inference.clusters import ClusterUncertainty, t_factor
from counterveil.privacy import exact
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.privacy.provenance import Clustered, Quantity, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question, too_few_clusters
from counterveil.results.result import Result
from counterveil.rows.linear.clustered_error import ClusteredOutcomes, ClusterForm
from counterveil.rows.linear.sensitivity import ClusteredEstimate
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Plan, Released
from counterveil.settings.methods import asked_share

CLUSTERED_PAGE = "rows/linear/clustered_error.proof.md"
CLUSTERED_NAMES = ("effect", "error")
# Shares of the budget that may go to the standard error.
_CLUSTERED_SHARES = [Fraction(k, 20) for k in range(1, 15)]
# A public guess of the correlation within clusters, and of what the noise of the standard error adds to it, in its
# standard deviations; they only steer the split.
_CORRELATION = 0.1
_ALLOWED = 0.5
# Fewest clusters of an arm, and degrees of freedom, that a t interval is given for.
FEWEST_CLUSTERS = 3
LEAST_FREEDOM = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredForm:
    """A comparison of the arms by weights, of rows in public clusters, and how its standard error is released.

    Attributes
    ----------
    effect : LinearEffect
        The estimator.
    outcomes : ClusteredOutcomes
        What is summed and released.
    freedom : float
        Degrees of freedom of the squared standard error, 0 where clusters are too few.
    sensitivity : ClusteredEstimate
        How far one outcome moves the effect and its standard error.
    share : Fraction
        Share of the budget for the standard error; with 0 its largest value stands in.
    """

    effect: LinearEffect
    outcomes: ClusteredOutcomes
    freedom: float
    sensitivity: ClusteredEstimate
    share: Fraction

    @classmethod
    def of(cls, rows: PublicRows, question: Question, effect: LinearEffect) -> ClusteredForm:
        """Return the comparison of these rows, or of those that the estimator carries; reads public columns."""
        outcomes = ClusteredOutcomes.of(
            effect.rows or rows, effect.coefficients, exact(sqrt(effect.factor), "bias")
        )
        clusters = outcomes.clusters
        freedom = degrees_of_freedom(clusters) if min(clusters.clusters_by_arm) >= FEWEST_CLUSTERS else 0.0
        bounds = outcomes.bounds
        share = asked_share(question.settings)
        if share is None and freedom >= LEAST_FREEDOM:
            share = clustered_chosen_share(bounds, clusters, question, freedom)
        return cls(
            effect=effect,
            outcomes=outcomes,
            freedom=freedom,
            sensitivity=bounds,
            share=Fraction(0) if share is None else share,
        )

    @property
    def enough(self) -> bool:
        """Whether there are enough clusters for an interval."""
        return self.freedom >= LEAST_FREEDOM

    @property
    def sizes(self) -> tuple[int, int]:
        """How many of those who are compared are treated, and how many are not."""
        rows = self.outcomes.rows
        treated = int(rows.treated.sum())
        return treated, rows.rows - treated

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, ClusterUncertainty]:
        """Return the released comparison and its error, whose largest value stands in where it is not released."""
        released, error = self.outcomes.release(gate, with_error=self.share > 0, names=names)
        cap = float(self.sensitivity.cap) ** 2
        variance = cap if error is None else max(float(error), 0.0) ** 2
        noise = None if error is None else error.noise
        return released, ClusterUncertainty(
            released.noise, variance, cap, sd_noise=noise, freedom=self.freedom
        )


def clustered_effect(public: PublicData, question: Question, effect: LinearEffect) -> Prepared[Result]:
    """Return a linear estimator of clustered outcomes, prepared for its releases; clusters are public."""
    assert public.study.cluster is not None
    column = public.study.cluster.column
    form = ClusteredForm.of(public.columns, question, effect)
    if not form.enough:
        raise _few_clusters(column, form)
    clusters = form.outcomes.clusters
    treatment = treatment_shares(public.columns)

    def estimate(gate: Gate) -> Facts:
        released, uncertainty = form.release(gate, CLUSTERED_NAMES)
        bounds = zip(
            (Quantity.EFFECT, Quantity.ITS_STANDARD_ERROR),
            (form.sensitivity.estimate, form.sensitivity.error),
            strict=True,
        )
        releases = [(quantity, Sensitivity(float(bound))) for quantity, bound in bounds]
        return Facts(
            estimate=float(released),
            uncertainty=uncertainty,
            method=Clustered(effect.method, column, clusters.clusters),
            releases=tuple(releases if form.share > 0 else releases[:1]),
            not_covered=clustered_caveats(effect),
            details=effect.details
            | effect.with_bias(uncertainty.sampling_sd)
            | cluster_details(clusters, form.outcomes.rows, form.freedom)
            | {"mechanism": question.mechanism, "variance_budget_share": float(form.share)},
            diagnostics=effect.diagnostics | treatment,
            assumptions=effect.assumptions,
        )

    return Prepared(
        question=question,
        plan=_plan(question, form.share),
        estimate=estimate,
        # A variance that is not released has no page.
        pages=(*effect.pages[:1], CLUSTERED_PAGE),
        remarks=effect.remarks,
    )


def _plan(question: Question, share: Fraction) -> Plan:
    """Return the plan of the effect and, for `share` of the budget, its standard error."""
    return Plan.split(
        question.budget, dict(zip(CLUSTERED_NAMES, (1 - share, share), strict=True)), question.mechanism
    )


def clustered_chosen_share(
    sensitivity: ClusteredEstimate, clusters: ClusterForm, question: Question, freedom: float
) -> Fraction:
    """Return the share for the standard error of the shortest expected interval; reads public numbers only."""
    typical = float(sensitivity.factor * sensitivity.width * TYPICAL_SD) * expected_error(
        clusters, _CORRELATION
    )
    wide = t_factor(freedom, 1 - question.level)

    def expected(share: Fraction) -> float:
        plan = _plan(question, share)
        estimate_variance = plan.noise(CLUSTERED_NAMES[0], sensitivity.estimate).variance
        noise_variance = plan.noise(CLUSTERED_NAMES[1], sensitivity.error).variance
        return estimate_variance + (wide * (typical + _ALLOWED * sqrt(noise_variance))) ** 2

    return min(_CLUSTERED_SHARES, key=expected)


def _few_clusters(column: str, clusters: ClusteredForm) -> CounterveilError:
    treated, control = clusters.outcomes.clusters.clusters_by_arm
    return too_few_clusters(
        column,
        f"{FEWEST_CLUSTERS} clusters in each arm and {LEAST_FREEDOM:g} degrees of freedom, more clusters where a "
        "few large ones outweigh the others",
        f"{treated} clusters with treated rows and {control} with others, {clusters.freedom:.1f} degrees of freedom",
    )


def clustered_caveats(effect: LinearEffect) -> tuple[Fact, ...]:
    """Return what an interval does not cover: that of the estimator, and dependence beyond clusters."""
    # Residual totals of clusters hold every heteroskedasticity.
    kept_caveats = (caveat for caveat in effect.not_covered if caveat is not Caveat.UNEVEN_VARIANCE)
    return (*kept_caveats, Caveat.CLUSTERS_DEPEND)


def cluster_details(clusters: ClusterForm, rows: PublicRows, freedom: float) -> dict[str, float | str]:
    """Return the single figures of the clusters, all public."""
    treated, control = clusters.clusters_by_arm
    assert rows.cluster is not None
    sizes = np.bincount(rows.cluster)
    return {
        "clusters": clusters.clusters,
        "clusters_treated": treated,
        "clusters_control": control,
        "largest_cluster": int(sizes.max()),
        "degrees_of_freedom": freedom,
    }

"""Effect in a trial of clusters where whole records are private: from noisy counts and sums by cell.

With released counts N_g of people and sums S_g of outcomes by cell of cluster and arm, the mean of arm a is
M_a = sum S / sum N over its cells, and the effect is M_1 - M_0. Its error is clustered,

    variance = sum_g u_g^2,    u_g = (+-) sqrt(G_a / (G_a - 1)) (S_g - M_a N_g) / (sum N of the arm),

over clusters g, with G_a the number of clusters of arm a. The sum of u^2 holds the noise too, which is drawn
cell by cell, like what people of a cluster have in common.

In: a public list of clusters; private people, whose cluster is private too. Sums are of outcomes centred on
the middle of the declared range, where the noise of counts matters little. Out: the effect in units of the
outcome, with t intervals whose degrees of freedom follow from released counts (Satterthwaite). Lineage: ratio
means with a variance between clusters (Liang and Zeger 1986) [1]_.

Proof: `rows/strata/cluster_cells.proof.md`, how far one replaced person moves all counts and sums. Budget
parts, limits on noise and the supposed correlation steer errors and refusals; privacy does not depend on
them.

References
----------
.. [1] Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models.
   Biometrika 73, 13-22.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Layout, Study
from counterveil.errors import refusal
from counterveil.estimators.method import Prepared
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import Clustered, Estimator, Quantity, ReleaseRow, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question, causal_caveats, too_few_clusters
from counterveil.results.result import Result
from counterveil.rows.public import PublicData
from counterveil.rows.strata.cluster_sensitivity import ClusterCells
from counterveil.rows.strata.cluster_totals import ClusterArms, ClusterTotals, cluster_arms
from counterveil.session import Gate, Kind, Plan
from counterveil.settings import Trial

CLUSTER_PAGE = "rows/strata/cluster_cells.proof.md"
# Counts of people and sums of outcomes that are released.
_BY_CLUSTER = Quantity.PEOPLE_BY_CLUSTER, Quantity.OUTCOMES_BY_CLUSTER
_BY_GROUP_AND_CLUSTER = Quantity.PEOPLE_BY_GROUP_AND_CLUSTER, Quantity.OUTCOMES_BY_GROUP_AND_CLUSTER
# The part of the budget for the counts: sums are centred on the middle of the range, where counts matter little.
_FOR_COUNTS = Fraction(1, 3)
# The most noise of an arm's number of people, as a part of it, that a comparison is expected to have before anything is
# spent; with more it is refused.
_EXPECTED_NOISE = 0.15
# The most released noise of it that the comparison of means is trusted with.
_RELEASED_NOISE = 0.25
# Fewest clusters of an arm.
_FEWEST = 3
# Public guesses, for degrees of freedom alone: the correlation within clusters, and an outcome's standard deviation in
# widths of its range.
_CORRELATION = 0.3
_TYPICAL_SD = 1 / 6
# Variance of the Laplace noise of a count at epsilon 1: 2 b^2 with b = 2, the change of all counts.
_COUNT_VARIANCE = 8.0


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """What is released of a trial of public clusters, in one group or in several, and under which plan.

    Attributes
    ----------
    question : Question
        The question, with the mechanism that was chosen.
    plan : Plan
        Parts of the budget for counts and sums.
    totals : ClusterTotals
        Counts and sums of all cells.
    releases : tuple of (Quantity, Sensitivity)
        What was released, as a result lists it.
    details : dict
        Public numbers for a result.
    """

    question: Question
    plan: Plan
    totals: ClusterTotals
    releases: tuple[ReleaseRow, ...]
    details: dict[str, float | str]

    def release(self, gate: Gate) -> list[ClusterDifference]:
        """Return the difference of the arms in every group, from released counts and centred sums."""
        people, totals = self.totals.release(gate)
        groups = 1 if self.totals.groups is None else self.totals.groups.public
        by_group = zip(np.split(people.floats(), groups), np.split(totals.floats(), groups), strict=True)
        return [
            compared(
                self.totals.cells,
                *group,
                noises=(people.variance, totals.variance),
                width=float(self.totals.bounds.width),
            )
            for group in by_group
        ]


def cluster_sums(public: PublicData, question: Question, groups: Layout | None = None) -> ClusterSums:
    """Return what is to be released, or refuse it; reads public numbers and the list of clusters."""
    study = public.study
    cluster = study.cluster
    assert cluster is not None
    cells = cluster_arms(public)
    rows = public.rows
    if question.open_noise:
        # A pure guarantee is one for every delta, and many numbers released together have Laplace noise.
        question = replace(question, mechanism="laplace")
    width = study.outcome_bounds.width
    plan = Plan.split(
        question.budget,
        {"counts": _FOR_COUNTS, "sums": 1 - _FOR_COUNTS},
        question.mechanism,
        dict.fromkeys(("counts", "sums"), Kind.CELLS),
    )
    count = 1 if groups is None else groups.public
    _refuse_small(study, cells, rows // count, float(plan.amount("counts", Kind.CELLS)))
    people, outcomes = _BY_CLUSTER if count == 1 else _BY_GROUP_AND_CLUSTER
    releases = ((people, Sensitivity(2.0)), (outcomes, Sensitivity(float(width))))
    control, treated = cells.by_arm
    details: dict[str, float | str] = {"rows": rows, "clusters": cells.clusters, "mechanism": "laplace"}
    if cluster.assigned:
        details |= {"clusters_treated": treated, "clusters_control": control}
    return ClusterSums(
        question=question,
        plan=plan,
        totals=ClusterTotals(cells, ClusterCells(width), groups),
        releases=releases,
        details=details,
    )


def clustered_trial(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the private effect in a trial of clusters; everything about a person is private, their cluster too."""
    settings = question.settings or Trial()
    study = public.study
    cluster = study.cluster
    assert cluster is not None
    if settings.adjustment == "covariates":
        raise refusal("CV-S026b", cluster=cluster.column)
    sums = cluster_sums(public, question)

    def estimate(gate: Gate) -> Facts:
        (difference,) = sums.release(gate)
        return Facts(
            estimate=difference.effect,
            uncertainty=difference.uncertainty,
            method=Clustered(Estimator.COMPARISON_OF_MEANS, cluster.column, sums.totals.cells.clusters),
            releases=sums.releases,
            not_covered=(*causal_caveats(study, question.estimand), Caveat.CLUSTERS_DEPEND),
            details=sums.details
            | {"share_treated": difference.share, "degrees_of_freedom": difference.uncertainty.freedom},
        )

    return Prepared(
        question=sums.question,
        plan=sums.plan,
        estimate=estimate,
        pages=CLUSTER_PAGE,
        mechanisms=("laplace",),
    )


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """The difference of the arms' means, with its error; made of released numbers.

    Attributes
    ----------
    effect : float
        Mean of the treated less that of the others, in units of the outcome.
    uncertainty : ClusterUncertainty
        Its error, sampling and noise together.
    share : float
        Share of the people in the treated arm.
    people, people_sd : float
        Number of people, and the standard deviation of its noise.
    """

    effect: float
    uncertainty: ClusterUncertainty
    share: float
    people: float
    people_sd: float


def compared(
    cells: ClusterArms, people: Floats, totals: Floats, *, noises: tuple[float, float], width: float
) -> ClusterDifference:
    """Return the difference in means and its standard error by cluster, from noisy counts and centred sums.

    `noises` are the variances of the noise of a count and of a sum, `width` is that of the outcome's range.
    """
    count_noise, sum_noise = noises
    clusters = np.array(cells.by_arm, dtype=np.float64)
    size = np.bincount(cells.arm, people, 2)
    least = sqrt(count_noise) * np.sqrt(clusters) / _RELEASED_NOISE
    # An arm whose number of people is lost in its noise has no mean: the interval is then the whole range.
    lost = bool((size < least).any())
    size = np.maximum(size, least)
    mean = np.bincount(cells.arm, totals, 2) / size
    sign = np.where(cells.arm == 1, 1.0, -1.0)
    factor = (np.sqrt(clusters / (clusters - 1)) / size)[cells.arm]
    u = np.bincount(cells.cluster, sign * factor * (totals - mean[cells.arm] * people), cells.clusters)
    noise = float((factor**2 * (sum_noise + mean[cells.arm] ** 2 * count_noise)).sum())
    # The sum of u^2 holds the noise, which is told apart.
    variance = max(float(u @ u) - noise, 0.0)
    freedom = _freedom(cells, people, factor, sum_noise / (width * _TYPICAL_SD) ** 2)
    effect = float(mean[1] - mean[0])
    # From anywhere in it, so much reaches both ends of the range of effects.
    range_bias = 2 * width + abs(effect) if lost else 0.0
    uncertainty = ClusterUncertainty(
        None,
        variance,
        max(variance, width**2),
        extra=width**2 if lost else noise,
        bias=range_bias,
        freedom=freedom,
    )
    return ClusterDifference(
        effect=effect,
        uncertainty=uncertainty,
        share=float(size[1] / size.sum()),
        people=float(people.sum()),
        people_sd=sqrt(count_noise * len(people)),
    )


def _freedom(cells: ClusterArms, people: Floats, factor: Floats, noise: float) -> float:
    """Return the degrees of freedom (Satterthwaite) that the released counts suggest, at least one.

    `noise` is the variance of a sum's noise beside that of an outcome.
    """
    sizes = np.maximum(people, 0.0)
    variances = factor**2 * ((1 - _CORRELATION) * sizes + _CORRELATION * sizes**2 + noise)
    if cells.clusters < len(cells.arm):
        both = np.bincount(cells.cluster, variances, cells.clusters)
        return max(float(both.sum() ** 2 / (both @ both)) - 2, 1.0)
    total = np.bincount(cells.arm, variances, 2)
    squares = np.bincount(cells.arm, variances**2, 2)
    free = np.maximum(total**2 / squares - 1, 1.0)
    return max(float(total.sum() ** 2 / (total**2 / free).sum()), 1.0)


def _refuse_small(study: Study, cells: ClusterArms, rows: int, epsilon: float) -> None:
    """Raise CV-S066 for too few clusters, CV-P681 where noisy counts would say nothing; from public numbers alone."""
    assert study.cluster is not None
    fewest = min(cells.by_arm)
    needed = _FEWEST if study.cluster.assigned else 2 * _FEWEST
    if fewest < needed:
        raise too_few_clusters(
            study.cluster.column,
            f"at least {needed} clusters{' in each arm' if study.cluster.assigned else ''}",
            f"{fewest}",
        )
    arm = rows * fewest / len(cells.arm)
    noise = sqrt(_COUNT_VARIANCE * fewest) / epsilon / arm
    if noise > _EXPECTED_NOISE:
        raise refusal("CV-P681", noise=noise, rows=rows, clusters=cells.clusters)

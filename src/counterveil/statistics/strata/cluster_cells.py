"""A trial whose people come in clusters, where whole records are private: noisy counts and sums by cluster and arm.

A person is in one cluster, so that noise on every cluster's count and sum costs no more than noise on one. The effect
and its clustered standard error are then made of released numbers alone, and the standard error holds the noise: it is
drawn cluster by cluster, like what clusters have in common.

Lineage: ratio means with a variance between clusters (Liang and Zeger 1986), t intervals for few clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Study, Table
from counterveil.errors import CounterveilError, refusal
from counterveil.inference import ClusterUncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import Caveat
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question, causal_caveats, too_few_clusters
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan, ReleasedVector
from counterveil.settings import Trial
from counterveil.statistics.strata.sensitivity import ClusterCells

PAGE = "statistics/strata/cluster_cells.proof.md"
# The part of the budget for the counts: sums are centred on the middle of the range, where counts matter little.
_FOR_COUNTS = Fraction(1, 3)
# The most noise of an arm's number of people, as a part of it, that the comparison of means is trusted with: as
# expected before anything is spent, and as released.
_EXPECTED_NOISE, _RELEASED_NOISE = 0.15, 0.25
# Fewest clusters of an arm.
_FEWEST = 3
# A public guess of the correlation within clusters and of an outcome's standard deviation, for degrees of freedom.
_CORRELATION, _TYPICAL_SD = 0.3, 1 / 6


@dataclass(frozen=True, slots=True)
class ClusterArms:
    """Which cells of cluster times arm there are; `cluster` and `arm` (0 or 1) name them in their public order."""

    cluster: NDArray[np.intp]
    arm: NDArray[np.intp]
    clusters: int

    @classmethod
    def of(cls, table: Table) -> ClusterArms:
        """Return the cells: the arm that each cluster was assigned to, or both arms of each."""
        assert table.cluster is not None
        assert table.study.cluster is not None
        count = int(table.cluster.max()) + 1
        if not table.study.cluster.assigned:
            return cls(np.repeat(np.arange(count), 2), np.tile([0, 1], count), count)
        arm = np.zeros(count, dtype=np.intp)
        arm[table.cluster] = table.treated
        return cls(np.arange(count), arm, count)

    @property
    def by_arm(self) -> tuple[int, int]:
        """The number of clusters in the control arm and in the treated one."""
        treated = int(self.arm.sum())
        return len(self.arm) - treated, treated

    def totals(self, table: Table) -> tuple[list[int], list[int]]:
        """Return each cell's number of rows and its sum of outcomes less the middle of their range, in steps."""
        cell = 2 * table.cluster + table.treated  # type: ignore[operator]  # the table has clusters
        own = 2 * self.cluster + self.arm
        centred = (table.outcome - OUTCOME_STEPS // 2).astype(np.float64)
        # Doubles add steps below 2**24 exactly, up to 2**29 rows.
        counts, sums = (np.bincount(cell, values, 2 * self.clusters)[own] for values in (None, centred))
        return [int(count) for count in counts], [int(total) for total in sums]


def clustered_trial(session: BaseSession, question: Question) -> Result:
    """Return the private effect in a trial of clusters; everything about a person is private, their cluster too."""
    settings = question.settings or Trial()
    study, cluster = session.study, session.study.cluster
    assert cluster is not None
    if settings.adjustment == "covariates":
        raise _not_adjusted(study)
    if question.open_noise:
        # A pure guarantee is one for every delta, and many numbers released together have Laplace noise.
        question = replace(question, mechanism="laplace")
    table = session.table
    cells = ClusterArms.of(table)
    width = study.outcome_bounds.width
    sensitivity = ClusterCells(width)
    plan = Plan.split(
        question.budget,
        {"counts": _FOR_COUNTS, "sums": 1 - _FOR_COUNTS},
        question.mechanism,
        dict.fromkeys(("counts", "sums"), Kind.CELLS),
    )
    _refuse_small(study, cells, table.rows, float(plan.amount("counts", Kind.CELLS)))

    def compute(gate: Gate) -> Facts:
        people, totals = release(gate, cells, table, sensitivity)
        noises = (people.variance, totals.variance)
        found = compared(cells, people.floats(), totals.floats(), noises, float(width))
        control, treated = cells.by_arm
        return Facts(
            estimate=found.effect,
            uncertainty=found.uncertainty,
            method=f"comparison of means; standard error clustered by {cluster.column}, {cells.clusters} clusters",
            releases=(
                ("number of people by cluster and arm", "sensitivity 2"),
                ("sums of outcomes by cluster and arm", f"sensitivity {float(width):.6g}"),
            ),
            not_covered=(*causal_caveats(study, question.estimand), Caveat.CLUSTERS_DEPEND),
            details={
                "rows": table.rows,
                "clusters": cells.clusters,
                **({"clusters_treated": treated, "clusters_control": control} if cluster.assigned else {}),
                "share_treated": found.share,
                "degrees_of_freedom": found.uncertainty.freedom,
                "mechanism": "laplace",
            },
        )

    return settled(Result, session, question, plan, compute, pages=PAGE, mechanisms=("laplace",))


def release(
    gate: Gate, cells: ClusterArms, table: Table, sensitivity: ClusterCells
) -> tuple[ReleasedVector, ReleasedVector]:
    """Return the released numbers of people and centred sums of outcomes, by cell."""
    counts, sums = cells.totals(table)
    unit = sensitivity.width / OUTCOME_STEPS
    people = gate.release_cells("counts", [Fraction(count) for count in counts], sensitivity.counts)
    return people, gate.release_cells("sums", [total * unit for total in sums], sensitivity.sums)


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """The difference of the arms' means, with what is known of its error; made of released numbers."""

    effect: float
    uncertainty: ClusterUncertainty
    share: float  # of the people, in the treated arm


def compared(
    cells: ClusterArms, people: Floats, totals: Floats, noises: tuple[float, float], width: float
) -> ClusterDifference:
    """Return the difference in means and its standard error by cluster, from noisy counts and centred sums."""
    several = np.array(cells.by_arm, dtype=np.float64)
    size = np.bincount(cells.arm, people, 2)
    least = sqrt(noises[0]) * np.sqrt(several) / _RELEASED_NOISE
    # An arm whose number of people is lost in its noise has no mean: the interval is then the whole range.
    lost = bool((size < least).any())
    size = np.maximum(size, least)
    mean = np.bincount(cells.arm, totals, 2) / size
    sign = np.where(cells.arm == 1, 1.0, -1.0)
    factor = (np.sqrt(several / (several - 1)) / size)[cells.arm]
    left = np.bincount(cells.cluster, sign * factor * (totals - mean[cells.arm] * people), cells.clusters)
    noise = float((factor**2 * (noises[1] + mean[cells.arm] ** 2 * noises[0])).sum())
    variance = max(float(left @ left) - noise, 0.0)
    freedom = _freedom(cells, people, factor, noises[1] / (width * _TYPICAL_SD) ** 2)
    effect = float(mean[1] - mean[0])
    # From anywhere in it, so much reaches both ends of the range of effects.
    whole = 2 * width + abs(effect) if lost else 0.0
    known = ClusterUncertainty(
        None,
        variance,
        max(variance, width**2),
        extra=width**2 if lost else noise,
        bias=whole,
        freedom=freedom,
    )
    return ClusterDifference(effect, known, float(size[1] / size.sum()))


def _freedom(cells: ClusterArms, people: Floats, factor: Floats, noise: float) -> float:
    """Return the degrees of freedom (Satterthwaite) that the released counts suggest, at least one.

    `noise` is the variance of a sum's noise beside that of an outcome.
    """
    sizes = np.maximum(people, 0.0)
    own = factor**2 * ((1 - _CORRELATION) * sizes + _CORRELATION * sizes**2 + noise)
    if cells.clusters < len(cells.arm):
        both = np.bincount(cells.cluster, own, cells.clusters)
        return max(float(both.sum() ** 2 / (both @ both)) - 2, 1.0)
    total, squares = np.bincount(cells.arm, own, 2), np.bincount(cells.arm, own**2, 2)
    free = np.maximum(total**2 / squares - 1, 1.0)
    return max(float(total.sum() ** 2 / (total**2 / free).sum()), 1.0)


def _refuse_small(study: Study, cells: ClusterArms, rows: int, epsilon: float) -> None:
    """Raise CV-S066 for too few clusters, CV-P681 where noisy counts would say nothing; from public numbers alone."""
    assert study.cluster is not None
    fewest = min(cells.by_arm)
    needed = _FEWEST if study.cluster.assigned else 2 * _FEWEST
    if fewest < needed:
        arms = " in each arm" if study.cluster.assigned else ""
        raise too_few_clusters(study.cluster.column, f"at least {needed} clusters{arms}", f"{fewest}")
    arm = rows * fewest / len(cells.arm)
    noise = sqrt(8.0 * fewest) / epsilon / arm
    if noise > _EXPECTED_NOISE:
        raise refusal("CV-P681", noise=noise, rows=rows, clusters=cells.clusters)


def _not_adjusted(study: Study) -> CounterveilError:
    assert study.cluster is not None
    return refusal("CV-S026b", cluster=study.cluster.column)

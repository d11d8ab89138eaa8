"""Effects of private groups in a trial of public clusters: counts and sums by group, cluster and arm.

    effect of a group = sum S / sum N over treated clusters - sum S / sum N over control clusters,

with N the released count of people and S the released sum of outcomes in a cell of group, cluster and arm; in
units of the outcome, with the standard error by cluster of `strata/clustered_trial.py` (Liang and Zeger
1986). In: private people, whose group, cluster, arm and outcome are private; public lists of groups and
clusters. Out: an effect for every group and its noisy number of people.

A person is in one cell, so that a replaced one moves two cells at most and all groups cost what one does.
Proof: `rows/strata/cluster_cells.proof.md`.
"""

from __future__ import annotations

from dataclasses import replace

from counterveil.data import Layout
from counterveil.estimators.group_names import group_names
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.record_groups import score_caveats
from counterveil.estimators.strata.clustered_trial import CLUSTER_PAGE, cluster_sums
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import ClusteredGroups, Estimator
from counterveil.results.answering import Facts
from counterveil.results.effect import Effect, Linear
from counterveil.results.groups import GroupsResult
from counterveil.results.question import Question
from counterveil.rows.public import PublicData
from counterveil.session import Gate


def clustered_groups(public: PublicData, question: Question, *, layout: Layout) -> Prepared[GroupsResult]:
    """Return the effects of all groups; counts and sums by group, cluster and arm hold the errors."""
    study = public.study
    names = group_names(layout)
    sums = cluster_sums(public, replace(question, method="arms"), groups=layout)
    width = float(study.outcome_bounds.width)

    def estimate(gate: Gate) -> Facts:
        effects = tuple(
            Effect(
                name=name,
                known=Linear(group.effect, group.uncertainty, (-width, width)),
                level=question.level,
                several=len(names),
                size=group.people,
                size_sd=group.people_sd,
            )
            for name, group in zip(names, sums.release(gate), strict=True)
        )
        return Facts(
            groups=effects,
            by=layout.names,
            method=ClusteredGroups(Estimator.MEANS_IN_GROUPS, study.cluster_columns[0]),
            releases=sums.releases,
            not_covered=(*score_caveats(study, "arms", layout.names), Caveat.CLUSTERS_DEPEND),
            details=sums.details,
        )

    return Prepared(
        question=sums.question,
        plan=sums.plan,
        estimate=estimate,
        answer=GroupsResult,
        pages=CLUSTER_PAGE,
        mechanisms=("laplace",),
        description={"question": "groups", "by": layout.describe()},
    )

"""What a rule of treatment gains, and gains along a ranking, where everything about a person is private.

A public rule splits people into cells: whom it treats and whom not, or people between thresholds of a
ranking. With the score psi of a row, whose mean over people is their effect, and c the cost of a treatment,
the gain of treating the people of some cells is the mean over everyone of (psi - c) times a flag of these
cells: a sum of released numbers by cell (`effect_sums`). Gains and costs are in units of the outcome.

In: private rows, and a rule that is public or was released before. Out: gains with intervals. Cells do not
overlap and scores are clipped, so that a replaced row moves the sums of two cells at most. Proof:
`rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.effect_sums import release_effect_sums
from counterveil.estimators.moments.group_forms import one_score_form
from counterveil.estimators.moments.record_groups import (
    prepared_scores,
    record_details,
    score_caveats,
    score_releases,
)
from counterveil.estimators.moments.scoring import scoring
from counterveil.estimators.policy_gains import gains_of_rule, points_of_curve
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import MeanScore
from counterveil.results.answering import Facts
from counterveil.results.groups import PolicyValue, TargetingCurve
from counterveil.results.question import Question
from counterveil.rows.moments.placing import OnePlace, RankPlaces, RowNumbers, RulePlaces, release_rank_counts
from counterveil.rows.public import PublicData
from counterveil.session import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOfRows:
    """A public rule that says whom to treat, and what a treatment costs.

    Attributes
    ----------
    name : str
        The rule in words.
    places : RulePlaces
        Which rows it treats.
    constant : bool, optional
        What it says of everyone whom the study allows; None where declarations do not tell.
    cost : float
        Of treating one person, in units of the outcome.
    fitted : tuple of Caveat
        What follows from a rule that was fitted to data.
    remarks : tuple of str
        What the guarantee rests on beside the proofs.
    """

    name: str
    places: RulePlaces
    constant: bool | None
    cost: float
    fitted: tuple[Caveat, ...]
    remarks: tuple[str, ...]


def record_policy(
    public: PublicData, question: Question, *, rule: RuleOfRows, description: dict[str, Any]
) -> Prepared[PolicyValue]:
    """Return the gains of a rule over treating nobody and everybody."""
    study = public.study
    question = one_score_form(public, question)
    form = scoring(public, question)
    # A rule that declarations make the same for everyone has no second cell, and its share is public.
    placing = rule.places if rule.constant is None else OnePlace()
    cells = 2 if rule.constant is None else 1

    def estimate(gate: Gate) -> Facts:
        sums = release_effect_sums(gate, form, placing, cells=cells, cost=rule.cost)
        return Facts(
            gains_of_rule(sums, question.level, rule.constant),
            policy=rule.name,
            cost=rule.cost,
            method=MeanScore(question.method == "adjusted", ranked=False),
            releases=score_releases(form),
            not_covered=(*score_caveats(study, question.method), *rule.fitted),
            details=record_details(form),
        )

    return prepared_scores(
        question,
        form,
        estimate,
        answer=PolicyValue,
        description={"question": "policy_value", **description},
        remarks=rule.remarks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRows:
    """Who comes first, where the ranking is cut, and what a treatment costs.

    Attributes
    ----------
    numbers : RowNumbers
        The number that ranks every row.
    edges : ndarray of float64
        Public thresholds, or the edges of the grid on which thresholds are bought.
    bins : int, optional
        Parts of equal size whose thresholds are bought; None where thresholds are public.
    cost : float
        Of treating one person, in units of the outcome.
    remarks : tuple of str
        What the guarantee rests on beside the proofs.
    """

    numbers: RowNumbers
    edges: Floats
    bins: int | None
    cost: float
    remarks: tuple[str, ...]


def record_curve(
    public: PublicData, question: Question, *, ranking: RankedRows, description: dict[str, Any]
) -> Prepared[TargetingCurve]:
    """Return the gains of treating the people who are ranked highest, for every share of them."""
    study = public.study
    question = one_score_form(public, question)
    form = scoring(public, question, ranks=ranking.bins is not None)

    def estimate(gate: Gate) -> Facts:
        thresholds = ranking.edges
        if ranking.bins is not None:
            thresholds = release_thresholds(gate, ranking, bins=ranking.bins, pure=form.pure)
        placing = RankPlaces(ranking.numbers, thresholds)
        sums = release_effect_sums(gate, form, placing, cells=len(thresholds) + 1, cost=ranking.cost)
        return Facts(
            **points_of_curve(sums, thresholds, question.level),
            cost=ranking.cost,
            method=MeanScore(question.method == "adjusted", ranked=True),
            releases=score_releases(form),
            not_covered=(
                *score_caveats(study, question.method),
                Caveat.NOISE_OF_SHARES,
                Caveat.FITTED_TO_SAME_ROWS,
            ),
            details=record_details(form),
        )

    return prepared_scores(
        question,
        form,
        estimate,
        answer=TargetingCurve,
        description={"question": "targeting_curve", **description},
        remarks=ranking.remarks,
    )


def release_thresholds(gate: Gate, ranking: RankedRows, *, bins: int, pure: bool) -> Floats:
    """Return edges of the grid nearest to the quantiles of the rows' numbers, from a noisy histogram."""
    edges = ranking.edges
    counts = release_rank_counts(gate, ranking.numbers, edges, pure)
    running = np.maximum.accumulate(np.cumsum(np.maximum(counts, 0.0)))
    wanted = np.arange(1, bins) / bins * max(float(running[-1]), 1.0)
    return np.unique(edges[np.minimum(np.searchsorted(running, wanted), len(edges) - 1)])

"""The targeting curve: what treating the people with the highest scores gains, for every share of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.errors import refusal
from counterveil.inference.ratio import NoisyRatio
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap
from counterveil.privacy import Number
from counterveil.privacy.caveats import Caveat
from counterveil.questions.asking import Asked, ask_once
from counterveil.questions.groups.question import (
    ask_records,
    caveats,
    checked_cost,
    record_details,
    release_words,
)
from counterveil.questions.policy.rows import (
    EffectModel,
    RowNumbers,
    bought_thresholds,
    checked_bins,
    checked_thresholds,
    effects_at,
    fits,
    model_remarks,
    public_grid,
    reads_rows_alone,
)
from counterveil.questions.policy.value import EffectSums, released_sums, with_form
from counterveil.results.groups import TargetingCurve, point
from counterveil.results.question import Question, refuse_few_clusters
from counterveil.results.stored import described
from counterveil.session import BitSource, Gate, Session
from counterveil.settings import Groups
from counterveil.statistics.moments.records import Part, Records
from counterveil.statistics.moments.score_cells import Codes
from counterveil.statistics.moments.scoring import Scoring, scoring


def targeting_curve(
    data: object,
    study: Study,
    *,
    model: EffectModel,
    bins: int = 10,
    thresholds: Sequence[float] | None = None,
    cost: Number = 0,
    protects: str = "record",
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    level: float = 0.95,
    settings: Groups | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> TargetingCurve:
    """Return what treating the people whom a model ranks highest gains, for a ladder of shares.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        model: anything with `effect(X)` that is public or released, such as a `CateModel`.
        bins: number of parts of the ranking; its quantiles are paid for from the budget.
        thresholds: public thresholds of the score in place of `bins`; they cost nothing.
        cost: cost of treating one person, in units of the outcome.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend on the whole curve.
        method: "auto", "scores" (trials) or "adjusted" (covariates).
        level: confidence level of intervals and band, which include the privacy noise.
        settings: `cv.settings.Groups`.
        delta, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    return ask_once(asked_targeting_curve, locals())


def asked_targeting_curve(
    study: Study,
    *,
    model: EffectModel,
    bins: int,
    thresholds: Sequence[float] | None,
    cost: Number,
    **arguments: Any,
) -> Asked[TargetingCurve]:
    """Return the checked question about a ranking."""
    question = ask_records(study, "targeting_curve", **arguments)
    ranking = Ranking.of(study, model, bins, thresholds, cost)
    return Asked(question.budget, partial(answer_curve, question=question, ranking=ranking))


@dataclass(frozen=True, slots=True)
class Ranking:
    """Who comes first, where the score is cut, and what a treatment costs; all of it public."""

    model: EffectModel
    bins: int
    cuts: tuple[float, ...] | None
    cost: float

    @classmethod
    def of(
        cls,
        study: Study,
        model: EffectModel,
        bins: int,
        thresholds: Sequence[float] | None,
        cost: Number,
    ) -> Ranking:
        """Return the ranking, or the refusal of its first argument that is out of range."""
        cuts = None if thresholds is None else checked_thresholds(thresholds)
        parts = checked_bins(bins)
        _check_model(model, study)
        return cls(model, parts, cuts, checked_cost(cost))


@dataclass(frozen=True, slots=True)
class RankPlaces:
    """The place of every row's number among thresholds."""

    rank: RowNumbers
    at: Floats

    @property
    def in_turn(self) -> bool:
        """As the ranking says."""
        return self.rank.in_turn

    def __call__(self, part: Part) -> Codes:
        """Return the cell of every row."""
        return np.searchsorted(self.at, self.rank(part), "right").astype(np.int64)


@silence()
def answer_curve(session: Session, question: Question, ranking: Ranking) -> TargetingCurve:
    """Return the curve of a checked question."""
    session.admit(question.uses(session.study, "targeting_curve"))
    model, cuts, bins, cost = ranking.model, ranking.cuts, ranking.bins, ranking.cost
    session.attach_batches()
    refuse_few_clusters(session.study, "targeting_curve", question.method, session.batches.rows)
    source, study = session.batches, session.study
    question = with_form(session, question)
    found = scoring(study, source, question, ranks=cuts is None)
    rank = RowNumbers(partial(effects_at, model), not reads_rows_alone(model))
    edges = public_grid(model, study) if cuts is None else np.array(cuts)

    def compute(gate: Gate) -> dict[str, object]:
        at = edges
        if cuts is None:
            at = bought_thresholds(gate, Records(source, FeatureMap(())), rank, edges, bins, found.pure)
        sums = released_sums(found, gate, RankPlaces(rank, at), len(at) + 1, cost)
        return _result(session, question, model, found, sums, at, cost).stored()

    request = question.request(
        found.plan,
        study,
        question="targeting_curve",
        model=model.to_dict() if reads_rows_alone(model) else described(model, question.request_id),
        cost=cost,
        thresholds=cuts,
        bins=bins,
    )
    return TargetingCurve.from_dict(session.run(request, compute))


def _check_model(model: EffectModel, study: Study) -> None:
    if not hasattr(model, "effect") or not fits(model, study):
        raise refusal("CV-P548", kind=type(model).__name__)


def _result(
    session: Session,
    question: Question,
    model: EffectModel,
    found: Scoring,
    sums: EffectSums,
    at: Floats,
    cost: float,
) -> TargetingCurve:
    """Return the curve from the highest scores downwards; everything in it is post-processing."""
    study, cells = session.study, len(at) + 1
    shares = np.clip(np.cumsum(sums.sizes[::-1]) / sums.rows, 1e-9, 1.0)
    shares[-1] = 1.0
    shares = np.maximum.accumulate(shares)
    thresholds = [None if place == cells - 1 else float(at[cells - 2 - place]) for place in range(cells)]
    return TargetingCurve(
        gains=tuple(
            point(threshold, share, sums.sum(_top(cells, place + 1)), question.level, cells)
            for place, (threshold, share) in enumerate(zip(thresholds, shares.tolist(), strict=True))
        ),
        thresholds=tuple(thresholds),
        shares=tuple(shares.tolist()),
        qini=_qini(sums, shares),
        autoc=_autoc(sums, shares),
        cost=cost,
        guarantee=question.guarantee(session, found.pages, model_remarks(model), mechanisms=()),
        method=f"mean {'doubly robust ' if question.method == 'adjusted' else ''}score of the people ranked highest",
        **question.terms(study),
        releases=release_words(found),
        not_covered=(
            *caveats(study, question.method),
            Caveat.NOISE_OF_SHARES,
            Caveat.FITTED_TO_SAME_ROWS,
        ),
        details=record_details(found),
    )


def _top(cells: int, count: int) -> Floats:
    """Return flags of the `count` cells of highest scores."""
    flags = np.zeros(cells)
    flags[cells - count :] = 1.0
    return flags


def _qini(sums: EffectSums, shares: Floats) -> NoisyRatio:
    """Return the area between the curve and the straight line of treating the same share at random."""
    cells = len(shares)
    steps = np.diff(np.concatenate([[0.0], shares]))
    # Trapezia: the gain after a bin counts for half of its own step and half of the next.
    weights = np.zeros(cells)
    for place in range(cells):
        after = steps[place + 1] if place + 1 < cells else 0.0
        weights += (steps[place] + after) / 2 * _top(cells, place + 1)
    return sums.sum(weights - 0.5)


def _autoc(sums: EffectSums, shares: Floats) -> NoisyRatio:
    """Return the mean over shares of (mean gain of those treated) minus (mean gain of everybody)."""
    cells = len(shares)
    steps = np.diff(np.concatenate([[0.0], shares]))
    weights = np.zeros(cells)
    for place in range(cells):
        weights += steps[place] / shares[place] * _top(cells, place + 1)
    return sums.sum(weights - 1.0)

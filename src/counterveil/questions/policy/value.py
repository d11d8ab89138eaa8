"""The value of a public rule: what treating whom it names gains over treating nobody and over treating everybody."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from counterveil.accounting import Ledger
from counterveil.data import Study, covariate_columns, silence
from counterveil.inference.ratio import NoisyRatio
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Number
from counterveil.privacy.caveats import Caveat
from counterveil.questions.asking import Asked, ask_once
from counterveil.questions.groups.question import (
    ask_records,
    caveats,
    chosen_form,
    record_details,
    release_words,
)
from counterveil.questions.policy.policy import Policy
from counterveil.questions.policy.rows import reads_rows_alone
from counterveil.results.effect import Effect
from counterveil.results.groups import PolicyValue
from counterveil.results.question import Question, refuse_few_clusters
from counterveil.session import BitSource, Gate, Session
from counterveil.settings import Groups
from counterveil.statistics.moments.records import Part
from counterveil.statistics.moments.row_scores import Score
from counterveil.statistics.moments.score_cells import Cells, Codes, Placing, model_errors
from counterveil.statistics.moments.scoring import Scoring, scoring

# Sums of effects over cells of everybody, as means over all n rows: what policies and curves are made of.


# Standard deviations of its noise that are added to a mean square: one that noise makes too small must not shorten an
# interval.
_DOUBT = 0.7


@dataclass(frozen=True, slots=True)
class EffectSums:
    """For every cell its number of people, and mean, mean square and noise of (effect - cost) times its flag.

    All means are over all rows, so that they add up over cells. In units of the outcome.
    """

    rows: int
    sizes: Floats
    means: Floats
    squares: Floats
    noise_sd: float  # of a cell's mean
    size_sd: float  # of a cell's mean, by the noise of its size, beside `noise_sd`
    square_sd: float  # noise of a cell's mean square
    extra: Floats  # variance of errors of the models, in a cell's mean
    bias: float
    lost: float  # what clipping may take off the mean of everybody
    heavy: bool

    def sum(self, weights: Floats) -> NoisyRatio:
        """Return what is known about the sum over cells of weight times mean."""
        value = float(weights @ self.means)
        squares = float(weights**2 @ self.squares) + _DOUBT * self.square_sd * float(
            np.linalg.norm(weights**2)
        )
        row_variance = max(squares - value**2, 0.0)
        noise = sqrt(float(weights @ weights)) * np.hypot(self.noise_sd, self.size_sd)
        # Errors of the models may go together in all cells.
        extra = float(np.abs(weights) @ np.sqrt(self.extra)) ** 2
        parts = self.sizes / self.rows
        # What was clipped may all lie in the cell of the largest weight.
        bias = self.bias * float(np.abs(weights) @ np.clip(parts, 0.0, 1.0))
        bias += self.lost * float(np.abs(weights).max())
        return NoisyRatio(
            total=value * self.rows,
            size=float(self.rows),
            row_variance=row_variance,
            total_sd=noise * self.rows,
            size_sd=0.0,
            extra=extra,
            bias=bias,
            heavy=self.heavy,
        )


def released_sums(found: Scoring, gate: Gate, placing: Placing, cells: int, cost: float) -> EffectSums:
    """Return the sums of (effect - cost) over cells of everybody, released through the gate."""
    low, high = found.study.outcome_range
    released, score = found.run(gate, placing, cells, one_mean=True)
    return effect_sums(released, score, found.source.rows, float(high - low) / 2, cost)


def effect_sums(cells: Cells, score: Score, rows: int, unit: float, cost: float) -> EffectSums:
    """Return the sums of (effect - cost) over released cells; `unit` is half the outcome's range."""
    shift, extra = model_errors(cells, score)
    # Sizes add up to the public number of rows: what is missing is shared by all cells.
    sizes = cells.sizes + (rows - cells.sizes.sum()) / len(cells.sizes)
    left = sqrt(1 - 1 / len(cells.sizes)) * cells.size_sd
    worth = (cells.centre + score.offset) * unit - cost
    totals = (cells.totals - shift) * unit
    squares = cells.squares * unit**2 + 2 * worth * totals + worth**2 * sizes
    return EffectSums(
        rows,
        sizes,
        (totals + worth * sizes) / rows,
        np.maximum(squares, 0.0) / rows,
        cells.total_sd * unit / rows,
        abs(worth) * left / rows,
        cells.square_sd * unit**2 / rows,
        extra * unit**2 * (np.clip(sizes, 0.0, rows) / rows) ** 2,
        score.bias * unit,
        cells.lost * unit,
        cells.heavy,
    )


def policy_value(
    data: object,
    study: Study,
    *,
    policy: Any,
    cost: Number | None = None,
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
) -> PolicyValue:
    """Return what a public rule gains over treating nobody and over treating everybody, per person.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        policy: a `Policy`, or a function of one row's covariates (a mapping to arrays of length one).
        cost: cost of treating one person, in units of the outcome; None takes the policy's own, or 0.
        protects: "record", everything about a person.
        epsilon: privacy loss to spend.
        method: "auto", "scores" (trials) or "adjusted" (covariates).
        level: confidence level of the intervals, which include the privacy noise.
        settings: `cv.settings.Groups`.
        delta, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    return ask_once(asked_policy_value, locals())


def asked_policy_value(
    study: Study, *, policy: Any, cost: Number | None, **arguments: Any
) -> Asked[PolicyValue]:
    """Return the checked question about a rule."""
    question = ask_records(study, "policy_value", **arguments)
    rule = checked_policy(policy, study)
    price = rule.price(cost)
    return Asked(question.budget, partial(answer_policy, question=question, rule=rule, cost=price))


def checked_policy(policy: Any, study: Study) -> Policy:
    """Return the rule, or refuse what is none for this study."""
    rule = Policy.of(policy)
    rule.check(study)
    return rule


@dataclass(frozen=True, slots=True)
class RulePlaces:
    """Cell 1 for rows that a rule treats, 0 for the others."""

    rule: Policy

    @property
    def in_turn(self) -> bool:
        """Whether the rule asks a function or a model that is not ours."""
        return self.rule.conditions is None and not reads_rows_alone(self.rule.model)

    def __call__(self, part: Part) -> Codes:
        """Return the cell of every row."""
        return self.rule.decide(covariate_columns(part.batch, part.rows)).astype(np.int64)


@silence()
def answer_policy(session: Session, question: Question, rule: Policy, cost: float) -> PolicyValue:
    """Return the value of a checked rule."""
    session.admit(question.uses(session.study, "policy_value"))
    session.attach_batches()
    refuse_few_clusters(session.study, "policy_value", question.method, session.batches.rows)
    question = with_form(session, question)
    found = scoring(session.study, session.batches, question)
    place = RulePlaces(rule)

    def compute(gate: Gate) -> dict[str, object]:
        sums = released_sums(found, gate, place, 2, cost)
        return _result(session, question, rule, found, sums, cost).stored()

    request = question.request(
        found.plan,
        session.study,
        question="policy_value",
        policy=rule.described(question.request_id),
        cost=cost,
    )
    return PolicyValue.from_dict(session.run(request, compute))


def with_form(session: Session, question: Question) -> Question:
    """Return the question with the form that `auto` chooses, and pure noise for the few sums of plain scores.

    A ledger that adds up Gaussian noise counts pure noise dearly, and keeps it.
    """
    found = chosen_form(session.study, question, session.batches.rows, None, 1)
    smaller = found.method == "scores" and found.open_noise and session.account().rule == "sum"
    return replace(found, mechanism="staircase") if smaller else found


def _result(
    session: Session, question: Question, rule: Policy, found: Scoring, sums: EffectSums, cost: float
) -> PolicyValue:
    study = session.study
    wanted = {
        "policy - nobody": np.array([0.0, 1.0]),
        "policy - everybody": np.array([-1.0, 0.0]),
        "everybody - nobody": np.array([1.0, 1.0]),
    }
    share = float(np.clip(sums.sizes[1] / sums.rows, 0.0, 1.0))
    gains = tuple(
        Effect(name, sums.sum(weights), question.level, len(wanted), sums.rows)
        for name, weights in wanted.items()
    )
    return PolicyValue(
        gains=gains,
        policy=rule.name,
        cost=cost,
        share=share,
        guarantee=question.guarantee(session, found.pages, rule.remarks, mechanisms=()),
        method=f"mean {'doubly robust ' if question.method == 'adjusted' else ''}score of those treated",
        **question.terms(study),
        releases=release_words(found),
        not_covered=(
            *caveats(study, question.method),
            *(() if rule.conditions is not None else (Caveat.FITTED_TO_SAME_ROWS,)),
        ),
        details=record_details(found),
    )

"""Effects by group: `groups(...)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from counterveil.accounting import Ledger
from counterveil.data import Layout, Study, silence, strata_codes
from counterveil.errors import refusal
from counterveil.inference.measures import NoisyRatio, RatioDifference
from counterveil.privacy import Estimand, Number, Unit
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import GroupsMethod, Mechanism, Protects
from counterveil.questions.groups.outcome import outcome_groups
from counterveil.questions.groups.question import (
    METHOD_TEXTS,
    METHODS,
    By,
    LayoutPlaces,
    caveats,
    chosen_form,
    group_names,
    layout_of,
    record_details,
    refuse_ungrouped,
    release_words,
    settled_scores,
)
from counterveil.results.answering import Facts, settled
from counterveil.results.effect import Effect, Known, Linear
from counterveil.results.groups import GroupsResult
from counterveil.results.question import Question, refuse_few_clusters
from counterveil.session import BaseSession, BitSource, Gate
from counterveil.settings import DifferenceInMeans, Groups, Matching, Weighting
from counterveil.statistics.moments.scoring import (
    Score,
    Tallies,
    cell_variances,
    model_errors,
    scoring,
)
from counterveil.statistics.pairs.effect import asked, pair_effects, provenance

# Effects of groups where everything about a person is private: one release for all groups together.


def record_groups(session: BaseSession, question: Question, layout: Layout) -> GroupsResult:
    """Return the private effects of all groups; which group a person is in is private too."""
    found = scoring(session.study, session.batches, question)

    def compute(gate: Gate) -> Facts:
        cells, score = found.run(gate, LayoutPlaces(layout), layout.public)
        effects = _effects(session, question, layout, cells, score)
        return Facts(
            groups=effects,
            by=layout.names,
            method=METHOD_TEXTS[question.method],
            releases=release_words(found),
            not_covered=caveats(session.study, question.method, layout.names),
            details=record_details(found),
        )

    said = {"question": "groups", "by": layout.describe()}
    return settled_scores(GroupsResult, session, question, found, compute, said)


def cell_ratios(cells: Tallies, score: Score, unit: float, limit: float) -> list[NoisyRatio]:
    """Return what is known about the mean score of every cell; `unit` is half the outcome's range."""
    variances = cell_variances(cells)
    shift, extra = model_errors(cells, score)
    return [
        NoisyRatio(
            total=float(cells.totals[place] - shift[place]) * unit,
            size=float(cells.sizes[place]),
            row_variance=float(variances[place]) * unit**2,
            total_sd=cells.total_sd * unit,
            size_sd=cells.size_sd,
            offset=(cells.centre + score.offset) * unit,
            extra=float(extra[place]) * unit**2,
            bias=(score.bias + cells.lost) * unit,
            limit=limit,
            heavy=cells.heavy,
        )
        for place in range(len(cells.sizes))
    ]


def _effects(
    session: BaseSession, question: Question, layout: Layout, cells: Tallies, score: Score
) -> tuple[Effect, ...]:
    low, high = session.study.outcome_range
    width = float(high - low)
    arms = question.method == "arms"
    ratios = cell_ratios(cells, score, width / 2, width / 2 if arms else width)
    names = group_names(layout)
    if not arms:
        known: list[Known] = list(ratios)
        sizes = cells.sizes
        size_sd = cells.size_sd
    else:
        known = [RatioDifference(ratios[2 * g + 1], ratios[2 * g]) for g in range(len(names))]
        sizes = cells.sizes.reshape(-1, 2).sum(axis=1)
        size_sd = cells.size_sd * float(np.sqrt(2))
    return tuple(
        Effect(name, known[place], question.level, len(names), float(sizes[place]), size_sd)
        for place, name in enumerate(names)
    )


# Groups where treatment and outcome are private: who is in which is public, and a pair moves the sums of one alone.


# Rows of a group that has an effect.
_FEWEST = 30


def pair_groups(session: BaseSession, question: Question, layout: Layout) -> GroupsResult:
    """Return the private effects of the groups that have enough rows."""
    table, names = session.table, group_names(layout)
    codes = strata_codes(table, layout)
    places = np.flatnonzero(np.bincount(codes, minlength=layout.public) >= _FEWEST)
    if not len(places):
        raise refusal("CV-S110b", layout=layout.describe(), fewest=_FEWEST)
    rows = [np.flatnonzero(codes == place) for place in places]
    question, choice = asked(session, replace(question, method="adjusted"), len(places))
    width = float(session.study.outcome_range[1] - session.study.outcome_range[0])

    def compute(gate: Gate) -> Facts:
        found = pair_effects(gate, table, choice, Estimand.ATE, rows)
        known = [Linear(one.estimate, one.uncertainty, (-width, width)) for one in found]
        effects = tuple(
            Effect(names[place], one, question.level, len(places), float(len(own)))
            for place, one, own in zip(places, known, rows, strict=True)
        )
        return Facts(
            provenance(session, question, choice, {}),
            groups=effects,
            by=layout.names,
            left_out=tuple(name for place, name in enumerate(names) if place not in places),
        )

    said = {"question": "groups", "by": layout.describe()}
    return settled(GroupsResult, session, question, choice.plan, compute, said=said)


@asks
def groups(
    data: object,
    study: Study,
    *,
    by: By,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: GroupsMethod = "auto",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> GroupsResult:
    """Return the private effects of public groups; all groups together cost what one does.

    Args:
        data: as for `counterveil.ate`.
        study: column roles, public bounds and categories.
        by: a covariate, several (crossed), or a mapping to cut points: {"age": (40, 65), "sex": None}.
        protects: "outcome" (groups, arms and covariates are public), "treatment and outcome" (groups and covariates
            are) or "record" (nothing is).
        epsilon: privacy loss to spend on all groups together.
        method: "auto"; with outcomes protected "difference_in_means", "weighting" or "matching"; with
            records protected "arms" (trials) or "adjusted" (covariates); between the two "adjusted".
        level: confidence level of the intervals, single or simultaneous.
        settings: those of the method, such as `cv.settings.Weighting()`; with records protected `cv.settings.Groups`.
        delta, mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """
    asked = GroupsArguments(
        by=by,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        mechanism=mechanism,
        settings=settings,
        request_id=request_id,
    )
    return ask_once(asked, data, study, ledger, dataset, noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsArguments(Arguments[GroupsResult]):
    """The private effects of public groups; see `counterveil.groups` for the arguments."""

    name: ClassVar[str] = "groups"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    by: By
    delta: Number = 0
    method: GroupsMethod = "auto"
    mechanism: Mechanism | None = None
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[GroupsResult]:
        """Return the checked question; nothing here looks at data or budget."""
        layout_of(study, self.by)  # refuses what makes no groups
        question = self.question(self.delta, self.method, self.mechanism, self.settings)
        refuse_ungrouped(study, question, METHODS[question.unit])
        return Asked(question.budget, partial(answer_groups, question=question, by=self.by))


@silence()
def answer_groups(session: BaseSession, question: Question, by: By) -> GroupsResult:
    """Return the answer of the form that the question names, or that public numbers choose."""
    layout = layout_of(session.study, by)
    session.admit(question.uses(session.study, "groups"))
    rule = session.account().rule
    if question.unit is Unit.OUTCOME:
        return outcome_groups(session, question.in_pure_noise(rule), layout)
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        session.attach(f"groups with method={question.method!r}")
        return pair_groups(session, question, layout)
    question = replace(question, open_noise=question.open_noise and rule == "sum")
    session.attach_batches()
    # Which group a cluster is in is private: there must be enough for groups of equal size.
    mean = session.batches.rows // layout.public
    refuse_few_clusters(session.study, "groups", question.method, mean, " a group")
    chosen = chosen_form(session.study, question, session.batches.rows, layout, layout.public)
    return record_groups(session, chosen, layout)

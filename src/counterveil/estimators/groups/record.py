"""Effects of groups where everything about a person is private: one release for all groups together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterveil.curator import Custody, Gate
from counterveil.data import Layout
from counterveil.estimators.groups.cells import Cells, model_errors, spreads
from counterveil.estimators.groups.known import Known
from counterveil.estimators.groups.naming import LayoutPlaces, group_names
from counterveil.estimators.groups.result import GroupEffect, GroupsResult
from counterveil.estimators.groups.scores import Score
from counterveil.estimators.groups.scoring import Scoring, scoring
from counterveil.estimators.groups.wording import METHOD_TEXTS, caveats, record_details, release_words
from counterveil.estimators.question import Question
from counterveil.inference.ratio import NoisyRatio, RatioDifference


def record_groups(custody: Custody, question: Question, layout: Layout) -> GroupsResult:
    """Return the private effects of all groups; which group a person is in is private too."""
    found = scoring(custody.study, custody.batches, question)

    def compute(gate: Gate) -> dict[str, object]:
        cells, score = found.run(gate, LayoutPlaces(layout), layout.public)
        effects = _effects(custody, question, layout, cells, score)
        return _result(custody, question, layout, found, effects).stored()

    request = question.request(found.plan, custody.study, question="groups", by=layout.describe())
    return GroupsResult.from_dict(custody.run(request, compute))


def cell_ratios(cells: Cells, score: Score, unit: float, limit: float) -> list[NoisyRatio]:
    """Return what is known about the mean score of every cell; `unit` is half the outcome's range."""
    variances = spreads(cells)
    shift, extra = model_errors(cells, score)
    return [
        NoisyRatio(
            total=float(cells.totals[place] - shift[place]) * unit,
            size=float(cells.sizes[place]),
            spread=float(variances[place]) * unit**2,
            total_sd=cells.total_sd * unit,
            size_sd=cells.size_sd,
            offset=(cells.centre + score.offset) * unit,
            extra=float(extra[place]) * unit**2,
            bias=score.bias * unit,
            limit=limit,
            heavy=cells.heavy,
        )
        for place in range(len(cells.sizes))
    ]


def _effects(
    custody: Custody, question: Question, layout: Layout, cells: Cells, score: Score
) -> tuple[GroupEffect, ...]:
    low, high = custody.study.outcome_range
    width = float(high - low)
    arms = question.method == "arms"
    ratios = cell_ratios(cells, score, width / 2, width / 2 if arms else width)
    names = group_names(layout)
    if not arms:
        known: list[Known] = list(ratios)
        sizes = cells.sizes
        size_sd = cells.size_sd
    else:
        # Means lie within half the range of its middle; around the released mean they may lie further off.
        ratios = [replace(one, limit=one.limit + abs(one.offset)) for one in ratios]
        known = [RatioDifference(ratios[2 * g + 1], ratios[2 * g]) for g in range(len(names))]
        sizes = cells.sizes.reshape(-1, 2).sum(axis=1)
        size_sd = cells.size_sd * float(np.sqrt(2))
    return tuple(
        GroupEffect(name, float(sizes[place]), size_sd, known[place], question.level, len(names))
        for place, name in enumerate(names)
    )


def _result(
    custody: Custody, question: Question, layout: Layout, found: Scoring, effects: tuple[GroupEffect, ...]
) -> GroupsResult:
    study = custody.study
    return GroupsResult(
        effects=effects,
        by=layout.names,
        guarantee=question.guarantee(custody, found.pages, laws=()),
        method=METHOD_TEXTS[question.method],
        **question.terms(study),
        releases=release_words(found),
        not_covered=caveats(study, question.method, layout.names),
        details=record_details(found),
    )

"""Effects at queries by bins: the mean score of everyone in the query's bin, all bins for the price of one."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from counterveil.data import Layout, Range, Study, strata_codes_of
from counterveil.errors import ParameterError
from counterveil.questions.groups.groups import cell_ratios
from counterveil.questions.groups.naming import LayoutPlaces, layout_of
from counterveil.questions.groups.question import chosen_form
from counterveil.questions.groups.wording import caveats, record_details, release_words
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_queries import Queries
from counterveil.results.cate_question import CateQuestion
from counterveil.session import Gate, Session
from counterveil.settings import Bins
from counterveil.statistics.moments.row_scores import Score
from counterveil.statistics.moments.score_cells import Cells
from counterveil.statistics.moments.scoring import Scoring, scoring

# A bin holds about so many people at least, and so many times its noise.
_FEWEST, _NOISES = 150, 12.0
_MOST_CUTS = 9


def bins(session: Session, question: CateQuestion) -> CateAnswers:
    """Return the effects of the bins that the queries lie in; which bin a person is in is private."""
    settings = question.settings or Bins()
    study, source = session.study, session.batches
    asked = question.queries
    assert asked is not None  # the question refuses bins without queries
    layout = bin_layout(study, settings, source.rows, question)
    form = chosen_form(
        study, replace(question, method="auto", settings=settings.scores), source.rows, None, layout.public
    )
    found = scoring(study, source, form)

    def compute(gate: Gate) -> dict[str, object]:
        cells, score = found.run(gate, LayoutPlaces(layout), layout.public)
        return _answers(session, question, asked, layout, found, cells, score).stored()

    request = question.request(found.plan, study, bins=layout.describe())
    return CateAnswers.from_dict(session.run(request, compute))


def bin_layout(study: Study, settings: Bins, rows: int, question: CateQuestion) -> Layout:
    """Return the bins that are asked for, or the finest even ones that public numbers afford."""
    if settings.by is not None:
        return layout_of(study, settings.by)
    fewest = max(_FEWEST, _NOISES / float(question.budget.epsilon))
    labels = prod(len(domain.labels) for domain in study.covariates.values() if not isinstance(domain, Range))
    numbers = sum(isinstance(domain, Range) for domain in study.covariates.values())
    for cuts in range(_MOST_CUTS, -1, -1):
        if labels * (cuts + 1) ** numbers * fewest <= rows:
            return layout_of(study, _even_cuts(study, cuts))
    raise ParameterError(
        "CV-P550",
        "bins of all covariates would hold too few people",
        expected=f"at least {round(fewest)} rows a bin, or covariates named by Bins(by=...)",
        got=f"{rows} rows for at least {labels} bins",
        fix="nothing was spent: name fewer covariates, or leave method out, which gives a function",
    )


def _even_cuts(study: Study, cuts: int) -> dict[str, tuple[Any, ...] | None]:
    found: dict[str, tuple[Any, ...] | None] = {}
    for name, domain in study.covariates.items():
        if not isinstance(domain, Range):
            found[name] = None
            continue
        width = domain.hi - domain.lo
        found[name] = tuple(domain.lo + width * place / (cuts + 1) for place in range(1, cuts + 1))
    return found


def _answers(
    session: Session,
    question: CateQuestion,
    asked: Queries,
    layout: Layout,
    found: Scoring,
    cells: Cells,
    score: Score,
) -> CateAnswers:
    low, high = session.study.outcome_range
    ratios = cell_ratios(cells, score, float(high - low) / 2, float(high - low))
    places = strata_codes_of(asked.columns, len(asked), layout)
    own = [ratios[place] for place in places]
    return CateAnswers(
        queries=asked.rows,
        estimates=tuple(one.estimate for one in own),
        sampling=tuple(min(one.sampling_sd, one.limit) for one in own),
        noise=tuple(min(one.noise_sd, one.limit) for one in own),
        guarantee=question.guarantee(session, found.pages, mechanisms=()),
        method=f"mean score in bins: {layout.describe()}",
        **question.terms(session.study),
        releases=release_words(found),
        not_covered=(
            "differences of the effect within a bin: an answer is the mean effect of the query's bin",
            *caveats(session.study, found.form),
        ),
        distinct=len(set(np.asarray(places).tolist())),
        rank=layout.public,
        noise_tail="laplace" if found.pure else "normal",
        details=record_details(found) | {"bins": layout.public},
    )

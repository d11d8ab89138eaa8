"""Whole distributions of both arms: `quantiles(...)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal

from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.data.follow_up import refuse_censored
from counterveil.errors import ParameterError, refusal, shown
from counterveil.privacy import Number, Unit, exact
from counterveil.questions.asking import Arguments, Asked, question_of
from counterveil.questions.choices import Mechanism, QuantilesMethod
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.survival import QuantilesResult, check_share
from counterveil.session import BaseSession
from counterveil.statistics.distribution import (
    EVEN,
    FOUND,
    Edges,
    even_edges,
    quantiles_by_scores,
    quantiles_by_weights,
    quantiles_of_arms,
)

# Methods by what they protect.
METHODS = {Unit.RECORD: ("trial",)} | dict.fromkeys(
    (Unit.OUTCOME, Unit.TREATMENT_AND_OUTCOME), ("trial", "weighting")
)
# Cells that there may be: noise grows with their number.
_FEWEST, _MOST = 2, 1000
Grid = int | Sequence[Number] | Literal["found", "even"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesArguments(Arguments[QuantilesResult]):
    """Return private differences of both arms' quantiles, and both distribution functions, from one release.

    Args:
        data: as for `counterveil.ate`.
        study: of two arms and one outcome.
        protects: "outcome", "treatment and outcome", or "record" (trials).
        epsilon: privacy loss to spend on everything together.
        delta: a small positive number allows Gaussian noise, which is taken where it is the smaller one.
        shares: which quantiles are compared, 0.5 for the median; others can be read off the answer for free.
        grid: "found", the default, spends a fifth on where most outcomes lie, and has cells there of a number that
            suits so many rows and this budget. "even" takes that number over the whole range. Or inner edges of the
            cells in which outcomes are counted, or the number of even cells. Without declared cells the ends of the
            range, and whole numbers where the ends are whole and there are few between, have cells of their own.
        method: "auto", "trial" or, where covariates are public, "weighting" (by all covariates).
        level: confidence level of intervals and bands.
        mechanism, ledger, dataset, request_id, noise: as for `counterveil.ate`.
    """

    name: ClassVar[str] = "quantiles"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    shares: Sequence[float] = (0.25, 0.5, 0.75)
    grid: Grid = "found"
    method: QuantilesMethod = "auto"
    mechanism: Mechanism | None = None

    def checked(self, study: Study) -> Asked[QuantilesResult]:
        """Return the checked question; nothing here looks at data or budget."""
        refuse_censored(study.event, "quantiles")
        unit, method = self.unit, self.method
        refuse_unknown_method(method, ("auto", *METHODS[unit]), f" with protects={unit.value!r}")
        _refuse_shape(study)
        if method == "auto":
            weighted = unit is not Unit.RECORD and study.randomised is not True and bool(study.covariates)
            if not weighted:
                refuse_undeclared_trial(study)
            method = "weighting" if weighted else "trial"
        if method == "weighting":
            require_covariates(study, method)
        listed = isinstance(self.shares, tuple | list) and len(self.shares) > 0
        shares = tuple(check_share(one) for one in (self.shares if listed else (self.shares,)))
        question = self.question(method, self.mechanism)
        refuse_extremes(study, question.budget)
        grid = _grid(study, self.grid)
        return Asked(question.budget, partial(_answer, question=question, grid=grid, shares=shares))


quantiles = question_of(QuantilesArguments)


def _refuse_shape(study: Study) -> None:
    """Raise CV-P695 for outcomes that are no single number of a row, and for several arms."""
    made = {
        "several arms": study.arms,
        "several outcomes": study.several,
        "a change": study.before,
        "a ratio": study.denominator,
    }
    for name, declared in made.items():
        if declared is not None:
            raise refusal("CV-P695", declared=name)


def _grid(study: Study, grid: object) -> Edges:
    """Return the edges of the declared cells, or which word chooses them; or raise CV-P696."""
    if isinstance(grid, str) and grid in (FOUND, EVEN):
        return grid
    if isinstance(grid, int) and not isinstance(grid, bool) and _FEWEST <= grid <= _MOST:
        return even_edges(study, grid)
    try:
        inner = tuple(exact(one, "grid") for one in grid) if isinstance(grid, tuple | list) else ()
    except ParameterError:
        inner = ()
    low, high = study.outcome_range
    edges = (low, *inner, high)
    if not (
        _FEWEST <= len(edges) - 1 <= _MOST and all(later > earlier for earlier, later in pairwise(edges))
    ):
        raise refusal("CV-P696", fewest=_FEWEST, most=_MOST, low=low, high=high, grid=shown(grid))
    return edges


@silence()
def _answer(
    session: BaseSession, question: Question, grid: Edges, shares: tuple[float, ...]
) -> QuantilesResult:
    session.admit(question.uses(session.study, "quantiles"))
    if question.method == "trial":
        return quantiles_of_arms(session, question, grid, shares)
    answer = quantiles_by_weights if question.unit is Unit.OUTCOME else quantiles_by_scores
    return answer(session, question, grid, shares)

"""Quantile effects and both arms' distribution functions, from one release of counts: `quantiles(...)`.

    effect at probability p:  F_1^{-1}(p) - F_0^{-1}(p),  F_a(y) = P(Y(a) <= y)

In: private outcomes, their public range, cells of it that are declared or found by releases, the budget. Out:
differences of quantiles in units of the outcome, distribution functions as probabilities, with intervals and
bands.

One epsilon pays for all quantiles because the one private thing that is released is the number of people by
arm and cell. A changed person leaves one cell and enters another, so that these counts move by at most 2
altogether (`rows/distribution.proof.md`). Everything else is arithmetic on them. This module checks the
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

from counterveil.accounting import Ledger
from counterveil.data import Study, silence
from counterveil.data.features import require_covariates
from counterveil.data.follow_up import refuse_censored
from counterveil.errors import ParameterError, refusal, shown
from counterveil.estimators.outcome_grids import EVEN, FOUND, Edges, even_edges
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.privacy import Number, Unit, exact
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import Mechanism, Protects, QuantilesMethod
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.results.survival import QuantilesResult, check_prob
from counterveil.session import BaseSession, BitSource

# Methods by what they protect.
METHODS = by_unit("quantiles")
# Cells that there may be: noise grows with their number.
_FEWEST, _MOST = 2, 1000
Grid = int | Sequence[Number] | Literal["found", "even"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesArguments(Arguments[QuantilesResult]):
    """The arguments of `quantiles` beside data and study, checked."""

    name: ClassVar[str] = "quantiles"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    probs: Sequence[float] = (0.25, 0.5, 0.75)
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
        several = isinstance(self.probs, tuple | list) and len(self.probs) > 0
        probs = tuple(check_prob(prob) for prob in (self.probs if several else (self.probs,)))
        question = self.question(method, self.mechanism)
        refuse_extremes(study, question.budget)
        grid = _grid(study, self.grid)
        return Asked(question.budget, partial(_answer, question=question, grid=grid, probs=probs))


@asks
def quantiles(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: QuantilesMethod = "auto",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    probs: Sequence[float] = (0.25, 0.5, 0.75),
    grid: Grid = "found",
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> QuantilesResult:
    """Estimate the differences of both arms' quantiles, and both distribution functions.

    All of it is from one release of counts.

    Parameters
    ----------
    data : frame, mapping, path or relation
        The rows: a pandas, polars or pyarrow data frame, a mapping of names to arrays, the path of a
        CSV or Parquet file (or a pattern that names several), a DuckDB relation or a Spark data frame.
        An Ibis table is aggregated inside its database, for methods that need counts and sums alone. A
        formula such as ``"died ~ rhc | age + sex"`` may stand here; rows and declarations follow it.
    study : Study
        Roles, public ranges and categories of the columns. After a formula: the rows.
    declared : mapping, Study or path, optional
        After a formula only: what declares its columns, as a mapping of names to ranges and labels
        (``{"age": (18, 90)}``), a codebook or study file, or a `Study`.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person
        (trials).
    epsilon : number or str
        Privacy loss to spend on everything together, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise, which is taken where it is the smaller one.
    method : {"auto", "trial", "weighting"}, default "auto"
        Estimator. "trial" compares the arms as they are; "weighting", with public covariates, by all
        covariates. "auto" takes the latter where there are public covariates and no trial.
    level : float, default 0.95
        Confidence level of intervals and bands, between 0 and 1; the privacy noise is included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    probs : sequence of float, default (0.25, 0.5, 0.75)
        Probabilities of the quantiles that are compared, each in (0, 1): 0.5 for the median. Others can
        be read off the answer for free.
    grid : {"found", "even"}, int or sequence of number, default "found"
        Cells in which outcomes are counted. "found" spends a fifth of the budget on where most outcomes
        lie, and has as many cells there as suit the rows and the budget; "even" has that number over
        the whole range. A whole number from 2 to 1,000 is the number of even cells, a sequence their
        inner edges.
    ledger : path, URL or Ledger, optional
        Existing ledger to charge. Without one, the costs of several calls are not added up.
    dataset : str, optional
        Account in the ledger; needed if it has more than one.
    request_id : str, optional
        Name of this request. Repeating a named request returns the stored answer and costs nothing.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: the result is marked as simulated and
        protects nobody. By default the operating system's random bits.

    Returns
    -------
    QuantilesResult
        Differences of quantiles, treated minus control, in units of the outcome, both distribution
        functions (probabilities) and all other quantiles, with intervals and bands.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    survival : Times that are censored.

    Notes
    -----
    With F_a(y) = P(Y(a) <= y), the estimand at probability p is F_1^{-1}(p) - F_0^{-1}(p), the quantile
    treatment effect. It is not the quantile of people's effects.

    Unless cells are declared, the ends of the range, and whole numbers where the ends are whole and
    there are few between, have cells of their own.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3, outcome="continuous")
    >>> result = cv.quantiles(
    ...     data.frame, data.study, probs=(0.5,), protects="record", epsilon=4, noise=cv.SeededNoise(1)
    ... )
    >>> len(result.table)
    1
    """
    arguments = QuantilesArguments(
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        mechanism=mechanism,
        probs=probs,
        grid=grid,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


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
    session: BaseSession, question: Question, grid: Edges, probs: tuple[float, ...]
) -> QuantilesResult:
    session.admit(question.uses(session.study, "quantiles"))
    if question.method == "trial":
        session.attach_batches()
    else:
        session.attach("quantiles with method='weighting'")
    return answer_by(QuantilesResult, session, "quantiles", question, grid=grid, probs=probs)

"""The front door: `ate(...)` for one question, `Curator` for several against one budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, Remaining
from counterveil.curator import BitSource, Custody
from counterveil.data import Study
from counterveil.errors import ParameterError
from counterveil.estimators.ate.centred_contrast import centred_contrast
from counterveil.estimators.ate.difference_in_means import difference_in_means
from counterveil.estimators.question import Question, refuse_undeclared_trial
from counterveil.estimators.result import Result
from counterveil.privacy import Number, Unit

Estimator = Callable[[Custody, Question], Result]

_METHODS: dict[str, dict[Unit, Estimator]] = {
    "difference_in_means": {Unit.OUTCOME: difference_in_means, Unit.RECORD: centred_contrast},
}


def methods() -> tuple[str, ...]:
    """Return the names that `method=` takes."""
    return ("auto", *_METHODS)


def _check_method(method: str) -> None:
    if method not in methods():
        raise ParameterError(
            "CV-P016",
            "unknown method",
            expected=f"method={' or '.join(map(repr, methods()))}",
            got=f"method={method!r}",
            fix="choose one of these; 'auto' picks from public numbers only",
        )


def _ask(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    _check_method(method)
    if method == "auto":
        refuse_undeclared_trial(study)
        method = "difference_in_means"
    return Question.ask(method=method, **arguments)


class Curator(Custody):
    """Holds a table and its budget; every question asked of it is charged to the same ledger."""

    def ate(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        estimand: str = "ATE",
        level: float = 0.95,
        law: str | None = None,
        request_id: str | None = None,
    ) -> Result:
        """Return the private average treatment effect; see `counterveil.ate` for the arguments."""
        question = _ask(
            self.study,
            method,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            estimand=estimand,
            level=level,
            law=law,
            request_id=request_id,
        )
        return self._answer(question)

    def _answer(self, question: Question) -> Result:
        return _METHODS[question.method][question.unit](self, question)

    def remaining(self) -> Remaining:
        """Return what is left of the budget."""
        return self.account().remaining


def ate(
    data: object,
    study: Study,
    *,
    protects: str,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    estimand: str = "ATE",
    level: float = 0.95,
    law: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Return the private average treatment effect of a study.

    Args:
        data: a pandas, polars or pyarrow frame, a path to CSV or Parquet, a DuckDB relation.
        study: roles, public bounds and categories of the columns.
        protects: "outcome" (only outcomes are private) or "record" (everything about a person is).
        epsilon: the privacy loss that may be spent; exact (0.1 is one tenth).
        delta: 0 for a pure guarantee; a small number buys Gaussian noise.
        method: "auto" or "difference_in_means".
        estimand: "ATE", "ATT" or "ATC".
        level: confidence level of the interval, which includes the privacy noise.
        law: "staircase" or "laplace" (pure), "gaussian" (delta > 0); None chooses.
        ledger: path or URL of a ledger; without one the call is charged to a ledger of its own.
        dataset: the account in the ledger; may be left out where it holds one.
        request_id: a name for this question; asked again, it gets the same answer at no cost.
        noise: `SeededNoise(seed)` for tests and experiments; the result is then marked as simulated.
    """
    # Everything that can be refused without looking at the data is refused first.
    question = _ask(
        study,
        method,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        law=law,
        request_id=request_id,
    )
    budget = None if ledger is not None else question.budget
    with Curator(data, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise) as curator:
        return curator._answer(question)

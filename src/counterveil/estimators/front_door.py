"""The front door: `ate(...)` for one question, `Curator` for several against one budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, Remaining
from counterveil.curator import BitSource, Custody
from counterveil.data import Study
from counterveil.estimators.arms.means import arm_means
from counterveil.estimators.arms.question import ask_arms
from counterveil.estimators.arms.result import ArmsResult
from counterveil.estimators.methods import METHODS, answer, ask
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result
from counterveil.privacy import Budget, Number

# A form whose claim is false is charged what it really loses; a ledger of its own makes room for that.
_ROOM = 1000


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
        variant: str | None = None,
        settings: Any = None,
        accept: str | None = None,
        request_id: str | None = None,
    ) -> Result:
        """Return the private average treatment effect; see `counterveil.ate` for the arguments."""
        question = ask(
            self.study,
            method,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            estimand=estimand,
            level=level,
            law=law,
            variant=variant,
            settings=settings,
            accept=accept,
            request_id=request_id,
        )
        return answer(self, question)

    def arms(
        self,
        *,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        law: str | None = None,
        settings: Any = None,
        request_id: str | None = None,
    ) -> ArmsResult:
        """Return the private effects of several arms; see `counterveil.arms` for the arguments."""
        arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level, "law": law}
        question = ask_arms(self.study, method, **arguments, settings=settings, request_id=request_id)
        self.attach()  # so that data which do not fit are refused before anything is spent
        return arm_means(self, question)

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
    variant: str | None = None,
    settings: Any = None,
    accept: str | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> Result:
    """Return the private average treatment effect of a study.

    Args:
        data: a pandas, polars or pyarrow frame, a path to CSV or Parquet, a DuckDB relation; for methods that
            need counts and sums only ("stratified") also an Ibis table, which is added up in its database.
        study: roles, public bounds and categories of the columns.
        protects: "outcome" (only outcomes are private) or "record" (everything about a person is).
        epsilon: the privacy loss that may be spent; exact (0.1 is one tenth).
        delta: 0 for a pure guarantee; a small number buys Gaussian noise.
        method: "auto" or the name of an estimator.
        estimand: "ATE", "ATT" or "ATC".
        level: confidence level of the interval, which includes the privacy noise.
        law: "staircase" or "laplace" (pure), "gaussian" (delta > 0); None chooses.
        variant: None for the form that is proved; "paper" for a published form, where there is one.
        settings: the method's own settings, such as `MatchingSettings(neighbours=5)`.
        accept: "unproved" to get a result whose privacy claim is not proved in finite samples.
        ledger: path or URL of a ledger; without one the call is charged to a ledger of its own.
        dataset: the account in the ledger; may be left out where it holds one.
        request_id: a name for this question; asked again, it gets the same answer at no cost.
        noise: `SeededNoise(seed)` for tests and experiments; the result is then marked as simulated.
    """
    # Everything that can be refused without looking at the data is refused first.
    question = ask(
        study,
        method,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        estimand=estimand,
        level=level,
        law=law,
        variant=variant,
        settings=settings,
        accept=accept,
        request_id=request_id,
    )
    budget = None if ledger is not None else _own_budget(question)
    with Curator(
        data,
        study,
        budget=budget,
        ledger=ledger,
        dataset=dataset,
        noise=noise,
        attach=not METHODS[question.method].on_aggregates,
    ) as curator:
        return answer(curator, question)


def _own_budget(question: Question) -> Budget:
    """Return the budget of a ledger that is made for one question."""
    asked = question.budget
    return asked if question.accept is None else Budget(_ROOM * asked.epsilon, asked.delta)

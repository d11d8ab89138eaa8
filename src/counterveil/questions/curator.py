"""The front door: `ate(...)` for one question, `Curator` for several against one budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, Remaining
from counterveil.data import Study
from counterveil.privacy import Number, Unit
from counterveil.questions.ate import METHODS, answer, ask
from counterveil.questions.cate.cate import answer_cate, check_form
from counterveil.questions.groups.groups import answer_groups
from counterveil.questions.groups.naming import By
from counterveil.questions.groups.question import ask_groups, ask_records
from counterveil.questions.policy.curve import Ranking, answer_curve
from counterveil.questions.policy.rows import EffectModel
from counterveil.questions.policy.value import answer_policy, checked_policy
from counterveil.results.arms import ArmsResult
from counterveil.results.arms_question import ask_arms
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import ask_cate
from counterveil.results.groups import GroupsResult
from counterveil.results.policy import PolicyValue, TargetingCurve
from counterveil.results.result import Result
from counterveil.session import BitSource, Custody
from counterveil.statistics.linear.arm_means import arm_means
from counterveil.statistics.moments.groups_settings import GroupsSettings


class Curator(Custody):
    """Holds a table and its budget; every question asked of it is charged to the same ledger.

    Args:
        source: the data, as for `counterveil.ate`; they are attached once.
        study: column roles, public bounds and categories.
        budget: total budget; needed if the data set is not registered yet, otherwise omitted or the same.
        ledger: path or URL of an existing ledger, or a `Ledger`; None keeps one in memory for this curator.
        dataset: account in the ledger; if omitted, its only account, or "data" in a new one.
        noise: `SeededNoise(seed)` for tests and experiments; results are then marked as simulated.
        attach: False leaves the rows unread until a question needs them.
        analyst: who asks, as the ledger records it; None is the operating system's user.
        charter: what an account that is registered here permits; for an existing one omitted or the same.
    """

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

    def cate(
        self,
        *,
        protects: str = "record",
        epsilon: Number,
        delta: Number | None = None,
        method: str = "auto",
        level: float = 0.95,
        queries: Any = None,
        variant: str | None = None,
        settings: Any = None,
        accept: str | None = None,
        request_id: str | None = None,
    ) -> CateModel | CateAnswers:
        """Return the private effect as a function; see `counterveil.cate` for the arguments."""
        arguments: dict[str, Any] = {
            "method": method,
            "protects": protects,
            "epsilon": epsilon,
            "delta": delta,
        }
        arguments |= {"level": level, "queries": queries, "variant": variant, "settings": settings}
        arguments |= {"accept": accept, "request_id": request_id}
        check_form(ask_cate(self.study, **arguments))
        return answer_cate(self, ask_cate(self.study, rows=self.table.rows, **arguments))

    def groups(
        self,
        *,
        by: By,
        protects: str,
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        law: str | None = None,
        settings: Any = None,
        request_id: str | None = None,
    ) -> GroupsResult:
        """Return the private effects of public groups; see `counterveil.groups` for the arguments."""
        arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level, "law": law}
        question = ask_groups(self.study, method, **arguments, settings=settings, request_id=request_id)
        return answer_groups(self, question, by)

    def policy_value(
        self,
        *,
        policy: Any,
        cost: Number | None = None,
        protects: str = "record",
        epsilon: Number,
        delta: Number = 0,
        method: str = "auto",
        level: float = 0.95,
        settings: GroupsSettings | None = None,
        request_id: str | None = None,
    ) -> PolicyValue:
        """Return what a public rule gains; see `counterveil.policy_value` for the arguments."""
        arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level}
        question = ask_records(
            self.study, "policy_value", method, **arguments, settings=settings, request_id=request_id
        )
        rule = checked_policy(policy, self.study)
        return answer_policy(self, question, rule, rule.price(cost))

    def targeting_curve(
        self,
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
        settings: GroupsSettings | None = None,
        request_id: str | None = None,
    ) -> TargetingCurve:
        """Return what treating the highest ranked gains; see `counterveil.targeting_curve` for the arguments."""
        arguments = {"protects": protects, "epsilon": epsilon, "delta": delta, "level": level}
        question = ask_records(
            self.study, "targeting_curve", method, **arguments, settings=settings, request_id=request_id
        )
        return answer_curve(self, question, Ranking.of(self.study, model, bins, thresholds, cost))

    def remaining(self, protects: str = "outcome") -> Remaining:
        """Return what requests at a level of protection can still ask for; those that protect records may have less."""
        return self.account().left(Unit.parse(protects))


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
        data: a pandas, polars or pyarrow frame, a path to CSV or Parquet, a DuckDB relation, a dictionary of
            arrays, or a `Table`; for methods that need counts and sums only ("stratified") also an Ibis table,
            which is aggregated inside its database.
        study: column roles, public bounds and categories.
        protects: "outcome" (only outcomes are private) or "record" (everything about a person is).
        epsilon: privacy loss to spend; exact (0.1 is one tenth).
        delta: 0 for pure differential privacy; a small positive number allows Gaussian noise.
        method: "auto", or a method by name; an unknown name lists the methods.
        estimand: "ATE", "ATT" or "ATC".
        level: confidence level of the interval, which includes the privacy noise.
        law: noise distribution: "staircase" or "laplace", or "gaussian" if delta is positive; None takes staircase
            for delta 0 and Gaussian otherwise.
        variant: None for the form that is proved; "paper" for a published form, where there is one.
        settings: the method's own settings, such as `MatchingSettings(neighbours=5)`.
        accept: "unproved" to accept a form without a finite-sample guarantee.
        ledger: path or URL of an existing ledger, or a `Ledger`; without one, the costs of several calls are not
            added up.
        dataset: account in the ledger; may be omitted if the ledger has only one.
        request_id: name of this request; repeating it returns the stored answer and costs nothing.
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
    budget = None if ledger is not None else question.own_budget
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

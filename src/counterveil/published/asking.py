"""How published forms are asked, and releases that no proof of ours covers.

They draw at the session's gate, from what was charged before, and are here because no sound form needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import log, sqrt
from pathlib import Path
from typing import Any, TypeVar

from counterveil.accounting import Ledger, Uses
from counterveil.data import Study, check_study, silence
from counterveil.errors import refusal
from counterveil.privacy import ApproximateEvent, Budget, Event, Number, Proof, Unit
from counterveil.questions.cate import CateArguments
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import refuse_several_arms
from counterveil.results.functions import CateAnswers, CateQuestion, refuse_long_answers
from counterveil.results.question import (
    Question,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_overlap,
)
from counterveil.results.result import Result
from counterveil.session import (
    BaseSession,
    BitSource,
    Gate,
    Kind,
    KnownSensitivityMechanism,
    Plan,
    Released,
    Request,
)
from counterveil.session.any_noise import Gaussian, LaplacePair, release_with


@dataclass(frozen=True, slots=True)
class ClassicalPlan(Plan):
    """A plan in which the releases named `classical` have textbook Gaussian noise and an equal part of delta."""

    classical: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, *classical: str) -> ClassicalPlan:
        """Return the plan with these of its releases drawn and charged as textbook Gaussian noise."""
        return cls(plan.budget, plan.mechanism, plan.amounts, plan.kinds, classical)

    def event(self, name: str, amount: Fraction) -> Event:
        """Return what the ledger is told about the release called `name`: what the paper claims for it."""
        if name in self.classical:
            return ApproximateEvent(amount, self.budget.delta / len(self.amounts))
        return Plan.event(self, name, amount)


def textbook_constant(delta: float) -> float:
    """Return sqrt(2 ln(1.25 / delta)): noise over sensitivity / epsilon, as textbooks and papers print it.

    It keeps (epsilon, delta) for epsilon below 1 only. `mu_of` gives the least noise at any epsilon.
    """
    return sqrt(2 * log(1.25 / delta))


def release_scaled(gate: Gate, name: str, value: Fraction, bound: Fraction, least: Fraction) -> Fraction:
    """Return `value` plus the plan's noise at a private `bound`; `least` is a public scale that sets the grid."""
    return release_with(gate, name, [value], lambda plan, _: plan.noise(name, bound), least=least)[0][0]


def release_vector_scaled(
    gate: Gate, name: str, values: Sequence[Fraction], scale: Fraction, least: Fraction
) -> tuple[Fraction, ...]:
    """Return `values` plus Gaussian noise of a private `scale` each, which is not returned: it follows the rows."""
    return release_with(
        gate,
        name,
        values,
        lambda _, amount: Gaussian(scale * amount, amount),
        least=least,
        kind=Kind.VECTOR,
    )[0]


def release_classical(gate: Gate, name: str, value: Fraction, sensitivity: Fraction) -> Released:
    """Return `value` plus Gaussian noise of the textbook scale; every release of the plan takes an equal delta."""

    def noise(plan: Plan, amount: Fraction) -> KnownSensitivityMechanism:
        delta = plan.budget.delta / len(plan.amounts)
        return Gaussian(sensitivity, amount / Fraction(textbook_constant(float(delta))))

    (noisy,), mechanism = release_with(gate, name, [value], noise, least=sensitivity)
    return Released(noisy, mechanism)


def release_twice(
    gate: Gate, name: str, value: Fraction, sensitivity: Fraction, narrow: Fraction
) -> Released:
    """Return `value` plus two Laplace draws: the one that the plan pays for, and one of scale `narrow`."""
    (noisy,), mechanism = release_with(
        gate, name, [value], lambda _, amount: LaplacePair(sensitivity, amount, narrow), least=sensitivity
    )
    return Released(noisy, mechanism)


# How a published form is asked: of data and a study, or of an open session, and only if the analyst accepts it.
#
# `EffectForm` and `QueryForm` are the two kinds of forms; the public functions, one a form, call them.


# What an analyst writes to get a result whose privacy claim is not proved in finite samples.
ACCEPT = "unproved"
# A form whose claim is false is charged what it really loses. So that a ledger made for one such question does not
# refuse it, that ledger holds so many times the epsilon that was asked for.
_FACTOR_FOR_UNPROVED = 1000

Answer = TypeVar("Answer", Result, CateAnswers)


def unproved(
    session: BaseSession,
    question: Question,
    plan: Plan,
    compute: Callable[[Gate], Facts],
    pages: str | tuple[str, ...],
    claim: tuple[Proof, str],
    mechanisms: tuple[str, ...] | None = None,
) -> Result:
    """Return the answer of a form whose guarantee is not proved in finite samples, with the remark why."""
    asked, (proof, why) = (Result, session, question, plan, compute), claim
    return answer_request(*asked, pages=pages, remarks=(why,), proof=proof, mechanisms=mechanisms)


@dataclass(frozen=True, slots=True)
class PublishedQuestion(CateQuestion):
    """The public arguments of one request for a published form; `queries` is None where one effect is asked for."""

    accept: str | None = None

    @classmethod
    def of(cls, question: Question, accept: str | None) -> PublishedQuestion:
        """Return a checked question with what the analyst accepts."""
        return cls(**{each.name: getattr(question, each.name) for each in fields(question)}, accept=accept)

    def require_acceptance(self, proof: Proof, why: str) -> None:
        """Raise CV-C001 unless the analyst accepted a result whose guarantee is not proved."""
        if proof is not Proof.FINITE_SAMPLE and self.accept != ACCEPT:
            raise refusal("CV-C001", proof=proof.value, accept=ACCEPT, why=why, given=self.accept)

    @property
    def own_budget(self) -> Budget:
        """The budget of a ledger that is made for this question alone."""
        factor = 1 if self.accept is None else _FACTOR_FOR_UNPROVED
        return Budget(factor * self.budget.epsilon, self.budget.delta)

    def uses(self, study: Study, question: str = "published") -> Uses:
        """Return what the ledger compares with the account's access policy."""
        # Without acceptance an unproved form does not run, so that none can pass as proved.
        return replace(Question.uses(self, study, question), unproved=self.accept is not None)

    def request(self, plan: Plan, study: Study, *, question: str = "published", **said: object) -> Request:
        """Return the request that the ledger sees: the plan and a public description."""
        return CateQuestion.request(self, plan, study, question=question, accept=self.accept, **said)


@dataclass(frozen=True, slots=True)
class FormSource:
    """Where a form finds its rows: data with a study and perhaps a ledger, or a session that has all of it."""

    data: object
    study: Study | None
    ledger: str | Path | Ledger | None = None
    dataset: str | None = None
    noise: BitSource | None = None

    def __post_init__(self) -> None:
        session = isinstance(self.data, BaseSession)
        others = {"study": self.study, "ledger": self.ledger, "dataset": self.dataset, "noise": self.noise}
        given = [name for name, value in others.items() if value is not None]
        if session and given:
            raise refusal("CV-P565", given=", ".join(given))
        if not session:
            check_study(self.study)

    @property
    def declared(self) -> Study:
        """The study of the rows."""
        study = self.data.study if isinstance(self.data, BaseSession) else self.study
        assert study is not None  # checked above
        return study

    def open(self, budget: Budget) -> AbstractContextManager[BaseSession]:
        """Return the session that answers; one without a ledger gets its own, which holds `budget`."""
        if isinstance(self.data, BaseSession):
            return nullcontext(self.data)
        given = None if self.ledger is not None else budget
        return BaseSession(
            self.data, self.declared, budget=given, ledger=self.ledger, dataset=self.dataset, noise=self.noise
        )


@silence()
def answer(
    source: FormSource,
    question: PublishedQuestion,
    form: Callable[[BaseSession, PublishedQuestion], Answer],
) -> Answer:
    """Return the answer of a form, charged to the source's ledger."""
    with source.open(question.own_budget) as session:
        session.admit(question.uses(session.study))
        session.attach()
        refuse_few_clusters(session.study, "published", question.method, session.table.rows)
        return form(session, question)


@dataclass(frozen=True, repr=False)
class EffectForm:
    """A published form of one effect; `run` computes and releases it.

    `printed` says whether it is the paper's own; a proved form takes no notice of `accept`.
    """

    name: str
    unit: Unit
    settings: type | None
    run: Callable[[BaseSession, PublishedQuestion], Result]
    printed: bool = True

    def __repr__(self) -> str:
        return f"cv.published.{self.name}"

    def __call__(
        self,
        data: object,
        study: Study | None = None,
        *,
        epsilon: Number,
        delta: Number = 0,
        estimand: str = "ATE",
        level: float = 0.95,
        settings: Any = None,
        accept: str | None = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        request_id: str | None = None,
        noise: BitSource | None = None,
    ) -> Result:
        """Return the effect as the paper prints it or as it can be proved."""
        source = FormSource(data, study, ledger, dataset, noise)
        refuse_several_arms(source.declared)
        question = Question.ask(
            method=f"published.{self.name}",
            protects=self.unit.value,
            epsilon=epsilon,
            delta=delta,
            estimand=estimand,
            level=level,
            mechanism=None,
            settings=settings,
            request_id=request_id,
        )
        refuse_extremes(source.declared, question.budget)
        refuse_overlap(question)
        refuse_other_settings(question, self.settings)
        asked = PublishedQuestion.of(question, accept if self.printed else None)
        return answer(source, asked, self.run)


@dataclass(frozen=True, repr=False)
class QueryForm:
    """A published form of effects at given points; `run` computes and releases them."""

    name: str
    settings: type
    run: Callable[[BaseSession, PublishedQuestion], CateAnswers]

    def __repr__(self) -> str:
        return f"cv.published.{self.name}"

    def __call__(
        self,
        data: object,
        study: Study | None = None,
        *,
        queries: Any = None,
        epsilon: Number,
        delta: Number = 0,
        level: float = 0.95,
        settings: Any = None,
        accept: str | None = None,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        request_id: str | None = None,
        noise: BitSource | None = None,
    ) -> CateAnswers:
        """Return the effects at the queries as the paper prints them."""
        source = FormSource(data, study, ledger, dataset, noise)
        asked = CateArguments(
            protects=Unit.RECORD.value,
            epsilon=epsilon,
            delta=delta,
            method=f"published.{self.name}",
            level=level,
            queries=queries,
            settings=settings,
            request_id=request_id,
        )
        # Everything that can be refused without looking at the data is refused first.
        checked = asked.about(source.declared)
        refuse_other_settings(checked, self.settings)
        if checked.queries is not None:
            refuse_long_answers(checked.queries)
        first = PublishedQuestion.of(checked, accept)
        with source.open(first.own_budget) as session:
            session.admit(first.uses(session.study))
            return answer(FormSource(session, None), first, self.run)

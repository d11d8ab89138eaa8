"""What a method of estimation is: from public numbers to a plan of releases, and from these to an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from counterveil.data.domains import Label
from counterveil.privacy import Proof
from counterveil.results.answering import Facts, Stored, answer_request
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, Gate, Plan

Answer = TypeVar("Answer", bound=Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[Answer]):
    """A method that has looked at public numbers: what it will release, at which price, and what it makes of it.

    Attributes
    ----------
    question : Question
        The question as it is answered, with the mechanism that was chosen.
    plan : Plan
        Names of releases and the part of the budget that each pays.
    estimate : callable
        From the gate, at which declarations of `counterveil.rows` release their numbers, to the fields of the answer.
    answer : type, default Result
        Class of the answer.
    pages : tuple of str
        Proof pages of the bounds.
    mechanisms : tuple of str, optional
        Mechanisms of the noise; by default that of the question.
    remarks : tuple of str
        What the guarantee says beside its pages.
    proof : Proof
        Whether the guarantee holds in finite samples.
    reference : label, optional
        The period of an event study whose pattern of missing values is public.
    description : dict
        What the ledger writes down beside the question.
    finish : callable, optional
        What is made of the stored answer, from released numbers alone.
    """

    question: Question
    plan: Plan
    estimate: Callable[[Gate], Facts | Answer]
    answer: type[Any] = Result
    pages: str | tuple[str, ...] = ()
    mechanisms: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()
    proof: Proof = Proof.FINITE_SAMPLE
    reference: Label | None = None
    description: dict[str, Any] = field(default_factory=dict)
    finish: Callable[[Answer], Answer] | None = None

    def run(self, session: BaseSession) -> Answer:
        """Return the answer: reserve the plan, release at the gate, store; a repeated request costs nothing."""
        settled: Answer = answer_request(
            self.answer,
            session,
            self.question,
            self.plan,
            self.estimate,
            pages=self.pages,
            remarks=self.remarks,
            proof=self.proof,
            mechanisms=self.mechanisms,
            reference=self.reference,
            said=self.description,
        )
        return settled if self.finish is None else self.finish(settled)


# From what is public of rows, and a question, to what will be released.
Prepare = Callable[[PublicData, Question], Prepared[Answer]]


def runs(prepare: Prepare[Answer]) -> Callable[[BaseSession, Question], Answer]:
    """Return the function that answers a question of a session by a method."""

    def answer(session: BaseSession, question: Question) -> Answer:
        return prepare(PublicData(session, question.unit), question).run(session)

    return answer

"""The last steps of every method: complete an answer with what it repeats of its question, and store it.

In: an open session, the question, and what a method found: released numbers as `Facts`, by the names of the
answer's fields. Out: the answer, with its guarantee (what is protected, at which epsilon and delta, by which
proof pages), stored in the ledger under its request id before it is returned, so that a repeated request gets
the same numbers and costs nothing. It reads no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from counterveil.data.domains import Label
from counterveil.privacy import Proof
from counterveil.privacy.provenance import AnyPremise
from counterveil.report.methods import estimator_words
from counterveil.report.releases import premise_words, release_words
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Plan


class Stored(Protocol):
    """What is kept in a ledger and read back."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps."""
        ...

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Return what was stored."""
        ...


Answer = TypeVar("Answer", bound=Stored)


class Facts(dict[str, Any]):
    """The fields of an answer that its method adds to what its question says."""


def answer_request(
    kind: type[Answer],
    session: BaseSession,
    question: Question,
    plan: Plan,
    compute: Callable[[Gate], Facts | Answer],
    *,
    pages: str | tuple[str, ...] = (),
    remarks: tuple[AnyPremise, ...] = (),
    proof: Proof = Proof.FINITE_SAMPLE,
    mechanisms: tuple[str, ...] | None = None,
    reference: Label | None = None,
    said: Mapping[str, Any] | None = None,
) -> Answer:
    """Return the answer to a question: its plan is reserved, `compute` releases numbers at the gate, and it is stored.

    The guarantee is proved on `pages` and those of the `mechanisms`; `said` is what the request's description says
    beside the question, `reference` the period of an event study. A request that was answered before gets the stored
    answer. Where `compute` does not say what was released, it is the releases of the plan.
    """

    def answer(gate: Gate) -> dict[str, object]:
        found = compute(gate)
        if isinstance(found, Facts):
            found.setdefault("releases", plan.listed)
            found.setdefault(
                "guarantee",
                question.guarantee(
                    session, pages, tuple(map(premise_words, remarks)), proof, mechanisms, reference
                ),
            )
            found = built(kind, session, question, found)
        return found.stored()

    request = question.request(plan, session.study, **(said or {}))
    return kind.from_dict(session.run(request, answer))


def built(kind: type[Answer], session: BaseSession, question: Question, found: Facts) -> Answer:
    """Return an answer of its facts and of what it repeats of its question.

    The answer holds the words of its estimator and of its releases, which are values among the facts.
    """
    terms = question.effect_terms(session.study) if kind is Result else question.terms(session.study)
    if "estimand" in kind.__dataclass_fields__:
        terms["estimand"] = question.estimand
    repeated = {name: value for name, value in terms.items() if name in kind.__dataclass_fields__}
    words: dict[str, Any] = {"releases": release_words(found["releases"])}
    if "method" in found:
        words["method"] = estimator_words(found["method"])
    made: Answer = getattr(kind, "_made", kind)(**(repeated | found | words))
    return made

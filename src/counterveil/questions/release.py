"""A release of one's own: a function of private rows with a declared bound, plus noise for that bound.

    released:  f(rows) + noise for the bound B,    |f(D) - f(D')| <= B

for all data sets D and D' that differ in what is private of one person. In: the function f, which returns one
exact number or several, the bound B in units of f (for several numbers that of the sum of absolute changes or
of the length of the change, as `norm` says), and the budget, all of which pays for it. Out: the noisy numbers
in units of f, with intervals for what they are without noise; there is no sampling error in them.

Right under the condition that B is a bound, which its author declares and the answer states. Where f fails, 0
is released in its place, so that a failure says nothing. Proof: `rows/statistic.proof.md`. The *gate* that
the numbers pass adds noise and lets each planned release through once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any, ClassVar

from counterveil.data import Study, Table, silence
from counterveil.errors import refusal
from counterveil.estimators.method import LONGEST_NAME, Prepared, runs
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Proof, Unit
from counterveil.questions.asking import Arguments, Asked
from counterveil.results.answering import Facts
from counterveil.results.own_release import Release
from counterveil.results.question import Question, refuse_extremes
from counterveil.rows.public import PublicData
from counterveil.rows.statistic import Exact, Norm, Statistic, length_on_made_up_rows
from counterveil.session import BaseSession, Gate, Kind, Plan, Released, ReleasedVector

# The name in the plan.
_NAME = "value"


@dataclass(frozen=True, slots=True)
class DeclaredSum(Statistic):
    """A statistic that is a function of rows and its bound."""

    function: Callable[[Table], Any]
    bound: Exact
    norm: Norm = "absolute"

    def value(self, rows: Table) -> Any:
        """Return what the function returns."""
        return self.function(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseArguments(Arguments[Release]):
    """The arguments of `Session.release`, checked."""

    name: ClassVar[str] = "release"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    called: str
    value: Callable[[Table], Any]
    bound: Exact
    norm: Norm = "absolute"
    mechanism: str | None = None

    def checked(self, study: Study) -> Asked[Release]:
        """Return the checked question with its budget; reads neither data nor ledger."""
        named = isinstance(self.called, str) and 0 < len(self.called) <= LONGEST_NAME
        if not named or not self.called.isprintable() or not callable(self.value):
            raise refusal("CV-P850", name=self.called, value=type(self.value).__name__)
        statistic = DeclaredSum(self.value, self.bound, self.norm)
        statistic.declared_bound()
        question = self.question("release", self.mechanism)
        refuse_extremes(study, question.budget)
        return Asked(
            question.budget,
            partial(answer_release, question=question, called=self.called, statistic=statistic),
        )


@silence()
def answer_release(session: BaseSession, question: Question, called: str, statistic: DeclaredSum) -> Release:
    """Return the released numbers of an open session."""
    session.admit(question.uses(session.study, "release"))
    session.attach("a release of your own")
    if statistic.norm == "absolute":
        question = question.in_pure_noise(session.account().rule)
    answer: Release = runs(partial(prepared, called=called, statistic=statistic))(session, question)
    return answer


def prepared(
    public: PublicData, question: Question, *, called: str, statistic: DeclaredSum
) -> Prepared[Release]:
    """Return the release, planned: the whole budget pays for its numbers."""
    length = length_on_made_up_rows(statistic, public)
    gaussian = question.mechanism == "gaussian"
    # Gaussian noise follows the Euclidean length of a change, which is at most the sum of its absolute values.
    kind = Kind.VECTOR if gaussian and statistic.norm != "absolute" else statistic.kind
    kinds = {} if kind is Kind.NUMBER else {_NAME: kind}
    plan = Plan.split(question.budget, {_NAME: Fraction(1)}, question.mechanism, kinds)
    bound = statistic.declared_bound()
    drawn = {
        Kind.NUMBER: question.mechanism,
        Kind.CELLS: "laplace",
        Kind.VECTOR: "gaussian" if gaussian else "ball",
    }
    mechanism = drawn[kind]

    def estimate(gate: Gate) -> Facts:
        released = statistic.release(gate, _NAME, length)
        single = isinstance(released, Released)
        values = (float(released),) if isinstance(released, Released) else tuple(released.floats().tolist())
        variance = released.noise.variance if isinstance(released, Released) else released.variance
        return Facts(
            name=called,
            values=values,
            sd=sqrt(variance),
            uncertainty=_law(plan, kind, bound, released),
            bound=float(bound),
            rows=public.rows,
            releases=((called, f"bound {float(bound):.6g}" + ("" if single else f" ({statistic.norm})")),),
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=Release,
        pages=("rows/statistic.proof.md",),
        mechanisms=(mechanism,),
        proof=Proof.DECLARED,
        description={"question": "release", "name": called, "bound": str(bound), "norm": statistic.norm},
    )


def _law(plan: Plan, kind: Kind, bound: Fraction, released: Released | ReleasedVector) -> Uncertainty | None:
    """Return the law of the noise of each number, None where it is that of the l2 ball."""
    if isinstance(released, Released):
        return Uncertainty(released.noise, 0.0, 0.0)
    if kind is Kind.CELLS:
        return Uncertainty(plan.cells_noise(_NAME, bound), 0.0, 0.0)
    if plan.mechanism == "gaussian":
        return Uncertainty(plan.coordinate_noise(_NAME, bound), 0.0, 0.0)
    return None

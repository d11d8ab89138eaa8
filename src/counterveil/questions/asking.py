"""How a question is asked: checked first, then answered by a session that is already open or opened for it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from counterveil.accounting import Ledger
from counterveil.data import Study, check_study, silence
from counterveil.privacy import Budget, Estimand, Unit
from counterveil.questions.repeating import repeat_of
from counterveil.questions.table_one import table_one
from counterveil.results.measures import refuse_range as refuse_range_of
from counterveil.results.question import with_trends
from counterveil.results.result import Released
from counterveil.session import BitSource, Session

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Answer]):
    """A question that was checked without looking at data: what it may spend, and how a session answers it.

    `attach` says whether rows are attached when a session is opened for this question alone.
    """

    budget: Budget
    compute: Callable[[Session], Answer]
    attach: bool = True

    def answer(self, session: Session) -> Answer:
        """Return the answer of a session; that about changes says what it assumes."""
        found = self.compute(session)
        if not isinstance(found, Released) or session.study.before is None:
            return found
        treated = getattr(found, "estimand", None) is Estimand.ATT
        said = with_trends(session.study, found.not_covered, treated)
        return replace(found, method=f"difference in differences: {found.method}", not_covered=said)


def ask_of(session: Session, ask: Callable[..., Asked[Answer]], arguments: dict[str, Any]) -> Answer:
    """Return the answer of an open session; `arguments` are those of a method of `Curator`."""
    given = {name: value for name, value in arguments.items() if name != "self"}
    asked = ask(session.study, **given)
    # Once for all parts: each of them looks at rows, and ends up silent if it is not already.
    with silence():
        return _for_reports(asked.answer(session), ask, session, given)


def _for_reports(
    found: Answer, ask: Callable[..., Asked[Answer]], session: Session, arguments: dict[str, Any]
) -> Answer:
    """Return an answer with what reports add: how to ask for it again and, where they are public, covariates by arm."""
    if not isinstance(found, Released):
        return found
    repeat = repeat_of(ask.__name__, session.study, arguments, session.simulated)
    if found.guarantee.unit is not Unit.OUTCOME:
        return replace(found, repeat=repeat, by_arm={} if session.study.covariates else None)
    rows = session.in_memory
    return replace(found, repeat=repeat, by_arm=None if rows is None else rows.once("table one", table_one))


def ask_once(ask: Callable[..., Asked[Answer]], arguments: dict[str, Any]) -> Answer:
    """Return the answer of a session for one question; `arguments` are those of a public function."""
    return _ask_once(ask, **arguments)


def _ask_once(
    ask: Callable[..., Asked[Answer]],
    *,
    data: object,
    study: Study,
    ledger: str | Path | Ledger | None,
    dataset: str | None,
    noise: BitSource | None,
    **arguments: Any,
) -> Answer:
    # Everything that can be refused without looking at the data is refused first.
    check_study(study)
    asked = ask(study, **arguments)
    budget = None if ledger is not None else asked.budget
    with (
        silence(),
        Session(
            data, study, budget=budget, ledger=ledger, dataset=dataset, noise=noise, attach=asked.attach
        ) as session,
    ):
        named = arguments if ledger is not None else arguments | {"request_id": None}
        return _for_reports(asked.answer(session), ask, session, named)


def refuse_range(study: Study, measure: str) -> None:
    """Raise CV-P686 where the range of outcomes allows numbers that the measure has no meaning for."""
    low, high = study.outcome_range
    more = "" if study.per is None else f", per={study.per.column!r}"
    more += "" if study.before is None else ", the range of a change"
    # What is divided by has an interval of its own.
    refuse_range_of(measure, (float(low), float(high)), divided=study.per is not None, more=more)

"""A site: answers one request with one private result, or with the code of a refusal, and says nothing else."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.accounting import open_ledger
from counterveil.data import Layout, Study, open_table
from counterveil.errors import BudgetError, CounterveilError, LedgerError
from counterveil.estimators import Curator, settings_from_text
from counterveil.estimators.methods import METHODS, ask
from counterveil.federation import refusals
from counterveil.federation.messages import Ask, Reply, Request
from counterveil.federation.policy import BY_HAND
from counterveil.federation.refusals import RefusedError
from counterveil.federation.site_file import SiteFile
from counterveil.federation.site_records import APPROVED, PENDING, SiteRecords, key_of

_LOG = logging.getLogger(__name__)
# What the ledger says about a request id, and how a site passes it on.
_LEDGER = {"CV-L006": refusals.LOST, "CV-L007": refusals.OTHER_QUESTION}
# What the charter of the site's account does not allow: see counterveil.accounting.allowance.
_LEDGER |= dict.fromkeys((f"CV-L04{last}" for last in range(1, 6)), refusals.NOT_ALLOWED)


class Site:
    """Holds a site's settings and memory; rows are read when a request that may be answered needs them."""

    def __init__(self, file: SiteFile, clock: Callable[[], float] = time.time) -> None:
        self.file = file
        self.study = Study.from_toml(file.declaration)
        self.records = SiteRecords(file.answers)
        self._clock = clock

    def answer(self, text: str) -> str:
        """Return the reply to a message; whatever happens inside, a refusal's code is all that leaves."""
        try:
            request = Request.from_text(text)
        except CounterveilError:
            _LOG.info("refused a message: %s", refusals.NOT_UNDERSTOOD)
            return Reply("", "", refusal=refusals.NOT_UNDERSTOOD).to_text()
        try:
            with self.records.locked():
                result = self._result(request)
            _LOG.info("answered %s", key_of(request))
            return Reply(request.study_id, request.request_id, result=result).to_text()
        except Exception as error:
            code = error.code if isinstance(error, RefusedError) else refusals.FAILED
            _LOG.info("refused %s: %s%s", key_of(request), code, _where(error))
            return Reply(request.study_id, request.request_id, refusal=code).to_text()

    def _result(self, request: Request) -> dict[str, Any]:
        """Return the kept answer of a request, or check it, pay for it, compute it and keep it, in this order."""
        kept = self.records.answered(request)
        if kept is not None:
            return kept
        self._check(request)
        result = self._computed(request)
        if not self.file.policy.diagnostics:
            result = result | {"diagnostics": {}}
        self.records.keep(request, result)
        return result

    def _check(self, request: Request) -> None:
        """Raise the refusal of a request that is not to be paid for; nothing here looks at rows."""
        if not self._declared(request.declaration):
            raise RefusedError(refusals.OTHER_DECLARATION)
        if not self._reserved(request):
            # What was paid for already is not refused for a policy or a deadline that came later.
            self.file.policy.check(request.ask, self._spent(request.study_id))
            if self._clock() > request.deadline:
                raise RefusedError(refusals.LATE)
            if self.file.policy.approval == BY_HAND:
                decision = self.records.decision(request)
                if decision != APPROVED:
                    raise RefusedError(refusals.WAITING if decision == PENDING else refusals.DECLINED)

    def _declared(self, declaration: dict[str, Any]) -> bool:
        """Return whether the coordinator declares the data as the site does; bounds are the steward's to set."""
        try:
            return Study.from_dict(declaration).fingerprint() == self.study.fingerprint()
        except CounterveilError:
            return False

    def _computed(self, request: Request) -> dict[str, Any]:
        arguments = self._arguments(request.ask)
        aggregates = METHODS[request.ask.method].on_aggregates
        source = open_table(self.file.data, self.file.table)
        try:
            with Curator(
                source,
                self.study,
                ledger=self.file.ledger,
                dataset=self.file.dataset,
                attach=not aggregates,
                analyst=f"coordinator at {self.file.coordinator}"[:200],
            ) as curator:
                if self._rows(curator, aggregates) < self.file.policy.least_rows:
                    raise RefusedError(refusals.TOO_FEW)
                return curator.ate(**arguments, request_id=key_of(request)).to_dict()
        except BudgetError:
            raise RefusedError(refusals.NO_BUDGET) from None
        except LedgerError as error:
            raise RefusedError(_LEDGER.get(error.code, refusals.FAILED)) from None

    def _arguments(self, question: Ask) -> dict[str, Any]:
        """Return the arguments of `ate`; what does not suit the estimator is refused before rows are read."""
        words = [f"{name}={value!r}" for name, value in question.settings.items()]
        arguments: dict[str, Any] = {
            "method": question.method,
            "protects": question.protects,
            "epsilon": question.epsilon,
            "delta": question.delta,
            "estimand": question.estimand,
            "level": question.level,
            "law": question.law,
        }
        # Which column is public and puts rows in order is not for the one who asks to say.
        if "order" in question.settings:
            raise RefusedError(refusals.UNSUITABLE)
        try:
            arguments["settings"] = settings_from_text(question.method, words, question.protects)
            ask(self.study, **arguments, request_id=None)
        except (CounterveilError, TypeError, ValueError):
            raise RefusedError(refusals.UNSUITABLE) from None
        return arguments

    def _rows(self, curator: Curator, aggregates: bool) -> int:
        """Return the number of rows, which is public; a table in a database is counted there."""
        if not aggregates:
            return curator.table.rows
        return curator.strata(Layout.of(self.study, ())).rows if self.file.policy.least_rows else 0

    def _reserved(self, request: Request) -> bool:
        """Return whether the ledger was charged for this request id before."""
        return any(entry.request_id == key_of(request) for entry in self._charges())

    def _spent(self, study_id: str) -> Fraction:
        """Return the epsilon that a study was charged here so far."""
        mine = [entry for entry in self._charges() if entry.request_id.startswith(f"{study_id}@")]
        return sum((_face(entry.facts) for entry in mine), Fraction(0))

    def _charges(self) -> list[Any]:
        with open_ledger(self.file.ledger) as ledger:
            return [entry for entry in ledger.entries(self.file.dataset) if entry.kind == "reserve"]


def _face(facts: Any) -> Fraction:
    return Fraction(facts["charge"]["face"]["epsilon"])


def _where(error: Exception) -> str:
    """Return the kind of an unexpected error and the lines it went through; its text may quote rows."""
    if isinstance(error, RefusedError):
        return ""
    steps = [
        f"{Path(step.filename).name}:{step.lineno}" for step in traceback.extract_tb(error.__traceback__)
    ]
    return f" ({type(error).__name__} at {' > '.join(steps)})"

"""A site: answers one request with one private result, or with the code of a refusal, and says nothing else."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from counterveil.accounting import open_ledger
from counterveil.data import Layout, Study, check_columns, open_table, rows_of_source, source_in_database
from counterveil.data.table import arm_sizes
from counterveil.errors import BudgetError, CounterveilError, FederationError, LedgerError, refusal
from counterveil.estimators.site_bounds.methods import ESTIMATORS
from counterveil.federation import keys, summed_site
from counterveil.federation import messages as refusals
from counterveil.federation.files import check_private
from counterveil.federation.judging import options_of
from counterveil.federation.masking import Step, read_request
from counterveil.federation.messages import MOST_ROBUST, Ask, Head, RefusedError, Reply, SiteRequest
from counterveil.federation.site_files import (
    APPROVED,
    BY_HAND,
    PENDING,
    KeptAnswer,
    SiteFile,
    SiteRecords,
    check_checkpoints,
    check_heads,
    head_of,
    key_of,
)
from counterveil.inference.quotient import DIFFERENCE
from counterveil.privacy import Budget, Unit
from counterveil.questions import groups as groups_question
from counterveil.questions import outcomes
from counterveil.questions.asking import Arguments, ask_of
from counterveil.questions.ate import METHODS, NamedMethod, settings_from_values
from counterveil.questions.session import QUESTIONS, Session
from counterveil.results.measures import OF_MEANS, no_means
from counterveil.results.question import uses_of
from counterveil.session import BaseSession
from counterveil.session.session import planned_arm
from counterveil.session.summing import NextPart
from counterveil.settings import Arms, Survival
from counterveil.settings.methods import out_of_range

_LOG = logging.getLogger(__name__)
# What the ledger says about a request id, and how a site passes it on.
_LEDGER = {"CV-L006": refusals.LOST, "CV-L007": refusals.OTHER_QUESTION}
# What the access policy of the site's account does not allow: see counterveil.accounting.accounts.
_LEDGER |= dict.fromkeys((f"CV-L04{last}" for last in (1, 2, 3, 4, 5, 9)), refusals.NOT_ALLOWED)
_LEDGER |= {"CV-L070": refusals.NOT_ALLOWED}
_LEDGER |= dict.fromkeys((f"CV-L08{last}" for last in (0, 2, 3)), refusals.NOT_ALLOWED)
# What a declaration can raise that no reader made.
_FAULTS = (CounterveilError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class Site:
    """Holds a site's settings and memory; rows are read when a request that may be answered needs them."""

    def __init__(self, file: SiteFile, clock: Callable[[], float] = time.time) -> None:
        self.file = file
        self.study = Study.from_toml(file.declaration)
        self.records = SiteRecords(file.answers)
        self._clock = clock

    def check_ledger(self) -> None:
        """Raise CV-F043 where the ledger is damaged, or lacks an entry that an answer was given after."""
        with self.records.locked(), open_ledger(self.file.ledger) as ledger:
            check_checkpoints(ledger, self.records.heads())

    def answer(self, text: str) -> str:
        """Return the reply to a message; whatever happens inside, a refusal's code is all that leaves."""
        try:
            request, step = read_request(text)
        except CounterveilError:
            _LOG.info("refused a message: %s", refusals.NOT_UNDERSTOOD)
            return Reply.not_understood().to_text()
        try:
            with self.records.locked():
                answer = self._answer(request, step)
            _LOG.info("answered %s", key_of(request))
            return Reply.to(request, result=answer.result, head=answer.head).to_text()
        except Exception as error:
            code = error.code if isinstance(error, RefusedError) else refusals.FAILED
            _LOG.info("refused %s: %s%s", key_of(request), code, _where(error))
            return Reply.to(request, refusal=code).to_text()

    def _answer(self, request: SiteRequest, step: Step | None) -> KeptAnswer:
        """Return the kept answer of a request, or check it, pay for it, compute it and keep it, in this order.

        A step of a sum before the last is answered with the site's part of what is summed next, which is not kept
        here: the ledger stores its noise.
        """
        if request.site != self.file.name:
            raise RefusedError(refusals.OTHER_SITE)
        self._check_ledger(request.checkpoint)
        kept = self.records.answered(request)
        if kept is not None:
            # A site that stopped between keeping an answer and this.
            summed_site.forget(self.file, request)
            return kept
        if not summed_site.fits(request, step):
            raise RefusedError(refusals.UNSUITABLE)
        self._check(request)
        if step is None:
            result = self._computed(request)
        elif not step.members:
            return KeptAnswer(summed_site.offer(self.file, request, self._offered(request)), None)
        else:
            private = summed_site.check_members(self.file, request, step)
            try:
                result = self._computed(request, summed_site.opened(request, step, private))
            except NextPart as part:
                self._note_head()
                return KeptAnswer(summed_site.part_of(request, step, private, part), None)
        if not self.file.policy.diagnostics and "diagnostics" in result:
            result = result | {"diagnostics": {}}
        answer = KeptAnswer(result, self._note_head())
        self.records.keep(request, answer)
        summed_site.forget(self.file, request)
        return answer

    def _note_head(self) -> Head:
        """Return where the ledger ends, noted before anything that it was charged for leaves.

        A part of a sum must never be drawn again: two draws under the same masks differ by their noise alone. So a
        ledger in which the draw is missing later, or the entry that was noted last now, is refused.
        """
        head = self._check_ledger(None)
        self.records.note_head(head)
        return head

    def _check_ledger(self, checkpoint: Head | None) -> Head:
        """Return where the ledger ends; refuse one that lacks what was noted last, or what the coordinator saw."""
        heads = [head for head in (self.records.last_head(), checkpoint) if head is not None]
        try:
            with open_ledger(self.file.ledger) as ledger:
                check_heads(ledger, heads)
                return head_of(ledger)
        except (FederationError, LedgerError):
            raise RefusedError(refusals.DAMAGED_LEDGER) from None

    def _check(self, request: SiteRequest) -> None:
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
        if declaration == self.study.to_dict():
            return True
        # The same in other words, perhaps; more covariates than the site's own are not looked at.
        covariates = declaration.get("covariates", {})
        if not isinstance(covariates, dict) or len(covariates) != len(self.study.covariates):
            return False
        try:
            return Study.from_dict(declaration).fingerprint() == self.study.fingerprint()
        except _FAULTS:
            return False

    def _offered(self, request: SiteRequest) -> int:
        """Return the number of rows of a site that can take part in a sum; what would be refused later is refused."""
        asked = _arguments(self.study, request)
        if self.study.clustered:
            raise RefusedError(refusals.UNSUITABLE)
        source = rows_of_source(open_table(self.file.data, self.file.table), self.study)
        rows = source.rows
        smallest = planned_arm(self.study, source.rows)
        if Unit(asked.protects).treatment_public:
            (sizes,) = source.run(partial(arm_sizes, arms=2))
            smallest = int(sizes.min())
        if rows < max(1, self.file.policy.min_rows):
            raise RefusedError(refusals.TOO_FEW)
        self._check_arm(smallest)
        uses = uses_of(self.study, Unit(asked.protects), asked.name, request.ask.method)
        budget = Budget(request.ask.epsilon, request.ask.delta)
        try:
            with open_ledger(self.file.ledger) as ledger:
                ledger.check_offer(self.file.dataset, uses, budget, key_of(request))
        except BudgetError:
            raise RefusedError(refusals.NO_BUDGET) from None
        except LedgerError as error:
            raise RefusedError(_LEDGER.get(error.code, refusals.FAILED)) from None
        return rows

    def _computed(
        self, request: SiteRequest, open_session: Callable[..., BaseSession] = Session
    ) -> dict[str, Any]:
        arguments = _arguments(self.study, request)
        method = METHODS[request.ask.method] if request.ask.question == "ate" else None
        source = open_table(self.file.data, self.file.table)
        try:
            with open_session(
                source,
                self.study,
                ledger=self.file.ledger,
                dataset=self.file.dataset,
                attach=method is None or not method.on_aggregates,
                analyst=f"coordinator at {self.file.coordinator}"[:200],
            ) as session:
                if self._rows(session, method) < self.file.policy.min_rows:
                    raise RefusedError(refusals.TOO_FEW)
                if self.file.policy.min_arm:
                    self._check_arm(session.smallest_arm(Unit(request.ask.protects)))
                found: dict[str, Any] = ask_of(session, arguments).to_dict()
                return found
        except BudgetError:
            raise RefusedError(refusals.NO_BUDGET) from None
        except LedgerError as error:
            raise RefusedError(_LEDGER.get(error.code, refusals.FAILED)) from None
        except FederationError:
            # Sums of another length than what was released, or a part that another key closed.
            raise RefusedError(refusals.OTHER_SUM) from None

    def _check_arm(self, smallest: int | None) -> None:
        """Refuse an arm below the least size, and one of no public size."""
        least = self.file.policy.min_arm
        if least and (smallest is None or smallest < least):
            raise RefusedError(refusals.NOT_ALLOWED if smallest is None else refusals.TOO_FEW)

    def _rows(self, session: BaseSession, method: NamedMethod | None) -> int:
        """Return the number of rows, which is public; a table in a database is counted there."""
        if method is None or method.in_batches:
            return session.batches.rows
        if not method.on_aggregates:
            return session.table.rows
        return session.strata(Layout.of(self.study, ())).rows if self.file.policy.min_rows else 0

    def _reserved(self, request: SiteRequest) -> bool:
        """Return whether the ledger was charged for this request id before."""
        with open_ledger(self.file.ledger) as ledger:
            return ledger.state_of(self.file.dataset, key_of(request)) is not None

    def _spent(self, study_id: str) -> Fraction:
        """Return the epsilon that a study was charged here so far."""
        with open_ledger(self.file.ledger) as ledger:
            return ledger.study_spent(self.file.dataset, study_id)[0]


# What every message has; of questions that do not take one it is as if nothing was said.
_DEFAULTS = {"method": "moments", "estimand": "ATE", "measure": DIFFERENCE, "mechanism": None}


def _settings(question: Ask, study: Study) -> Any:
    """Return the settings of a question's method from plain values, or raise CV-P020."""
    unit = Unit(question.protects)
    method = question.method
    known = {
        "ate": METHODS[method].settings if method in METHODS else None,
        "arms": Arms,
        "survival": Survival,
        "groups": groups_question.METHODS[unit].get(method),
        "outcomes": Arms if study.arms is not None else outcomes.METHODS.get(unit, {}).get(method),
    }
    return settings_from_values(method, question.settings, known.get(question.question))


def checked_arguments(study: Study, question: Ask) -> Arguments[Any]:
    """Return the arguments of the question, or raise what is wrong with them; nothing here looks at rows or budget."""
    kind = QUESTIONS[question.question]
    taken = {one.name for one in fields(kind)}
    for name, default in _DEFAULTS.items():
        if name not in taken and getattr(question, name) != default:
            raise _unfit(question, f"no {name}")
    known = ESTIMATORS.get(question.question, METHODS)
    if question.method not in known:
        raise _unfit(question, f"method: one of {', '.join(known)}")
    if question.question == "outcomes" and Unit(question.protects) is Unit.TREATMENT_AND_OUTCOME:
        raise _unfit(question, "protects: outcome or record")
    given = {name: getattr(question, name) for name in _DEFAULTS if name in taken}
    if question.summed:
        # Shares of summed noise are drawn in place of a plan's own.
        given["mechanism"] = None
    settings = _settings(question, study)
    given |= {"settings": settings} if "settings" in taken else {}
    arguments = kind(
        protects=question.protects,
        epsilon=question.epsilon,
        delta=question.delta,
        level=question.level,
        **given,
        **options_of(question),
    )
    arguments.checked(study)
    if question.measure in OF_MEANS and getattr(settings, "adjustment", None) == "covariates":
        raise no_means(question.method, "settings with adjustment='covariates'")
    robust = question.options.get("robust", ())
    if robust and (not question.summed or len(robust) > MOST_ROBUST):
        # Sites' own residuals are not those of a regression over all of them.
        raise _unfit(question, f"robust: at most {MOST_ROBUST} regressions, where parts are summed")
    if getattr(settings, "find_range", False):
        # The coordinator computes the noise of an answer again from the declared range.
        raise out_of_range("a federation", "find_range", "False", True)
    return arguments


def _unfit(question: Ask, expected: str) -> CounterveilError:
    what = f"a question about {question.question}"
    return refusal("CV-P600", what=what, expected=expected, got="another")


def _arguments(study: Study, request: SiteRequest) -> Arguments[Any]:
    """Return the same; what does not suit the estimator is refused before rows are read."""
    try:
        return replace(checked_arguments(study, request.ask), request_id=key_of(request))
    except _FAULTS:
        raise RefusedError(refusals.UNSUITABLE) from None


def _where(error: Exception) -> str:
    """Return the kind of an unexpected error and the lines it went through; its text may quote rows."""
    if isinstance(error, RefusedError):
        return ""
    steps = [
        f"{Path(step.filename).name}:{step.lineno}" for step in traceback.extract_tb(error.__traceback__)
    ]
    return f" ({type(error).__name__} at {' > '.join(steps)})"


def check_site(folder: Path) -> dict[str, Any]:
    """Return what a steward should know, or raise the first thing that is wrong."""
    file = SiteFile.read(folder)
    study = Study.from_toml(file.declaration)
    source = open_table(file.data, file.table)
    rows: int | str = "in a database, counted when asked"
    if source_in_database(source):
        check_columns(source, study)
    else:
        rows = rows_of_source(source, study).rows
    for name in (keys.AUTHORITY, keys.NODE_KEY, keys.AUTHORITY_OF_NODE, keys.CERTIFICATE, keys.SECRET):
        if not (file.keys / name).is_file():
            raise refusal("CV-P607", name=name)
        check_private(file.keys / name)
    keys.read_public_key(file.keys / keys.NODE_PUBLIC)
    Site(file).check_ledger()
    with open_ledger(file.ledger) as ledger:
        account = ledger.account(file.dataset)
    return {
        "site": file.name,
        "coordinator": file.coordinator,
        "declaration": study.fingerprint(),
        "rows": rows,
        "granted": str(account.budget),
        "left": str(account.remaining),
        "ledger": "sound",
        "policy": file.policy.to_document(),
    }

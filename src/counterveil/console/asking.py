"""Asking: a form, one page that says the price and what becomes public, and then the request itself."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from counterveil.accounting import Charter, Uses
from counterveil.accounting.accounts import check_request
from counterveil.bounded_reading import written_float
from counterveil.console.datasets import levels
from counterveil.console.refusals import coded, for_analysts
from counterveil.console.studies import same_study
from counterveil.console.visit import Page, Redirect, Visit
from counterveil.console.workspace import DataSet, StudyText
from counterveil.data import Range, Study
from counterveil.data.labels import Label, LabelIndex
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget, Unit, show
from counterveil.questions.arms import ArmsArguments
from counterveil.questions.asking import Arguments, Asked
from counterveil.questions.ate import AteArguments, method_names
from counterveil.questions.cate.cate import CateArguments
from counterveil.questions.curator import Curator
from counterveil.questions.event_study import EventStudyArguments
from counterveil.questions.groups.groups import GroupsArguments
from counterveil.questions.overlap import OverlapArguments
from counterveil.questions.policy.policy import Policy, PolicyValueArguments
from counterveil.questions.quantiles import QuantilesArguments
from counterveil.questions.survival import SurvivalArguments
from counterveil.questions.typed_settings import settings_from_text
from counterveil.results.question import Question

# What can be asked, how it is checked, and which fields of the form it takes beside level, price and name.
QUESTIONS: dict[str, tuple[str, type[Arguments[Any]], tuple[str, ...]]] = {
    "ate": ("the average effect", AteArguments, ("method", "estimand", "mechanism", "trim", "settings")),
    "groups": ("effects in subgroups", GroupsArguments, ("method", "mechanism", "by")),
    "arms": ("several arms against a reference", ArmsArguments, ("method", "mechanism")),
    "cate": ("the effect as a function of the covariates", CateArguments, ("method",)),
    "event_study": ("effects by period", EventStudyArguments, ("method", "estimand", "mechanism")),
    "policy_value": (
        "what a rule whom to treat would gain",
        PolicyValueArguments,
        ("method", "policy", "cost"),
    ),
    "overlap": ("how alike private arms are", OverlapArguments, ("mechanism",)),
    "quantiles": ("quantiles of both arms", QuantilesArguments, ("method", "mechanism")),
    "survival": ("survival of both arms", SurvivalArguments, ("method", "mechanism")),
}
FIELDS = (
    "question",
    "protects",
    "epsilon",
    "delta",
    "method",
    "estimand",
    "level",
    "mechanism",
    "trim",
    "settings",
    "by",
    "policy",
    "cost",
    "request",
)
# A second tab with the same form waits and gets the stored answer; another request waits once in many times.
_TURNS = tuple(threading.Lock() for _ in range(64))


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A request as a form gives it: to which data set, with which study, and what is asked."""

    data: DataSet
    text: StudyText
    study: Study
    given: dict[str, str]

    @property
    def kind(self) -> str:
        """The question."""
        return self.given["question"]

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return Unit.parse(self.given["protects"])

    def asked(self, **instead: Any) -> Asked[Any]:
        """Return the checked question, or raise its refusal; no row is read. `instead` takes the place of fields."""
        _, ask, names = QUESTIONS[self.kind]
        arguments: dict[str, Any] = {name: self.given[name] for name in names if self.given[name]}
        arguments |= {
            "protects": self.given["protects"],
            "epsilon": self.given["epsilon"],
            "delta": self.given["delta"] or "0",
            "level": _number(self.given["level"]),
            "request_id": self.given["request"],
        }
        if "by" in names and not instead:
            arguments["by"] = _groups(self.given["by"])
        if "trim" in names:
            arguments["trim"] = _limit(self.given["trim"])
        if "settings" in names:
            arguments["settings"] = settings_from_text(
                self.given["method"] or "auto", _words(self.given["settings"])
            )
        if "policy" in names and not instead:
            arguments["policy"] = _policy(self.given["policy"], self.study)
        arguments |= {name: value for name, value in instead.items() if name in names}
        return ask(**arguments).checked(self.study)

    def uses(self) -> Uses:
        """Return what the charter is compared with."""
        asked = Question.ask(
            protects=self.given["protects"],
            epsilon=self.given["epsilon"],
            delta=self.given["delta"] or "0",
            estimand="ATE",
            # A question that takes no method is its own.
            method=(self.given["method"] or "auto") if "method" in QUESTIONS[self.kind][2] else self.kind,
            level=_number(self.given["level"]),
            mechanism=None,
            request_id=None,
        )
        return asked.uses(self.study, self.kind)


def form(visit: Visit) -> Page:
    """Return the form of a request."""
    data, studies = visit.workspace.dataset(visit.path["key"]), visit.workspace.studies()
    given = {name: visit.word(name) for name in FIELDS}
    chosen = visit.word("study") or next(iter(studies), "")
    offer, refused = Offer(), None
    if chosen:
        try:
            text = visit.workspace.study(chosen)
            offer, refused = offered(FormRequest(data, text, text.study(), given))
        except CounterveilError as error:
            refused = error
    return Page(
        "ask.html",
        {
            "dataset": data,
            "levels": levels(data.account),
            "studies": studies,
            "chosen": chosen,
            "offer": offer,
            "refused": refused,
            "words": {name: words for name, (words, _, _) in QUESTIONS.items()},
            "given": given,
        },
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be asked with a study: questions, levels of protection and methods."""

    questions: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


def offered(wanted: FormRequest) -> tuple[Offer, CounterveilError | None]:
    """Return what the study and the account allow, and why not the usual question where it is not.

    Each is tried with the functions that decide about a request.
    """
    account, refused = wanted.data.account, None
    charter, face = account.charter, Budget(1)
    if charter is not None and charter.most_epsilon is not None:
        face = Budget(min(face.epsilon, charter.most_epsilon))
    found: list[tuple[str, str, str]] = []
    for question, unit, method in product(QUESTIONS, Unit, method_names()):
        own = {"question": question, "protects": unit.value, "method": method, "epsilon": str(face.epsilon)}
        tried = replace(wanted, given=dict.fromkeys(FIELDS, "") | own | {"level": "0.95"})
        try:
            tried.asked(**_example(wanted.study))
            check_request(charter, tried.uses(), face)
        except CounterveilError as error:
            refused = refused or error
            continue
        if account.left(unit).epsilon > 0:
            found.append((question, unit.value, method))
    parts = [tuple(dict.fromkeys(each)) for each in zip(*found, strict=True)]
    return Offer(*parts), None if found else refused


def _example(study: Study) -> dict[str, Any]:
    """Return groups and a rule that the study has, to try questions which need them."""
    for name, domain in study.covariates.items():
        if isinstance(domain, Range):
            low, high = float(domain.lo), float(domain.hi)
            return {"by": {name: [(low + high) / 2]}, "policy": Policy.where(**{name: (low, high)})}
        return {"by": {name: None}, "policy": Policy.where(**{name: [domain.labels[0]]})}
    return {"by": None, "policy": None}


def confirm(visit: Visit) -> Page:
    """Return the page that says what a request costs and what becomes public; nothing is spent yet."""
    wanted = _wanted(visit)
    if not wanted.given["request"]:
        wanted.given["request"] = f"{wanted.text.name}-{uuid.uuid4().hex[:8]}"
    asked = wanted.asked()
    uses, account = wanted.uses(), wanted.data.account
    with visit.workspace.opened(wanted.data.ledger) as book:
        state = book.state_of(account.dataset, wanted.given["request"])
        if state is None:
            book.check_offer(account.dataset, uses, asked.budget, wanted.given["request"])
    first = account.charter is None
    return Page(
        "confirm.html",
        {
            "wanted": wanted,
            "title": QUESTIONS[wanted.kind][0],
            "price": str(asked.budget),
            "left": str(account.left(wanted.unit)),
            "after": _after(wanted, asked.budget),
            "state": state,
            "public": wanted.study.public_facts(wanted.unit),
            "shown": uses.made_public,
            "fixes": Charter.of_study(uses).lines() if first else [],
        },
    )


def _after(wanted: FormRequest, budget: Budget) -> str | None:
    """Return what remains afterwards where budgets simply add up."""
    account = wanted.data.account
    left = account.left(wanted.unit)
    if account.rule != "sum" or budget.epsilon > left.epsilon or budget.delta > left.delta:
        return None
    delta = left.delta - budget.delta
    return f"epsilon {show(left.epsilon - budget.epsilon)}" + (f", delta {show(delta)}" if delta else "")


def spend(visit: Visit) -> Redirect:
    """Ask: charge the ledger and compute; the same form sent twice is charged once and gets one answer."""
    wanted = _wanted(visit)
    if not wanted.given["request"]:
        raise refusal("CV-W004", expected="the name of the request, as the page before showed it", got="none")
    # What was confirmed is what is asked: a study that changed since is not.
    same_study(wanted.text, visit.word("before"))
    asked = wanted.asked()
    try:
        with _TURNS[hash((wanted.data.key, wanted.given["request"])) % len(_TURNS)]:
            seq = _answer(visit, wanted, asked)
    except Exception as fault:
        # The text of a stranger's error may quote a cell.
        error = coded(fault)
        raise (error if visit.person.steward else for_analysts(error)) from None
    return Redirect(f"/data/{wanted.data.key}/requests/{seq}")


def _answer(visit: Visit, wanted: FormRequest, asked: Asked[Any]) -> int:
    """Return the number of the request in the ledger, answered now or before."""
    if wanted.data.source is None:
        raise refusal(
            "CV-W007", expected="a data set whose rows are in this folder", got="an account without rows"
        )
    name = wanted.data.account.dataset
    with visit.workspace.opened(wanted.data.ledger, inspect=False) as book:
        with Curator(
            wanted.data.source.open(),
            wanted.study,
            ledger=book,
            dataset=name,
            attach=asked.attach,
            analyst=visit.person.name,
        ) as curator:
            asked.answer(curator)
        return book.of_request(name, wanted.given["request"])[0].seq


def _wanted(visit: Visit) -> FormRequest:
    """Return the request in a form; only studies that the steward accepted can be asked with."""
    given = {name: visit.word(name) for name in FIELDS}
    if given["question"] not in QUESTIONS:
        raise refusal(
            "CV-W004", expected=f"question: one of {', '.join(QUESTIONS)}", got=repr(given["question"])
        )
    given["protects"] = Unit.parse(given["protects"]).value
    given["level"] = given["level"] or "0.95"
    text = visit.workspace.study(visit.word("study"))
    return FormRequest(visit.workspace.dataset(visit.path["key"]), text, text.study(), given)


def _number(text: str, name: str = "level") -> float:
    try:
        return written_float(text)
    except ValueError:
        raise refusal("CV-W004", expected=f"{name}: a number", got=repr(text)) from None


def _limit(text: str) -> float | str | None:
    """Return a limit on propensity scores: a number, a word, or None for no trimming."""
    return _number(text, "trim") if text not in ("", "optimal") else text or None


def _words(text: str) -> list[str]:
    """Return parts such as "neighbours = 2; caliper = 0.1" as the command line takes them, without spaces around."""
    parts = filter(str.strip, text.replace("\n", ";").split(";"))
    return ["=".join(side.strip() for side in part.split("=", 1)) for part in parts]


def _policy(text: str, study: Study) -> Policy:
    """Return the rule in words such as "age = 20, 50; site = north": from and below for numbers, labels otherwise."""
    conditions: dict[str, tuple[float, float] | list[Label]] = {}
    for name, points in _groups(text).items():
        domain = study.covariates.get(name)
        if domain is None or not points:
            raise refusal(
                "CV-W004",
                expected="rule: covariates of the study with values, such as age = 20, 50",
                got=repr(name),
            )
        if isinstance(domain, Range):
            if len(points) != 2:
                raise refusal(
                    "CV-W004", expected=f"rule: two numbers for {name}, from and below", got=f"{len(points)}"
                )
            conditions[name] = (_number(points[0], "rule"), _number(points[1], "rule"))
            continue
        index = LabelIndex(domain.labels)
        codes = [index.code(point) for point in points]
        if None in codes:
            raise refusal(
                "CV-W004", expected=f"rule: labels of {name} that the study declares", got="another label"
            )
        conditions[name] = [domain.labels[code] for code in codes if code is not None]
    if not conditions:
        raise refusal("CV-W004", expected="rule: at least one condition, such as age = 20, 50", got="none")
    return Policy.where(**conditions)


def _groups(text: str) -> dict[str, list[str] | None]:
    """Return covariates and their cut points from words such as "site; age = 40, 65"."""
    found: dict[str, list[str] | None] = {}
    for word in filter(str.strip, text.replace("\n", ";").split(";")):
        name, sign, points = word.partition("=")
        found[name.strip()] = [point.strip() for point in points.split(",")] if sign else None
    return found

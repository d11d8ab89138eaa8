"""Planning and asking: forms, the price and what becomes public, and then the request itself."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import counterveil.questions.plan as plans
from counterveil.accounting import AccessPolicy, Uses
from counterveil.accounting.accounts import check_request
from counterveil.bounded_reading import UnreadableError, parse_json, written_float
from counterveil.console.datasets import levels
from counterveil.console.studies import StudyLine, fitting, same_study, study_lines
from counterveil.console.visit import (
    FormFault,
    Page,
    Redirect,
    Visit,
    coded,
    fault_of_form,
    for_analysts,
    status_of,
    wrong,
)
from counterveil.console.workspace import DataSet, KeptReadings, StudyText
from counterveil.data import Range, Study
from counterveil.data.domains import Label, LabelIndex
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget, Unit, amounts
from counterveil.questions import session as questions
from counterveil.questions.asking import Asked
from counterveil.questions.ate import method_names, settings_from_text
from counterveil.questions.cate import cate_methods
from counterveil.questions.groups import ONE_SCORE
from counterveil.questions.policy import Policy
from counterveil.report.text import rounded
from counterveil.results.measures import MEASURES
from counterveil.results.question import Question
from counterveil.session import columns_to_publish

_LONGEST_FIELD = 4_000
# What a field of groups says of labels, each of which is one.
_WHOLE = "each"
_NAMED = ("auto", "difference_in_means", "weighting", "matching")


@dataclass(frozen=True, slots=True)
class Kind:
    """A question: its words, and the fields and methods it takes beside level, price and name."""

    words: str
    fields: tuple[str, ...]
    methods: tuple[str, ...] = ("auto",)


_FULL = ("method", "estimand", "measure", "mechanism")
_SOME, _SURVIVAL = ("method", "mechanism"), ("auto", "kaplan_meier", "stratified", "weighting")
QUESTIONS = {
    "ate": Kind("the average effect", (*_FULL, "trim", "settings"), method_names()),
    "outcomes": Kind("effects on several outcomes", _FULL, (*_NAMED, "trial", "doubly_robust")),
    "arms": Kind("several arms against a reference", _SOME, (*_NAMED, "doubly_robust")),
    "groups": Kind("effects in subgroups", (*_SOME, "by"), (*_NAMED, "adjusted", "arms")),
    "survival": Kind("survival of both arms", _SOME, _SURVIVAL),
    "event_study": Kind("effects by period", (*_SOME, "estimand"), _NAMED),
    "moments": Kind("regressions, as many as you like", ("mechanism", "terms")),
    "cate": Kind("effects as a function of covariates", ("method",), ("auto", *cate_methods())),
    "policy_value": Kind("value of a treatment rule", ("method", "policy", "cost"), (*_NAMED, *ONE_SCORE)),
    "overlap": Kind("covariate balance of private arms", ("mechanism",)),
    "quantiles": Kind("quantiles of both arms", (*_SOME, "grid"), ("auto", "trial", "weighting")),
}
FIELDS = (
    *("question", "protects", "epsilon", "delta", "method", "estimand", "measure", "level", "mechanism", "trim"),
    *("settings", "by", "terms", "policy", "cost", "grid", "request"),
)  # fmt: skip
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

    def words(self) -> list[tuple[str, str]]:
        """Return what was filled in, as a page says it."""
        cuts = "; ".join(
            name + (f": {', '.join(points)}" if points else "")
            for name, points in _cuts(self.given["by"]).items()
        )
        return [(name, value) for name, value in (self.given | {"by": cuts}).items() if value]

    def asked(self, **instead: Any) -> Asked[Any]:
        """Return the checked question, or raise its refusal; no row is read. `instead` takes the place of fields."""
        names = QUESTIONS[self.kind].fields
        arguments: dict[str, Any] = {name: self.given[name] for name in names if self.given[name]}
        arguments |= {
            "protects": self.given["protects"],
            "epsilon": self.given["epsilon"],
            "delta": self.given["delta"] or "0",
            "level": _number(self.given["level"]),
            "request_id": self.given["request"],
        }
        if "by" in names and not instead:
            arguments["by"] = _cuts(self.given["by"])
        if "terms" in names:
            arguments["terms"] = _parts(self.given["terms"])
        if "trim" in names:
            arguments["trim"] = _limit(self.given["trim"])
        if "settings" in names:
            arguments["settings"] = settings_from_text(
                self.given["method"] or "auto", _words(self.given["settings"])
            )
        if "policy" in names and not instead:
            arguments["policy"] = _policy(self.given["policy"], self.study)
        arguments |= {name: value for name, value in instead.items() if name in names}
        return questions.QUESTIONS[self.kind](**arguments).checked(self.study)

    def uses(self) -> Uses:
        """Return what the access policy is compared with."""
        asked = Question.ask(
            protects=self.given["protects"],
            epsilon=self.given["epsilon"],
            delta=self.given["delta"] or "0",
            estimand="ATE",
            # A question that takes no method is its own.
            method=(self.given["method"] or "auto") if "method" in QUESTIONS[self.kind].fields else self.kind,
            level=_number(self.given["level"]),
            mechanism=None,
            request_id=None,
        )
        return asked.uses(self.study, self.kind)


def form(visit: Visit, fault: FormFault | None = None) -> Page:
    """Return the form of a request as it was filled in: what study, policy and budget allow."""
    data = visit.workspace.dataset(visit.path["key"])
    lines = fitting(study_lines(visit), visit, data.source)
    studies = [line.name for line in lines if not line.open]
    given = _given(visit)
    chosen = visit.word("study") or next(iter(studies), "")
    offer, refused, groups = Offer(), None, []
    if chosen:
        try:
            text = visit.workspace.study(chosen)
            wanted = FormRequest(data, text, text.study(), given)
            left = [str(data.account.left(unit).epsilon > 0) for unit in Unit]
            key = "\n".join((text.name, text.text, repr(data.account.access_policy), *left))
            offer, refused = _OFFERS.of(key, lambda: offered(wanted))
            cuts, known = _cuts(given["by"]), wanted.study.covariates
            groups = [(name, isinstance(domain, Range), cuts) for name, domain in known.items()]
        except CounterveilError as error:
            refused = error
    given["question"] = _one_of(given["question"], offer.questions)
    given["protects"] = _one_of(given["protects"], offer.units(given["question"]))
    fields = QUESTIONS[given["question"]].fields if offer.found else ()
    facts = {"dataset": data, "levels": levels(data.account), "studies": studies, "chosen": chosen}
    facts |= {"offer": offer, "refused": refused, "kinds": QUESTIONS, "fields": fields, "groups": groups}
    facts |= {"measures": MEASURES, "given": given, "fault": fault}
    return Page("ask.html", facts, 200 if fault is None else status_of(fault.error))


def _one_of(given: str, offered: tuple[str, ...]) -> str:
    return given if given in offered else next(iter(offered), "")


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be asked with a study: every question, level of protection and method that go together."""

    found: tuple[tuple[str, str, str], ...] = ()

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions."""
        return tuple(dict.fromkeys(question for question, _, _ in self.found))

    def units(self, question: str) -> tuple[str, ...]:
        """Return the levels at which a question can be asked."""
        return tuple(dict.fromkeys(unit for asked, unit, _ in self.found if asked == question))

    def methods(self, question: str, unit: str) -> tuple[str, ...]:
        """Return the methods that answer a question at a level."""
        return tuple(method for *where, method in self.found if where == [question, unit])


_OFFERS: KeptReadings[tuple[Offer, CounterveilError | None]] = KeptReadings(100)


def offered(wanted: FormRequest) -> tuple[Offer, CounterveilError | None]:
    """Return what the study and the account allow, and why not the usual question where it is not.

    Each is tried with the functions that decide about a request.
    """
    account, refused = wanted.data.account, None
    access_policy, face = account.access_policy, Budget(1)
    if access_policy is not None and access_policy.max_epsilon is not None:
        face = Budget(min(face.epsilon, access_policy.max_epsilon))
    found: list[tuple[str, str, str]] = []
    for question, unit in product(QUESTIONS, Unit):
        for method in QUESTIONS[question].methods:
            own = {"question": question, "protects": unit.value, "method": method, "level": "0.95"}
            given = dict.fromkeys(FIELDS, "") | own | {"epsilon": str(face.epsilon)}
            try:
                tried = replace(wanted, given=given)
                tried.asked(**_example(wanted.study))
                check_request(access_policy, tried.uses(), face)
            except CounterveilError as error:
                refused = refused or error
                continue
            if account.left(unit).epsilon > 0:
                found.append((question, unit.value, method))
    return Offer(tuple(found)), None if found else refused


def _example(study: Study) -> dict[str, Any]:
    """Return groups and a rule that the study has, to try questions which need them."""
    for name, domain in study.covariates.items():
        if isinstance(domain, Range):
            low, high = float(domain.lo), float(domain.hi)
            return {"by": {name: [(low + high) / 2]}, "policy": Policy.where(**{name: (low, high)})}
        return {"by": {name: None}, "policy": Policy.where(**{name: [domain.labels[0]]})}
    return {"by": None, "policy": None}


def confirm(visit: Visit) -> Page:
    """Return the page that says what a request costs and what becomes public, or the form with what is wrong in it."""
    try:
        return _confirm(visit)
    except CounterveilError as error:
        return form(visit, fault_of_form(error, _checks(_given(visit))))


def _checks(given: dict[str, str]) -> dict[str, Callable[[], object]]:
    """Return what reads each field of the form alone."""
    return {
        "epsilon": lambda: Budget(given["epsilon"]),
        "delta": lambda: Budget(1, given["delta"] or "0"),
        "level": lambda: _level(given["level"]),
        "trim": lambda: _limit(given["trim"]),
    }


def _level(text: str) -> float:
    level = _number(text)
    if not 0 < level < 1:
        raise refusal("CV-P015", level=level)
    return level


def _confirm(visit: Visit) -> Page:
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
    first = account.access_policy is None
    return Page(
        "confirm.html",
        {
            "wanted": wanted,
            "title": QUESTIONS[wanted.kind].words,
            "asked": wanted.words(),
            "price": str(asked.budget),
            "left": str(account.left(wanted.unit)),
            "after": _after(wanted, asked.budget),
            "state": state,
            "public": wanted.study.public_facts(wanted.unit),
            "shown": uses.made_public,
            "fixes": AccessPolicy.of_study(uses).lines() if first else [],
        },
    )


def _after(wanted: FormRequest, budget: Budget) -> str | None:
    """Return what remains afterwards where budgets simply add up."""
    account = wanted.data.account
    left = account.left(wanted.unit)
    if account.rule != "sum" or budget.epsilon > left.epsilon or budget.delta > left.delta:
        return None
    return amounts(left.epsilon - budget.epsilon, left.delta - budget.delta)


def spend(visit: Visit) -> Redirect:
    """Ask: charge the ledger and compute; the same form sent twice is charged once and gets one answer."""
    wanted = _wanted(visit)
    if not wanted.given["request"]:
        raise wrong("the name of the request, as the page before showed it", "none")
    # What was confirmed is what is asked: a study that changed since is not.
    same_study(wanted.text, visit.word("before"))
    asked = wanted.asked()
    if wanted.data.account.access_policy is None and not visit.word("fixed"):
        raise wrong("the box beside what becomes public for good: ticked", "a box that is not ticked")
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
        # The page before listed what becomes public, and that this cannot be undone.
        confirmed = columns_to_publish(book, name, wanted.study, wanted.unit)
        book.publish(name, [column.name for column in confirmed])
        with questions.Session(
            wanted.data.source.open(),
            wanted.study,
            ledger=book,
            dataset=name,
            attach=asked.attach,
            analyst=visit.person.name,
        ) as session:
            asked.answer(session)
        return book.of_request(name, wanted.given["request"])[0].seq


def _wanted(visit: Visit) -> FormRequest:
    """Return the request in a form; only studies that the steward accepted can be asked with."""
    given = _given(visit)
    if given["question"] not in QUESTIONS:
        raise wrong(f"question: one of {', '.join(QUESTIONS)}", repr(given["question"]))
    given["protects"] = Unit.parse(given["protects"]).value
    text = visit.workspace.study(visit.word("study"))
    return FormRequest(visit.workspace.dataset(visit.path["key"]), text, text.study(), given)


def _given(visit: Visit) -> dict[str, str]:
    """Return the fields of a request as they were typed."""
    given = {name: visit.word(name, longest=_LONGEST_FIELD) for name in FIELDS}
    given["level"] = given["level"] or "0.95"
    # Each covariate has a field: that its labels make groups, or where a number is cut.
    split = {name.removeprefix("by-"): visit.word(name) for name in visit.form if name.startswith("by-")}
    cuts = {name: None if told == _WHOLE else _parts(told, ",") for name, told in split.items() if told}
    given["by"] = json.dumps(cuts) if cuts else given["by"]
    return given


def _number(text: str, name: str = "level") -> float:
    try:
        return written_float(text)
    except ValueError:
        raise wrong(f"{name}: a number", repr(text)) from None


def _limit(text: str) -> float | str | None:
    """Return a limit on propensity scores: a number, a word, or None for no trimming."""
    return _number(text, "trim") if text not in ("", "optimal") else text or None


def _words(text: str) -> list[str]:
    """Return parts such as "neighbours = 2; caliper = 0.1" as the command line takes them, without spaces around."""
    return ["=".join(side.strip() for side in part.split("=", 1)) for part in _parts(text)]


def _parts(text: str, sign: str = ";") -> list[str]:
    """Return what a sign separates, without spaces around."""
    return [part.strip() for part in text.replace("\n", sign).split(sign) if part.strip()]


def _policy(text: str, study: Study) -> Policy:
    """Return the rule in words such as "age = 20, 50; site = north": from and below for numbers, labels otherwise."""
    conditions: dict[str, tuple[float, float] | list[Label]] = {}
    for part in _parts(text):
        name, _, values = (side.strip() for side in part.partition("="))
        domain, points = study.covariates.get(name), _parts(values, ",")
        if domain is None or not points:
            raise wrong("rule: covariates of the study with values, such as age = 20, 50", repr(name))
        if isinstance(domain, Range):
            if len(points) != 2:
                raise wrong(f"rule: two numbers for {name}, from and below", f"{len(points)}")
            conditions[name] = (_number(points[0], "rule"), _number(points[1], "rule"))
            continue
        index = LabelIndex(domain.labels)
        codes = [index.code(point) for point in points]
        if None in codes:
            raise wrong(f"rule: labels of {name} that the study declares", "another label")
        conditions[name] = [domain.labels[code] for code in codes if code is not None]
    if not conditions:
        raise wrong("rule: at least one condition, such as age = 20, 50", "none")
    return Policy.where(**conditions)


def _cuts(text: str) -> dict[str, list[str] | None]:
    """Return covariates that make groups with their cut points, None for labels, as a hidden field carries them."""
    try:
        found = parse_json(text or "{}", _LONGEST_FIELD)
    except UnreadableError:
        found = None
    if not isinstance(found, dict) or not all(
        cut is None or (isinstance(cut, list) and all(isinstance(point, str) for point in cut))
        for cut in found.values()
    ):
        raise wrong("groups: covariates with their cut points", "something else")
    return found


# A page that somebody waits for: more people or studies belong on the command line.
_MOST_ROWS, _MOST_DRAWS, _MOST_EPSILONS = 200_000, 50, 12
# Of one simulated study, so that it fits into memory: people times columns.
_MOST_CELLS = 20_000_000
_USUAL = "0.1 0.2 0.5 1 2 5"
_FIELDS = ("rows", "epsilons", "delta", "draws", "effect", "sd", "estimand", "data")


def plan_form(visit: Visit) -> Page:
    """Return the form of a plan with nothing planned yet."""
    return _page(visit, None)


def plan(visit: Visit) -> Page:
    """Return what simulated studies would answer, or the form with what is wrong in it; nothing is spent."""
    try:
        return _page(visit, _plan(visit))
    except CounterveilError as error:
        checks: dict[str, Callable[[], object]] = {
            "rows": lambda: visit.whole("rows", 1000, _MOST_ROWS),
            "epsilons": lambda: [Budget(word) for word in _epsilons(visit)],
            "delta": lambda: Budget(1, visit.word("delta") or "0"),
            "effect": lambda: visit.number("effect", 0.0),
            "sd": lambda: visit.number("sd", 0.0),
            "draws": lambda: visit.whole("draws", 3, _MOST_DRAWS),
        }
        return _page(visit, None, fault_of_form(error, checks))


def _epsilons(visit: Visit) -> list[str]:
    words = (visit.word("epsilons") or _USUAL).replace(",", " ").split()
    if len(words) > _MOST_EPSILONS:
        raise wrong(f"at most {_MOST_EPSILONS} values of epsilon", f"{len(words)}")
    return words


def _plan(visit: Visit) -> list[plans.Plan]:
    """Return what simulated studies would answer; no private row is read."""
    study = visit.workspace.study(visit.path["name"], "proposed" in visit.form).study()
    rows, columns = visit.whole("rows", 1000, _MOST_ROWS), len(study.columns)
    if rows * columns > _MOST_CELLS:
        raise wrong(f"rows: at most {_MOST_CELLS // columns:,} with {columns} columns", f"{rows:,}")
    terms = {
        "rows": rows,
        "epsilon": _epsilons(visit),
        "delta": visit.word("delta") or 0,
        "assumed": plans.Assumptions(
            effect=visit.number("effect", 0.0),
            sd=visit.number("sd", 0.0) if visit.word("sd") else None,
        ),
        "draws": visit.whole("draws", 3, _MOST_DRAWS),
    }
    return _planned(study, visit.word("estimand") or "ATE", terms)


def _planned(study: Study, estimand: str, terms: dict[str, Any]) -> list[plans.Plan]:
    """Return plans of all levels: every method for an average effect, the automatic one for other questions."""
    question = "survival" if study.event is not None else "outcomes" if study.several is not None else "arms"
    if question == "arms" and study.arms is None:
        return [plans.plan(study, method=plans.ALL, estimand=estimand, **terms)]
    found: list[plans.Plan] = []
    refused: list[CounterveilError] = []
    for unit in Unit:
        try:
            found.append(plans.plan(study, question=question, protects=unit.value, **terms))
        except CounterveilError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _page(visit: Visit, found: list[plans.Plan] | None, fault: FormFault | None = None) -> Page:
    given = {name: visit.word(name) for name in _FIELDS}
    proposed = "proposed" in visit.form or "proposed" in visit.query
    text = visit.workspace.study(visit.path["name"], proposed)
    line = StudyLine(text.name, proposed, "", 0, frozenset(text.study().read_columns))
    datasets = [each for each in visit.workspace.datasets()[0] if fitting([line], visit, each.source)]
    chosen = next((each for each in datasets if each.key == given["data"]), None)
    loose = visit.workspace.loose() if visit.person.steward else {}
    given["epsilons"] = given["epsilons"] or _USUAL
    facts: dict[str, Any] = {
        "study": text,
        "given": given,
        "datasets": datasets,
        "chosen": chosen,
        "plan": None,
        "fault": fault,
    }
    facts["loose"] = [name for name, source in loose.items() if fitting([line], visit, source)]
    if found is not None:
        left = {} if chosen is None else {unit.value: chosen.account.left(unit) for unit in Unit}
        facts |= _compared([row for each in found for row in each.tidy()], left)
        views = [(each.protects, each.view()) for each in found]
        facts |= {"plan": views[0][1], "views": views, "compared": found[0].protects is None}
    return Page("plan.html", facts, 200 if fault is None else status_of(fault.error))


def _compared(rows: Iterable[dict[str, Any]], left: dict[str, Any]) -> dict[str, Any]:
    """Return a line for each level and method, with what each epsilon gives, and what lines assume by letters."""
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    letters: dict[str, str] = {}
    epsilons: dict[float, None] = {}
    for row in rows:
        epsilons[row["epsilon"]] = None
        line = lines.setdefault(
            (row["protects"], row["method"]), {"cells": {}, "points": [], "assumptions": [], "chosen": False}
        )
        half = row["half_width"]
        line["chosen"] |= row["chosen_by_auto"]
        if half is None or half == float("inf"):
            line["cells"][row["epsilon"]] = str(row["refusal"] or "no end").partition(":")[0]
            continue
        mark = " *" * row["chosen_by_auto"]
        line["cells"][row["epsilon"]] = rounded(half, half) + mark
        line["points"].append([row["epsilon"], half])
        letter = letters.setdefault(row["assumptions"], chr(ord("a") + len(letters)))
        line["assumptions"] += [letter] if letter not in line["assumptions"] else []
    budgets = {level: float(budget.epsilon) for level, budget in left.items()}
    return {
        "epsilons": list(epsilons),
        "lines": [
            line | {"protects": level, "method": method, "left": budgets.get(level)}
            for (level, method), line in lines.items()
        ],
        "letters": {letter: text for text, letter in letters.items()},
    }

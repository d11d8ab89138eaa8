"""How a question is declared once and asked everywhere; Table 1, which is free of charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import repeat
from math import isfinite, sqrt
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Ledger
from counterveil.data import Binary, Categories, Range, Study, Table, check_study, silence
from counterveil.data.effect_formula import without_ranges
from counterveil.data.study import read_declared
from counterveil.data.unknown_arguments import known_arguments, refuse_arguments
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, one_thread
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.questions.choices import Protects, repeat_of
from counterveil.results.measures import refuse_range as refuse_range_of
from counterveil.results.question import Question, missing_caveats, with_trends
from counterveil.results.released import ReleasedAnswer
from counterveil.session import BaseSession, BitSource

# Cells that are worked on at once: short columns together, since each step costs more than its numbers.
_CELLS = 1 << 14


@silence()
def table_one(table: Table) -> dict[str, Any] | None:
    """Return means and standard deviations of numbers, and shares of labels, by arm; None without covariates.

    Standardised differences are those of the last arm and the first, in the root of their mean variance. Only for
    questions that protect outcomes: everything here is read off covariates and treatments as they are.
    """
    domains = table.study.covariates
    if not domains:
        return None
    inside = {arm: np.flatnonzero(where) for arm, where in _arms(table).items()}
    shown = {kind: _by_arm(table, kind, list(inside.values())) for kind in (Range, Binary)}
    rows: list[dict[str, Any]] = []
    for name, domain in domains.items():
        if isinstance(domain, Categories):
            codes = table.covariates[name].astype(np.intp)
            counts = [np.bincount(codes[arm], minlength=len(domain.labels)) for arm in inside.values()]
            sizes = [max(len(arm), 1) for arm in inside.values()]
            shares = [(count / size).tolist() for count, size in zip(counts, sizes, strict=True)]
            for label, *found in zip(domain.labels, *shares, strict=True):
                rows.append(_share(f"{name} = {label}", found))
        elif isinstance(domain, Range):
            means, sds = map(list, zip(*shown[Range][name], strict=True))
            rows.append(
                {"covariate": name, "means": means, "sds": sds, "difference": _difference(means, sds)}
            )
        else:
            rows.append(_share(name, [mean for mean, _ in shown[Binary][name]]))
    arms = [{"name": arm, "rows": len(own)} for arm, own in inside.items()]
    return {"arms": arms, "covariates": rows}


def _by_arm(table: Table, kind: type, arms: list[NDArray[np.intp]]) -> dict[str, list[tuple[float, float]]]:
    """Return mean and standard deviation in each arm of all covariates of one kind, several columns at a time."""
    names = [name for name, domain in table.study.covariates.items() if isinstance(domain, kind)]
    found: dict[str, list[tuple[float, float]]] = {}
    together = max(1, _CELLS // max(1, table.rows))
    for start in range(0, len(names), together):
        own = names[start : start + together]
        values = np.array([table.covariates[name] for name in own])
        figures = (_of_rows(values.take(arm, axis=1), kind is Range) for arm in arms)
        found |= zip(own, map(list, zip(*figures, strict=True)), strict=True)
    return found


def _of_rows(part: Floats, spread: bool) -> Iterable[tuple[float, float]]:
    """Return the mean of every row, and its standard deviation where that is wanted."""
    count = part.shape[1]
    means = np.add.reduce(part, axis=1) / np.intp(count)
    if not spread or count < 2:
        return zip(means.tolist(), repeat(0.0, len(part)), strict=True)
    part -= means[:, None]
    part *= part
    return zip(means.tolist(), np.sqrt(np.add.reduce(part, axis=1) / (count - 1)).tolist(), strict=True)


def _arms(table: Table) -> dict[str, Any]:
    """Return which rows are in which arm: treated and control, or all arms with the reference first."""
    if table.study.arms is None:
        return {"treated": table.treated, "control": ~table.treated}
    return {str(label): table.arm == code for code, label in enumerate(table.study.treatment_labels)}


def _share(name: str, shares: list[float]) -> dict[str, Any]:
    sds = [sqrt(share * (1 - share)) for share in shares]
    return {"covariate": name, "means": shares, "sds": None, "difference": _difference(shares, sds)}


def _difference(means: list[float], sds: list[float]) -> float | None:
    """Return the difference of two arms in standard deviations; of several, the largest from the first of them."""
    found = [_standardised(means[0], sds[0], *other) for other in zip(means[1:], sds[1:], strict=True)]
    if len(found) == 1:
        return found[0]
    known = [-one for one in found if one is not None]
    return max(known, key=abs) if len(known) == len(found) else None


def _standardised(mean: float, sd: float, other_mean: float, other_sd: float) -> float | None:
    gap, scale = mean - other_mean, sqrt((sd**2 + other_sd**2) / 2)
    if gap == 0:
        return 0.0
    return gap / scale if scale > 0 and isfinite(gap / scale) else None


Answer = TypeVar("Answer")
Found = TypeVar("Found", covariant=True)
P = ParamSpec("P")
# Arguments that open a session.
_OPENING = ("ledger", "dataset", "noise")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Answer]):
    """A question that was checked without looking at data: what it may spend, and how a session answers it.

    `attach` says whether rows are attached when a session is opened for this question alone.
    """

    budget: Budget
    compute: Callable[[BaseSession], Answer]
    attach: bool = True

    def answer(self, session: BaseSession) -> Answer:
        """Return the answer of a session; it says whom rules for missing values leave out, and what changes assume."""
        found = self.compute(session)
        if not isinstance(found, ReleasedAnswer):
            return found
        lost, changes = missing_caveats(session.study), session.study.before is not None
        if not lost and not changes:
            return found
        treated = getattr(found, "estimand", None) is Estimand.ATT
        said = (*lost, *with_trends(session.study, found.not_covered, treated))
        method = f"difference in differences: {found.method}" if changes else found.method
        return replace(found, method=method, not_covered=said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments(ABC, Generic[Answer]):
    """The arguments of a question, beside data and study, as they were given; every question has a class of them.

    Its docstring is that of its function. What opens a session is no argument of one that is open.
    """

    name: ClassVar[str]
    units: ClassVar[tuple[Unit, ...]] = (Unit.OUTCOME, Unit.RECORD)
    protects: Protects
    epsilon: Number
    delta: Number = 0
    level: float = 0.95
    ledger: str | Path | Ledger | None = None
    dataset: str | None = None
    request_id: str | None = None
    noise: BitSource | None = None

    @abstractmethod
    def checked(self, study: Study) -> Asked[Answer]:
        """Return the checked question; nothing here looks at data or budget."""

    @property
    def unit(self) -> Unit:
        """What is protected; raises CV-P018 where the question has no form for it."""
        unit = Unit.parse(self.protects)
        if unit not in self.units:
            raise refusal("CV-P018c", question=self.name, unit=unit.value)
        return unit

    def question(
        self,
        method: str,
        mechanism: str | None = None,
        settings: Any = None,
        *,
        estimand: str = "ATE",
        trim: float | str | None = None,
        measure: str = "difference",
    ) -> Question:
        """Return the question of an estimator, or raise the error of the first argument that is out of range."""
        if self.unit is Unit.TREATMENT_AND_OUTCOME and mechanism is not None:
            raise refusal("CV-P010b", unit=self.unit.value, mechanism=mechanism)
        return Question.ask(
            protects=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            estimand=estimand,
            method=method,
            level=self.level,
            mechanism=mechanism,
            request_id=self.request_id,
            settings=settings,
            trim=trim,
            measure=measure,
        )

    def given(self) -> dict[str, Any]:
        """Return what is protected, and the arguments that are not what they are without being named."""
        found = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {
            name: value
            for name, (value, usual) in found.items()
            if name not in _OPENING and (name == "protects" or not _is_usual(value, usual))
        }


def _is_usual(value: object, usual: object) -> bool:
    """Return whether an argument is its default; the command line passes numbers as text."""
    return value is usual or (usual is not None and str(value) in (str(usual), f"{usual}.0"))


def ask_of(session: BaseSession, arguments: Arguments[Answer]) -> Answer:
    """Return the answer of an open session."""
    asked = arguments.checked(session.study)
    # Once for all parts: each of them looks at rows, and ends up silent if it is not already.
    with silence(), one_thread():
        return _for_reports(asked.answer(session), session, arguments)


def method_of(make: Callable[P, Arguments[Answer]]) -> Callable[Concatenate[BaseSession, P], Answer]:
    """Return the method that asks an open session; it takes the fields of the question's class, and says so."""

    def ask(self: BaseSession, /, *args: P.args, **named: P.kwargs) -> Answer:
        refuse_arguments(kind.name, own, named, len(args))
        return ask_of(self, make(*args, **named))

    kind: Any = make
    own = signed(ask, kind, [Parameter("self", Parameter.POSITIONAL_ONLY)], _answer_of(kind), _OPENING)
    ask.__qualname__ = f"Session.{kind.name}"
    said = kind.__doc__.partition("\n")[0].removesuffix(".")
    ask.__doc__ = f"{said}; see `counterveil.{kind.name}` for the arguments."
    return ask


def question_of(make: Callable[P, Arguments[Answer]]) -> Asks[P, Answer]:
    """Return the function that asks data of a study; it takes the fields of the question's class, and says so."""

    def ask(data: object, study: Study, *args: P.args, **named: P.kwargs) -> Answer:
        return ask_once(make(*args, **named), data, study)

    first = [
        Parameter("data", Parameter.POSITIONAL_OR_KEYWORD, annotation=object),
        Parameter("study", Parameter.POSITIONAL_OR_KEYWORD, annotation=Study),
    ]
    signed(ask, make, first, _answer_of(make))
    return asks(cast("Any", ask))  # both may be named


def _answer_of(kind: Any) -> Any:
    return get_args(get_type_hints(kind.checked)["return"])[0]


def signed(
    call: Any, kind: Any, first: list[Parameter], answer: Any, without: tuple[str, ...] = ()
) -> Mapping[str, Parameter]:
    """Give a function name, text and signature of a question: `first`, then its fields, those of ledgers last."""
    own, hints = signature(kind).parameters.values(), get_type_hints(kind)
    kept = [each for each in own if each.name not in without]
    kept.sort(key=lambda each: (each.name in (*_OPENING, "request_id"), each.default is not Parameter.empty))
    call.__module__, call.__name__, call.__qualname__ = kind.__module__, kind.name, kind.name
    call.__doc__, call.__signature__ = kind.__doc__, Signature([*first, *kept], return_annotation=answer)
    types = {each.name: hints.get(each.name, each.annotation) for each in (*first, *kept)}
    call.__annotations__ = {name: one for name, one in types.items() if name != "self"} | {"return": answer}
    return {each.name: each for each in kept}


def _for_reports(found: Answer, session: BaseSession, arguments: Arguments[Answer]) -> Answer:
    """Return an answer with what reports add: how to ask for it again and, where they are public, covariates by arm."""
    if not isinstance(found, ReleasedAnswer):
        return found
    repeat = repeat_of(arguments.name, session.study, arguments.given(), session.simulated)
    if not found.guarantee.unit.treatment_public:
        # Of several arms or outcomes there is no summary to ask for.
        two = session.study.arms is None and session.study.several is None
        return replace(found, repeat=repeat, by_arm={} if two and session.study.covariates else None)
    rows = session.in_memory
    by_arm = None if rows is None else rows.once("table one", lambda: table_one(rows))
    return replace(found, repeat=repeat, by_arm=by_arm)


class _PublicColumns(BaseSession):
    """A session of one question with public covariates, which ends before anybody writes to them."""

    borrows = True


def ask_once(arguments: Arguments[Answer], data: object, study: Study) -> Answer:
    """Return the answer of a session for one question."""
    # Everything that can be refused without looking at the data is refused first.
    check_study(study)
    asked = arguments.checked(study)
    ledger, account, noise = arguments.ledger, arguments.dataset, arguments.noise
    own = None if ledger is not None else asked.budget
    opened = _PublicColumns if arguments.unit.covariates_public else BaseSession
    with (
        silence(),
        one_thread(),
        opened(
            data, study, budget=own, ledger=ledger, dataset=account, noise=noise, attach=asked.attach
        ) as session,
    ):
        named = arguments if ledger is not None else replace(arguments, request_id=None)
        return _for_reports(asked.answer(session), session, named)


class Asks(Protocol[P, Found]):
    """The function of a question: of data and a study, or of a formula, data and what declares its columns."""

    @overload
    def __call__(self, data: object, study: Study, *args: P.args, **named: P.kwargs) -> Found: ...
    @overload
    def __call__(self, formula: str, data: object, study: object, /, **named: Any) -> Found: ...


def asks(ask: Callable[Concatenate[object, Study, P], Found]) -> Asks[P, Found]:
    """Return the function of a question, which takes a formula before the data too and refuses other arguments."""
    checked: Any = known_arguments(ask)

    @wraps(ask)
    def call(*args: Any, **named: Any) -> Found:
        places = [*args, *(named[key] for key in ("data", "study") if key in named)]
        _refuse_formula(places)
        if len(places) != 3:
            found: Found = checked(*args, **named)
            return found
        formula, data, declared = places
        declared = read_declared(declared)
        rest = {key: one for key, one in named.items() if key not in ("data", "study")}
        said = {"assignment"} & set(rest) if isinstance(declared, Mapping) else ()
        design = {key: rest.pop(key) for key in said}
        return call(data, Study.from_formula(formula, declared, **design), **rest)

    return cast("Asks[P, Found]", call)


def _is_formula(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and "~" in value


def _refuse_formula(places: Sequence[object]) -> None:
    """Raise CV-S015 for a formula that came without what declares its columns, or after the data."""
    if any(isinstance(each, Study) for each in places):
        return
    if len(places) > 1 and _is_formula(places[1]):
        raise refusal("CV-S015g", formula=places[1])
    if len(places) == 2 and _is_formula(places[0]):
        raise without_ranges(places[0], places[1])


def with_smaller_noise(
    session: BaseSession, question: Question, variance: Callable[[str], float]
) -> Question:
    """Return the question with the smaller of pure and Gaussian noise where the mechanism was left open.

    A ledger that adds up Gaussian noise counts pure noise dearly, and keeps it.
    """
    if question.mechanism != "gaussian" or not question.open_noise or session.account().rule != "sum":
        return question
    return replace(question, mechanism=min(("gaussian", "staircase"), key=variance))


def refuse_range(study: Study, measure: str) -> None:
    """Raise CV-P686 where the range of outcomes allows numbers that the measure has no meaning for."""
    low, high = study.outcome_range
    more = "" if study.denominator is None else f", denominator={study.denominator.column!r}"
    more += "" if study.before is None else ", the range of a change"
    # What is divided by has an interval of its own.
    refuse_range_of(measure, (float(low), float(high)), divided=study.denominator is not None, more=more)

"""How a question is asked: of data once or of an open session, with its arguments as a checked declaration.

A *question* (`ate`, `outcomes`, ...) is a function, decorated by `asks`, beside a frozen dataclass of its
arguments. `Arguments.checked(study)` refuses what cannot be answered and reads neither rows nor ledger; what
it returns, `Asked`, is the budget (epsilon, delta) and a function that answers on an open session. `ask_once`
opens a session for one question. In: data, a study that declares public ranges and roles, arguments. Out: the
released answer.

The class is what the command line, plans and the text of a repeated call read; tests hold it and the
signature of the function equal. Because all refusals here come from public numbers, they say nothing about a
person and cost nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeGuard, TypeVar, cast

from counterveil.accounting import Ledger
from counterveil.data import Study, check_study, silence
from counterveil.data.effect_formula import without_ranges
from counterveil.data.study import read_declared
from counterveil.data.unknown_arguments import known_arguments
from counterveil.errors import refusal
from counterveil.numerics.arrays import one_thread
from counterveil.privacy import Budget, Estimand, Number, Unit
from counterveil.questions.choices import Protects, repeat_of
from counterveil.questions.table_one import table_one
from counterveil.results.measures import refuse_range as refuse_range_of
from counterveil.results.question import Question, missing_caveats, with_trends
from counterveil.results.released import ReleasedAnswer
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource

Answer = TypeVar("Answer")
F = TypeVar("F", bound=Callable[..., Any])
# Arguments that say what is asked about; the third only after a formula.
_LEADING = ("data", "study", "declared")
# What people write for arguments of one question that are called otherwise, and what to write in their place.
_ASSUMED = (
    "mean",
    "sd",
    "effect",
    "explained",
    "confounding",
    "share",
    "binary",
    "correlation",
    "covariates",
    "denominator",
    "sample",
)
_RENAMED: dict[str, dict[str, str]] = {
    "plan": {
        **{name: f"assumed=cv.Assumptions({name}=...)" for name in _ASSUMED},
        "lost": 'question="survival", assumed=cv.Assumptions(censoring_rate=0.2)',
        **dict.fromkeys(("n", "nobs", "sample_size"), "rows=500"),
        "together": "assumed=cv.Assumptions(outcome_correlation=0.5)",
        "complying": "assumed=cv.Assumptions(compliance_rate=0.7)",
        "tell": "progress=",
        **dict.fromkeys(
            ("test", "margin", "higher_is_better"), 'decision=cv.Decision("noninferiority", margin=0.05)'
        ),
        **{
            name: f'options={{"{name}": ...}}'
            for name in ("by", "policy", "formula", "received", "spending", "grid", "importance")
        },
    },
    "quantiles": dict.fromkeys(("shares", "q", "quantiles"), "probs=(0.25, 0.5, 0.75)"),
}
# What may be declared beside a formula and public ranges, as `cv.Study` takes it.
_DECLARED = ("assignment", "people", "clusters", "missing", "where")
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
        lost, changes = missing_caveats(session.study.missing_kinds), session.study.before is not None
        if not lost and not changes:
            return found
        treated = getattr(found, "estimand", None) is Estimand.ATT
        said = (*lost, *with_trends(session.study, found.not_covered, treated))
        method = f"difference in differences: {found.method}" if changes else found.method
        return replace(found, method=method, not_covered=said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments(ABC, Generic[Answer]):
    """The arguments of a question, beside data and study, as they were given; every question has a class of them.

    Its fields are the parameters of its function beside data and study. What opens a session is no argument of one
    that is open.
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


def _for_reports(found: Answer, session: BaseSession, arguments: Arguments[Answer]) -> Answer:
    """Return an answer with what reports add: how to ask for it again and, where they are public, covariates by arm."""
    if not isinstance(found, ReleasedAnswer):
        return found
    repeat = repeat_of(arguments.name, session.study, arguments.given(), session.simulated)
    if not found.guarantee.unit.treatment_public:
        # Of several arms or outcomes there is no summary to ask for.
        two = session.study.arms is None and session.study.several is None
        return replace(found, repeat=repeat, by_arm={} if two and session.study.covariates else None)
    rows = PublicData(session, found.guarantee.unit).columns_at_hand
    by_arm = None if rows is None else rows.cached("table one", lambda: table_one(rows))
    return replace(found, repeat=repeat, by_arm=by_arm)


class _PublicColumns(BaseSession):
    """A session of one question with public covariates, which ends before anybody writes to them."""

    borrows = True


def ask_once(arguments: Arguments[Answer], data: object, study: object) -> Answer:
    """Return the answer of a session that is opened for one question."""
    # Everything that can be refused without looking at the data is refused first.
    check_study(study)
    declared = cast("Study", study)
    asked = arguments.checked(declared)
    budget = asked.budget if arguments.ledger is None else None
    session_class = _PublicColumns if arguments.unit.covariates_public else BaseSession
    with (
        silence(),
        one_thread(),
        session_class(
            data,
            declared,
            budget=budget,
            ledger=arguments.ledger,
            dataset=arguments.dataset,
            noise=arguments.noise,
            attach=asked.attach,
        ) as session,
    ):
        # Without a ledger nobody can ask for the same request again.
        named = arguments if arguments.ledger is not None else replace(arguments, request_id=None)
        return _for_reports(asked.answer(session), session, named)


def asks(function: F) -> F:
    """Return the function of a question as users call it, with its own signature and docstring.

    It takes a formula before the data too: then `data`, `study` and `declared` are the formula, the rows and what
    declares their columns. Arguments that it does not have are refused with CV-P028.
    """
    checked = refuses_unknown(function)

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if "declared" in named and named["declared"] is None:
            del named["declared"]
        leading = [*args, *(named[key] for key in _LEADING if key in named)]
        _refuse_formula(leading)
        if len(leading) != len(_LEADING):
            return checked(*args, **named)
        formula, data, declared = leading
        declared = read_declared(declared)
        others = {key: value for key, value in named.items() if key not in _LEADING}
        design = {}
        if isinstance(declared, Mapping):
            taken = signature(function).parameters
            design = {key: others.pop(key) for key in _DECLARED if key in others and key not in taken}
        return call(data, Study.from_formula(formula, declared, **design), **others)

    return cast("F", call)


def refuses_unknown(function: F) -> F:
    """Return the function with its own signature and docstring; arguments that it does not have are CV-P028."""
    checked, hints = known_arguments(function), _RENAMED.get(function.__name__, {})

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        for key in named:
            if key in hints:
                raise refusal("CV-P028", name=function.__qualname__, key=key, ours=hints[key])
        return checked(*args, **named)

    return cast("F", call)


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
    more = "" if study.denominator is None else f", a ratio to {study.denominator.column!r}"
    more += "" if study.before is None else ", the range of a change"
    # What is divided by has an interval of its own.
    refuse_range_of(measure, (float(low), float(high)), divided=study.denominator is not None, more=more)

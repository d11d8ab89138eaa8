"""A question as an answer repeats it, and its settings as the ledger compares them.

A request id stands for one request: the ledger keeps a description of the question, and refuses the id for another
one. Settings are described by their values. A learner, a rule or a model of the caller's own is described by the name
that the caller gave it: whoever changes the object gives it another name. No code is looked at, so that the same
call gives the same description in every process and with every version of Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from types import FunctionType
from typing import Any, Self

import numpy as np

from counterveil.accounting import Uses
from counterveil.data import Study
from counterveil.data.domains import Label
from counterveil.data.follow_up import refuse_censored
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget, Estimand, Guarantee, Number, Proof, Protected, Unit
from counterveil.privacy.caveats import (
    REPLACED_BY_TRENDS,
    Caveat,
    Fact,
    KnownScore,
    OtherEstimand,
    ParallelTrends,
    RowsLeftOut,
    ValuesFilled,
)
from counterveil.report.answer_words import CLUSTERS_REMARK
from counterveil.results.effect import check_level
from counterveil.session import BaseSession, Plan, Request, choose_mechanism
from counterveil.settings.methods import Settings


def described(value: Any, name: str | None = None, request_id: str | None = None) -> Any:
    """Return a setting as JSON: plain values as they are, an object of the caller's own by the `name` it was given.

    A request id stands for one request, so an object without a name is refused where there is one (CV-C010).
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return described(value.tolist(), name, request_id)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Fraction | Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [described(item, name, request_id) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: described(item, name, request_id) for key, item in value.items()}
    if isinstance(value, Settings):
        return {"is": type(value).__name__} | settings_described(value, request_id)
    if name is not None:
        return {"name": name}
    kind = value if isinstance(value, FunctionType | type) else type(value)
    called = f"{kind.__module__}.{kind.__qualname__}"[:200]
    if request_id is not None:
        raise refusal("CV-C010", called=called)
    return {"is": called}


def settings_described(settings: Any, request_id: str | None) -> Any:
    """Return a method's settings field by field, None where there are none.

    A field `name` is what objects among the settings are described by, and is left out itself.
    """
    if settings is None:
        return None
    name = getattr(settings, "name", None)
    kept = [field.name for field in fields(settings) if field.name != "name"]
    return {each: described(getattr(settings, each), name, request_id) for each in kept}


# Within these, squares of noise and of outcomes are double-precision numbers, and so are their squares.
LEAST_EPSILON, LARGEST_OUTCOME = Fraction(1, 10**12), Fraction(10**50)


@dataclass(frozen=True, slots=True)
class Question:
    """The public arguments of one estimate."""

    unit: Unit
    budget: Budget
    estimand: Estimand
    method: str
    level: float
    mechanism: str
    request_id: str | None
    settings: Any = None
    open_noise: bool = False  # the mechanism was left to the library
    trim: float | str | None = None  # propensity scores that are kept, at outcome level
    measure: str = "difference"  # the scale of the answer
    look: int | None = None  # which of the planned looks at incoming data
    own_method: Any = None  # a method of the analyst's own, an object

    @classmethod
    def ask(
        cls,
        *,
        protects: str,
        epsilon: Number,
        delta: Number,
        estimand: str,
        method: str,
        level: float,
        mechanism: str | None,
        request_id: str | None,
        settings: Any = None,
        trim: float | str | None = None,
        measure: str = "difference",
    ) -> Self:
        """Return the question, or raise the error of the first argument that is out of range."""
        budget = Budget(epsilon, delta)
        _check_trim(trim, Unit.parse(protects))
        return cls(
            unit=Unit.parse(protects),
            budget=budget,
            estimand=Estimand.parse(estimand),
            method=method,
            level=check_level(level),
            mechanism=choose_mechanism(budget, mechanism),
            request_id=request_id,
            settings=settings,
            open_noise=mechanism is None,
            trim=trim,
            measure=measure,
        )

    def in_pure_noise(self, rule: str = "sum") -> Self:
        """Return the question with pure noise if the mechanism was left open: it is the smaller for few numbers.

        A pure guarantee is one for every delta. A ledger whose `rule` adds up Gaussian noise counts pure noise dearly.
        """
        return replace(self, mechanism="staircase") if self.open_noise and rule == "sum" else self

    def terms(self, study: Study) -> dict[str, Any]:
        """Return what an answer repeats of its question: what it spends, its level, and the columns it is about."""
        return {
            "spent": self.budget,
            "treatment": study.treatment,
            "outcome": study.outcome_name,
            "level": self.level,
        }

    def effect_terms(self, study: Study) -> dict[str, Any]:
        """Return the same for an answer of one effect: whose it is, and what it can be at all."""
        width = float(study.outcome_range[1] - study.outcome_range[0])
        return self.terms(study) | {"estimand": self.estimand, "limits": (-width, width)}

    def uses(self, study: Study, question: str = "ate") -> Uses:
        """Return what the ledger compares with the account's access policy: columns by role, level, method, form.

        A question without an interval that holds for clustered data is refused here (CV-S026): every question passes.
        """
        refuse_censored(study.event, question)
        refuse_shape(study, self.unit, question)
        refuse_clusters(study, question, self.method, self.unit)
        found = uses_of(study, self.unit, question, self.method)
        return found if self.look is None else replace(found, look=self.look)

    def request(self, plan: Plan, study: Study, *, question: str = "ate", **said: object) -> Request:
        """Return the request that the ledger sees: the plan and a public description, with what else is `said`."""
        description: dict[str, object] = {
            "question": question,
            "method": self.method,
            "estimand": self.estimand.value,
            "protects": self.unit.value,
            "level": self.level,
            "mechanism": self.mechanism,
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "study": study.fingerprint(),
            "settings": settings_described(self.settings, self.request_id),
        }
        if self.trim is not None:
            description["trim"] = self.trim
        if self.measure != "difference":
            description["measure"] = self.measure
        return Request(plan, description | said, self.uses(study, question), self.request_id)

    def guarantee(
        self,
        session: BaseSession,
        pages: str | tuple[str, ...],
        remarks: tuple[str, ...] = (),
        proof: Proof = Proof.FINITE_SAMPLE,
        mechanisms: tuple[str, ...] | None = None,
        reference: Label | None = None,
    ) -> Guarantee:
        """Return the guarantee for this question, proved on `pages`; simulated noise guarantees nothing.

        The pages of the `mechanisms` of noise are added: that of the question's mechanism where None is given.
        `reference` is the period of an event study.
        """
        proved = (pages,) if isinstance(pages, str) else pages
        person, whose = session.study.person, Protected.ROW
        several = len(session.study.outcomes) > 1 or session.study.before is not None
        proved = (*proved, "data/outcomes.proof.md") if several else proved
        if person is not None:
            whose = Protected.CLUSTER if person.whole_cluster else Protected.PERSON
            proved = (*proved, "data/person.proof.md")
        if whose is Protected.CLUSTER:
            remarks = (*remarks, CLUSTERS_REMARK)
        proved = proved if session.study.where is None else (*proved, "data/where.proof.md")
        drawn = (self.mechanism,) if mechanisms is None else mechanisms
        return Guarantee(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            unit=self.unit,
            proof=Proof.NONE if session.simulated else proof,
            public=session.study.public_facts(self.unit, reference),
            pages=tuple(dict.fromkeys((*proved, *session.noise_pages(drawn)))),
            remarks=(*remarks, *session.remarks(self.unit)),
            whose=whose,
            several=several,
        )


def uses_of(study: Study, unit: Unit, question: str, method: str) -> Uses:
    """Return what a question about a study uses: its columns by role, level and method."""
    return study._once(("uses", unit, question, method), lambda: _uses_of(study, unit, question, method))


def _uses_of(study: Study, unit: Unit, question: str, method: str) -> Uses:
    return Uses(
        unit=unit,
        question=question,
        method=method,
        treatment=study.treatment,
        outcome=study.outcome,
        covariates=tuple(study.covariates),
        missing=study.missing_kinds,
        **study.unit_uses,
        more_outcomes=study.outcomes[1:],
        subsets=study.subsets,
        subset_columns=() if study.where is None else study.where.columns,
    )


# What is estimated with an interval that holds where people of one cluster depend on each other.
CLUSTERED_METHODS: dict[Unit, tuple[str, ...]] = {
    Unit.OUTCOME: ("auto", "difference_in_means", "weighting", "matching"),
    Unit.RECORD: ("auto", "trial", "arms"),
}


def refuse_clusters(study: Study, question: str, method: str, unit: Unit) -> None:
    """Raise CV-S026 where an interval would take people of one cluster for independent."""
    if study.cluster is None or study.cluster.whole:
        return
    trial = unit.treatment_public or study.randomised is True
    if (
        question in ("ate", "groups")
        and study.denominator is None
        and method in CLUSTERED_METHODS.get(unit, ())
        and trial
    ):
        return
    outcome, record = (" or ".join(map(repr, methods)) for methods in CLUSTERED_METHODS.values())
    design = "" if trial else ", not declared randomised"
    design += "" if study.denominator is None else f", a ratio over {study.denominator.column!r}"
    raise refusal(
        "CV-S026",
        outcome=outcome,
        record=record,
        question=question,
        method=method,
        unit=unit.value,
        cluster=study.cluster.column,
        design=design,
        fix="take one of these; or cv.Clusters(..., protected=True): each cluster is one row, for every method"
        if question != "plan"
        else "plan with cv.Clusters(..., protected=True): rows= is the number of clusters, sd= that of their means",
    )


def refuse_shape(study: Study, unit: Unit, question: str = "ate") -> None:
    """Raise what a level has no form for: CV-P018 with pairs and other rows than of one pair, CV-P031 for a score."""
    if study.score is not None and not unit.covariates_public:
        raise refusal("CV-P031", score=study.score, unit=unit.value)
    if unit is not Unit.TREATMENT_AND_OUTCOME:
        return
    by_arm = study.where is not None and study.treatment in study.where.columns
    made = {
        "clusters=": study.cluster is not None,
        "people=": study.person is not None,
        "a change": study.before is not None,
        "a ratio": study.denominator is not None,
        "several arms": study.arms is not None and question != "arms",
        "several outcomes": study.several is not None and question != "outcomes",
        "a baseline": study.several is not None and bool(study.several.baseline),
        f"where= by {study.treatment!r}": by_arm,
    }
    for what, found in made.items():
        if found:
            raise refusal("CV-P018d", what=what, unit=unit.value)


def too_few_clusters(column: str, expected: str, got: str) -> CounterveilError:
    """Return CV-S066; how many clusters there are is public."""
    return refusal("CV-S066", column=column, expected=expected, got=got)


# The fewest clusters that are rows: a t interval for one difference in means, normal ones else.
_FEWEST_CLUSTERS, _FEWEST_FOR_OTHERS = 6, 20


def refuse_few_clusters(study: Study, question: str, method: str, rows: int, where: str = "") -> None:
    """Raise CV-S066 where whole clusters are rows, and too few for the question's interval; their number is public.

    `where` names the part of them that has the interval.
    """
    cluster = study.cluster
    if cluster is None or not cluster.whole:
        return
    student = (question, method) == ("ate", "difference_in_means") and study.denominator is None
    fewest = _FEWEST_CLUSTERS if student else _FEWEST_FOR_OTHERS
    if rows < fewest:
        expected = (
            f"at least {fewest} clusters{where} for {question} with method={method!r} and protected clusters"
        )
        raise too_few_clusters(cluster.column, expected, f"{rows}")


def _check_trim(trim: float | str | None, unit: Unit) -> None:
    """Raise CV-P669 for a limit that is none, and CV-P668 where propensity scores are private."""
    if trim is None:
        return
    number = isinstance(trim, int | float) and not isinstance(trim, bool) and 0 < trim < 0.5
    if not number and not (isinstance(trim, str) and trim == "optimal"):
        raise refusal("CV-P669", trim=trim)
    if not unit.treatment_public:
        raise refusal("CV-P668", unit=unit.value)


def refuse_extremes(study: Study, budget: Budget) -> None:
    """Raise CV-P641 or CV-P642 where noise, or squares of outcomes, would not be double-precision numbers."""
    least, most = LEAST_EPSILON, 1 / LEAST_EPSILON
    if not least <= budget.epsilon <= most:
        raise refusal("CV-P641", least=float(least), most=float(most), budget=budget)
    bounds = study.outcome_bounds
    if max(-bounds.lo, bounds.hi) > LARGEST_OUTCOME or bounds.width < 1 / LARGEST_OUTCOME:
        raise refusal(
            "CV-P642",
            outcome=study.outcome,
            largest_outcome=float(LARGEST_OUTCOME),
            least_width=float(1 / LARGEST_OUTCOME),
            lo=float(bounds.lo),
            hi=float(bounds.hi),
        )


_ELSEWHERE = {
    "aipw": "doubly_robust",
    "dml": "doubly_robust",
    "dr": "doubly_robust",
    "cross_fitting": "cross_fit",
    "iptw": "ipw",
    "irm": "doubly_robust",
    "plr": "doubly_robust",
    "psm": "matching",
    "nearest": "matching",
    "optimal": "matching",
    "genetic": "matching",
    "full": "weighting",
    "ebal": "weighting",
    "cbps": "weighting",
    "subclass": "stratified",
    "km": "kaplan_meier",
    "cem": "stratified",
    "exact_matching": "stratified",
    "dim": "difference_in_means",
}


def _called_here(method: object, known: Sequence[str]) -> str:
    """Return what a method of another name is called here, an empty text where it is not among the known ones."""
    if not isinstance(method, str):
        return ""
    found = _ELSEWHERE.get(method.lower().replace("-", "_").replace(" ", "_"))
    return f"here it is called {found!r}; " if found in known else ""


def refuse_unknown_method(method: str, known: Sequence[str], where: str = "") -> None:
    """Raise CV-P016 where no method of that name answers the question; `where` says for which questions they do."""
    if not isinstance(method, str) or method not in known:
        raise refusal(
            "CV-P016",
            known=" or ".join(map(repr, known)),
            where=where,
            method=method,
            hint=_called_here(method, known),
        )


def refuse_other_settings(question: Question, wanted: type | None) -> None:
    """Raise CV-P019 where the question's settings are not of the type that its method takes."""
    if question.settings is not None and (wanted is None or not isinstance(question.settings, wanted)):
        raise refusal(
            "CV-P019b",
            expected=f"settings of type {wanted.__name__}"
            if wanted
            else f"no settings for method={question.method!r}",
            kind=type(question.settings).__name__,
        )


def refuse_overlap(question: Question) -> None:
    """Raise CV-P401 where the overlap-weighted effect is asked of a method that estimates others."""
    if question.estimand is Estimand.ATO:
        raise refusal("CV-P401c", method=question.method, unit=question.unit.value)


def causal_caveats(study: Study, estimand: Estimand) -> tuple[Fact, ...]:
    """Return what an unadjusted comparison does not cover, from what the study declares."""
    if study.randomised is not True:
        return Caveat.NOTHING_ADJUSTED, Caveat.CLAMPING
    return (Caveat.CLAMPING, *(() if estimand is Estimand.ATE else (OtherEstimand(estimand),)))


def adjusted_caveats(study: Study, *own: Fact) -> tuple[Fact, ...]:
    """Return what a comparison adjusted for the covariates does not cover, among it what is its own."""
    open_to = () if study.randomised is True else (Caveat.CONFOUNDING,)
    return (*open_to, *own, Caveat.CLAMPING)


def design_says(study: Study) -> Fact | None:
    """Return what an answer assumes that needs no model: the declared score, nothing in a trial."""
    return None if study.score is None else KnownScore(study.score)


def default_estimand(study: Study, estimand: str | None) -> Estimand:
    """Return whose effect is meant: everyone's unless said, and that of the treated where trends are compared.

    Parallel trends say what the treated would have had without treatment, and nothing about the others with it.
    """
    if estimand is not None:
        return Estimand.parse(estimand)
    return Estimand.ATT if study.before is not None and study.randomised is not True else Estimand.ATE


def missing_caveats(kinds: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return what rules for missing values take away from an answer: whom they leave out, and what they fill in.

    `kinds` holds "drop" or "fill" by the name of a column.
    """
    left_out = tuple(name for name, kind in kinds.items() if kind == "drop")
    filled = tuple(name for name, kind in kinds.items() if kind == "fill")
    found: list[Fact] = [RowsLeftOut(left_out)] if left_out else []
    return (*found, *((ValuesFilled(filled),) if filled else ()))


def with_trends(study: Study, not_covered: tuple[Fact, ...], treated: bool) -> tuple[Fact, ...]:
    """Return what intervals do not cover, with what a comparison of changes assumes in place of no confounding.

    `treated` says that the effect is that of the treated alone; for others, more is assumed.
    """
    if study.before is None or study.randomised is True:
        return not_covered
    adjusted = bool(study.covariates) and Caveat.NOTHING_ADJUSTED not in not_covered
    trends = ParallelTrends(study.outcome, adjusted, of_untreated=not treated)
    return (trends, *(one for one in not_covered if one not in REPLACED_BY_TRENDS))


def refuse_undeclared_trial(study: Study) -> None:
    """Raise CV-S050 where the automatic choice would have to compare arms that nobody declared randomised."""
    if study.randomised is not True:
        raise refusal("CV-S050")

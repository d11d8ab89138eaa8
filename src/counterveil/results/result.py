"""The answer to a question: an effect, its uncertainty, its promise and its price."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from counterveil.inference import Uncertainty
from counterveil.privacy import Budget, Estimand, Guarantee, Proof
from counterveil.report import html_page, latex_table, text_summary, write_up
from counterveil.results.estimated import (
    Ends,
    Estimated,
    around,
    ends_from,
    estimate_facts,
    estimate_row,
    uncertainty_from_dict,
    uncertainty_to_dict,
    within,
)
from counterveil.results.saved import reads_facts

# What results share: the promise, the price, and how they are shown.


_ASKED = ("method", "treatment", "outcome", "level")


class Told:
    """What a notebook shows as its text, not as its parts, where it stands alone in a cell."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))


class Promised(Told):
    """A result of one request: what it promises, what was released for it, what it cost."""

    __slots__ = ()

    guarantee: Guarantee
    spent: Budget
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str]

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed, so that nothing is promised."""
        return self.guarantee.proof is Proof.NONE


class Answered(Promised):
    """A result that says how it was made and about what."""

    __slots__ = ()

    method: str
    treatment: str
    outcome: str
    level: float


class Shown(Told):
    """A result that can be shown as text, LaTeX and HTML."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        raise NotImplementedError

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every effect."""
        return self.to_dict()

    def to_latex(self) -> str:
        """Return a booktabs table of the effects with their errors and intervals, and the promise."""
        return latex_table(self.report_facts())

    def write_up(self) -> str:
        """Return a paragraph for a paper: what was estimated, what is promised, found and not covered."""
        return write_up(self.report_facts())

    def to_html(self, path: str | Path) -> Path:
        """Write a self-contained page with the effects, their intervals and the promise; return its path."""
        target = Path(path)
        target.write_text(html_page(self.report_facts()), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return text_summary(self.report_facts())


def opening_facts(guarantee: Guarantee, **said: str | None) -> dict[str, Any]:
    """Return what is read first, where there is any: a promise that is less than proved, then what is `said`."""
    return {name: text for name, text in ({"warning": guarantee.warning} | said).items() if text}


def promise_facts(result: Promised) -> dict[str, Any]:
    """Return promise, price and releases as JSON-ready facts; `promise_from_dict` reads them back."""
    return {
        "guarantee": result.guarantee.to_dict(),
        "spent": result.spent.to_dict(),
        "releases": [list(release) for release in result.releases],
        "not_covered": list(result.not_covered),
        "details": result.details,
    }


def promise_from_dict(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that `promise_facts` wrote."""
    return {
        "guarantee": Guarantee.from_dict(facts["guarantee"]),
        "spent": Budget.from_dict(facts["spent"]),
        "releases": tuple((name, text) for name, text in facts["releases"]),
        "not_covered": tuple(facts["not_covered"]),
        "details": dict(facts["details"]),
    }


def answer_facts(result: Answered) -> dict[str, Any]:
    """Return what was asked, and the promise, as JSON-ready facts; `answer_from_dict` reads them back."""
    return {name: getattr(result, name) for name in _ASKED} | promise_facts(result)


def answer_from_dict(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that `answer_facts` wrote."""
    return {name: facts[name] for name in _ASKED} | promise_from_dict(facts)


def promise_row(guarantee: Guarantee, spent: Budget) -> dict[str, float | str]:
    """Return promise and price as columns of a data frame."""
    return {
        "epsilon": float(spent.epsilon),
        "delta": float(spent.delta),
        "protects": guarantee.unit.value,
        "proof": guarantee.proof.value,
    }


class OneEffect(Estimated, Shown):
    """One released effect, of one table or pooled from several."""

    __slots__ = ()

    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    treatment: str
    outcome: str
    interval_of: str | None

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        One for the effect is cut to what the outcome's declared range allows; one for something else is not.
        """
        ends = self.uncut_interval(level)
        return ends if self.interval_of is not None else within(ends, self.limits)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.uncertainty.p_value(self.estimate, self.level)


def one_effect_row(one: OneEffect) -> dict[str, float | str]:
    """Return the effect, its interval and its promise with the names that `broom` uses."""
    low, high = one.interval()
    return (
        {"term": one.treatment, "estimand": one.estimand.value}
        | estimate_row(one.estimate, one.std_error, one.p_value)
        | {"conf.low": low, "conf.high": high, "conf.level": one.level}
        | {"conf.of": one.interval_of or "the effect"}
        | promise_row(one.guarantee, one.spent)
    )


def one_effect_facts(one: OneEffect) -> dict[str, Any]:
    """Return what was asked, the effect and its intervals as JSON-ready facts."""
    low, high = around(one.estimate, one.uncertainty.naive_half_width(one.level))
    return (
        {"estimand": one.estimand.value, "treatment": one.treatment, "outcome": one.outcome}
        | estimate_facts(one.estimate, one.std_error, one.level, one.interval())
        | {"interval_without_noise": {"low": low, "high": high}, "p_value": one.p_value}
    )


@dataclass(frozen=True, slots=True)
class Result(OneEffect, Promised):
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `details` are single figures, `diagnostics` tables (balance, overlap): where covariates and
    treatments are public they are free, at record level they are not shown. `interval_of` is None where
    the interval is one for the effect; otherwise it says what the interval is for instead, and every
    rendering starts by saying that there is none for the effect. `condition` is None for intervals that
    stand by themselves; otherwise it says under which declared bound an unadjusted one covers, and every
    rendering starts with it. `variance_apart` says that the variance was released with noise of its own,
    sharing none with the estimate, or that it is public: only then may it make the weight of a site.
    `limits` are what an effect can be at all, plus or minus the width of the outcome's declared range: intervals
    for the effect are cut to them, while `estimate`, `std_error` and `uncertainty` are as released.
    """

    estimate: float
    uncertainty: Uncertainty
    guarantee: Guarantee
    spent: Budget
    estimand: Estimand
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    interval_of: str | None = None
    condition: str | None = None
    variance_apart: bool = False
    limits: Ends | None = None

    @property
    def caution(self) -> str | None:
        """What every rendering says first: that no interval is for the effect, or what one depends on."""
        if self.interval_of is not None:
            return f"NO VALID INTERVAL FOR THE EFFECT: the interval is for {self.interval_of}"
        return None if self.condition is None else f"NOT ADJUSTED: {self.condition}"

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row with the names that `broom` uses, ready for a data frame."""
        return [one_effect_row(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `Result.from_dict` reads them back."""
        said = {"caution": self.caution, "interval_of": self.interval_of, "condition": self.condition}
        facts = opening_facts(self.guarantee, **said) | {"method": self.method} | one_effect_facts(self)
        return facts | self._kept()

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return {
            "method": self.method,
            "estimand": self.estimand.value,
            "treatment": self.treatment,
            "outcome": self.outcome,
            "estimate": self.estimate,
            "interval": {"level": self.level},
            "interval_of": self.interval_of,
            "condition": self.condition,
        } | self._kept()

    def _kept(self) -> dict[str, Any]:
        known = self.uncertainty
        return promise_facts(self) | {
            "diagnostics": self.diagnostics,
            "uncertainty": uncertainty_to_dict(known)
            | {"variance_apart": self.variance_apart, "extra": known.extra, "bias": known.bias}
            | {"limits": None if self.limits is None else list(self.limits)},
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> Result:
        """Return the result written by `to_dict` or `stored`."""
        known = facts["uncertainty"]
        return cls(
            estimate=facts["estimate"],
            uncertainty=replace(uncertainty_from_dict(known), extra=known["extra"], bias=known["bias"]),
            estimand=Estimand(facts["estimand"]),
            method=facts["method"],
            treatment=facts["treatment"],
            outcome=facts["outcome"],
            level=facts["interval"]["level"],
            diagnostics=dict(facts["diagnostics"]),
            interval_of=facts.get("interval_of"),
            condition=facts.get("condition"),
            variance_apart=known["variance_apart"],
            limits=ends_from(known["limits"]),
            **promise_from_dict(facts),
        )

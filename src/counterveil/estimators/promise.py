"""What results share: the promise, the price, and how they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.privacy import Budget, Guarantee, Proof
from counterveil.report import html_page, latex_table, text_summary, write_up

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

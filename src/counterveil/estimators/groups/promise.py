"""What all results about groups, policies and curves share: the promise, the price, and the words about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.privacy import Budget, Guarantee, Proof
from counterveil.report import html_page, latex_table, text_summary


class Promised:
    """A result with a promise: what every rendering of it needs. Its facts come from `to_dict`."""

    __slots__ = ()

    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str]

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed, so that nothing is promised."""
        return self.guarantee.proof is Proof.NONE

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        raise NotImplementedError

    def to_latex(self) -> str:
        """Return a booktabs table of the effects, and the promise."""
        return latex_table(self.to_dict())

    def to_html(self, path: str | Path) -> Path:
        """Write a self-contained page with a forest plot of the effects and their promise; return its path."""
        target = Path(path)
        target.write_text(html_page(self.to_dict()), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return text_summary(self.to_dict())


def promise_to_dict(result: Promised) -> dict[str, Any]:
    """Return the shared facts, JSON-ready; where the promise is less than proved, the warning comes first."""
    warning = result.guarantee.warning
    return ({"warning": warning} if warning else {}) | {
        "method": result.method,
        "treatment": result.treatment,
        "outcome": result.outcome,
        "level": result.level,
        "guarantee": result.guarantee.to_dict(),
        "spent": result.spent.to_dict(),
        "releases": [list(release) for release in result.releases],
        "not_covered": list(result.not_covered),
        "details": result.details,
    }


def promise_from_dict(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the shared arguments that `promise_to_dict` wrote."""
    kept = {name: facts[name] for name in ("method", "treatment", "outcome", "level")}
    return kept | {
        "guarantee": Guarantee.from_dict(facts["guarantee"]),
        "spent": Budget.from_dict(facts["spent"]),
        "releases": tuple((name, text) for name, text in facts["releases"]),
        "not_covered": tuple(facts["not_covered"]),
        "details": dict(facts["details"]),
    }

"""Effects of an offer and of taking it up, in a trial whose people do not all comply with their assignment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from counterveil.report import View, compliance_view
from counterveil.results.regression import Coefficient, Regression, finite
from counterveil.results.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Compliance(Shown):
    """Three effects from one release: of assignment on the outcome and on receipt, and of receipt for compliers.

    The last is a ratio of the first two (Angrist, Imbens, Rubin 1996); its interval holds however few comply.
    """

    assigned: str
    received: str
    outcome: str
    on_outcome: Regression
    on_receipt: Regression
    two_stage: Regression

    @property
    def intention_to_treat(self) -> Coefficient:
        """The effect of assignment on the outcome."""
        return replace(self.on_outcome.coefficient(self.assigned), name="intention to treat")

    @property
    def take_up(self) -> Coefficient:
        """The effect of assignment on receipt: the share of compliers."""
        return replace(self.on_receipt.coefficient(self.assigned), name="take-up")

    @property
    def complier_effect(self) -> Coefficient:
        """The effect of receipt on the outcome of compliers, with an Anderson-Rubin interval."""
        return replace(self.two_stage.coefficient(self.received), name="complier effect")

    @property
    def table(self) -> tuple[Coefficient, ...]:
        """The three effects."""
        return self.intention_to_treat, self.take_up, self.complier_effect

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect, with the names that R's `broom` uses, dots replaced by underscores."""
        fits = (self.on_outcome, self.on_receipt, self.two_stage)
        names = (self.assigned, self.assigned, self.received)
        found = []
        for one, fit, name in zip(self.table, fits, names, strict=True):
            row = next(row for row in fit._rows() if row["term"] == name)
            found.append(row | {"effect": one.name})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; an end that is unbounded is None."""
        found: dict[str, Any] = finite(self.report_facts())
        return found

    def report_facts(self) -> dict[str, Any]:
        """Return the same with unbounded ends as infinite numbers, for what is printed."""
        shared = self.two_stage.report_facts()
        kept = (
            "warning",
            "rows",
            "level",
            "first_stage",
            "weak",
            "anderson_rubin",
            "guarantee",
            "spent",
            "not_covered",
        )
        return {name: shared[name] for name in kept if name in shared} | {
            "assigned": self.assigned,
            "received": self.received,
            "outcome": self.outcome,
            "effects": [one.facts() for one in self.table],
        }

    def view(self, full: bool = False) -> View:
        """Return what is shown: the three effects, what they assume, the guarantee."""
        return compliance_view(self.report_facts(), full)

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name} {one.estimate:.4g}" for one in self.table)
        return f"<Compliance with {self.assigned}: {shown}; {self.two_stage.spent}>"

"""What an audit says, as text and as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from counterveil.privacy import Budget

# What one attack found, and the three verdicts.


class Verdict(StrEnum):
    """The outcome of an audit; nothing is `passed` unless the same attack caught a weakened copy."""

    VIOLATED = "violated"
    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"


class Quantity(StrEnum):
    """Which half of the claim a lower bound is about."""

    EPSILON = "epsilon"
    DELTA = "delta"
    DIFFERENCES = "differences"  # channels in which two runs differ that should show the same


# Log densities and sums are floats; a claim met with equality must not fail in the last digits.
ROUNDING = 1e-9

# A numerical error above this share of the claim decides nothing.
COARSE = 1e-3


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound on the true epsilon (or delta) of one mechanism on one pair of neighbours.

    `found` is the bound, `claimed` what it is held against, `confidence` the probability with which
    the bound is right (1 for bounds that involve no chance), `accuracy` the numerical uncertainty above
    `found`, and `witness` says in words where the bound was found.
    """

    tester: str
    quantity: Quantity
    found: float
    claimed: float
    confidence: float
    witness: str
    accuracy: float = 0.0

    @property
    def violated(self) -> bool:
        """Whether the claim is broken."""
        return self.found > self.claimed * (1 + ROUNDING)

    @property
    def resolved(self) -> bool:
        """Whether the numerical uncertainty is small enough to decide anything."""
        return self.accuracy <= COARSE * self.claimed

    @property
    def verdict(self) -> Verdict:
        """Violated or inconclusive: one attack alone has shown no power, so it can never pass anything."""
        return Verdict.VIOLATED if self.violated else Verdict.INCONCLUSIVE

    def to_dict(self) -> dict[str, str | float | bool]:
        """Return the finding as JSON-ready facts; an infinite bound becomes the text `infinite`."""
        return {
            "tester": self.tester,
            "quantity": self.quantity.value,
            "found": self.found if math.isfinite(self.found) else "infinite",
            "claimed": self.claimed,
            "confidence": self.confidence,
            "accuracy": self.accuracy,
            "witness": self.witness,
            "violated": self.violated,
        }


_HEADINGS = ("tester", "measures", "claim", "found", "found at 1/3 noise", "verdict")

_SENTENCES = {
    Verdict.VIOLATED: "the claim is broken: a true lower bound lies above it",
    Verdict.PASSED: "no tester broke the claim, and each of them broke a copy with a third of the noise",
    Verdict.INCONCLUSIVE: "no violation was found, but the audit lacks the power or the accuracy to rule one out",
}


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One tester: its strongest finding on the mechanism, on the weakened copy, and the verdict."""

    tester: str
    ours: LowerBound
    weakened: LowerBound
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts, in the order of the table's headings."""
        return (
            self.tester,
            self.ours.quantity.value,
            f"{self.ours.claimed:.4g}",
            _bound(self.ours.found),
            _bound(self.weakened.found),
            self.verdict.value,
        )


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings of all testers against one claim; `print` shows the table."""

    name: str
    claim: Budget
    rows: tuple[AuditRow, ...]
    pairs: int
    confidence: float

    @property
    def verdict(self) -> Verdict:
        """Violated if any tester says so; passed only if all of them do."""
        verdicts = {row.verdict for row in self.rows}
        if Verdict.VIOLATED in verdicts:
            return Verdict.VIOLATED
        return Verdict.PASSED if verdicts == {Verdict.PASSED} else Verdict.INCONCLUSIVE

    @property
    def passed(self) -> bool:
        """Whether every tester passed the mechanism and showed its power."""
        return self.verdict is Verdict.PASSED

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready facts."""
        return {
            "name": self.name,
            "claim": self.claim.to_dict(),
            "pairs": self.pairs,
            "confidence": self.confidence,
            "verdict": self.verdict.value,
            "testers": [
                {
                    "tester": row.tester,
                    "verdict": row.verdict.value,
                    "ours": row.ours.to_dict(),
                    "weakened": row.weakened.to_dict(),
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        cells = [_HEADINGS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[k]) for line in cells) for k in range(len(_HEADINGS))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells
        ]
        rule = "-" * len(lines[0])
        plural = "s" if self.pairs != 1 else ""
        title = f"Audit of {self.name}: {self.claim}; {self.pairs} pair{plural} of neighbours"
        witnesses = [
            f"  {row.tester}: {row.ours.witness}" for row in self.rows if row.verdict is Verdict.VIOLATED
        ]
        end = [f"{self.verdict.value.upper()}: {_SENTENCES[self.verdict]}", *witnesses, self._certainty()]
        return "\n".join(
            [title, rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule, *end]
        )

    def _certainty(self) -> str:
        if all(row.ours.confidence == 1 for row in self.rows):
            return "These bounds are deterministic."
        return f"The bounds hold together with probability {self.confidence:g} or more."


def _bound(value: float) -> str:
    return f">= {value:.4g}" if math.isfinite(value) else "infinite"

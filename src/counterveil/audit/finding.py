"""What one attack found, and the three verdicts there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The outcome of an audit; nothing is `passed` unless the same attack caught a weakened copy."""

    VIOLATED = "violated"
    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"


class Quantity(StrEnum):
    """Which half of the claim a lower bound is about."""

    EPSILON = "epsilon"
    DELTA = "delta"


# Log densities and sums are floats; a claim met with equality must not fail in the last digits.
ROUNDING = 1e-9

# A numerical error above this share of the claim decides nothing.
COARSE = 1e-3


@dataclass(frozen=True, slots=True)
class Finding:
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

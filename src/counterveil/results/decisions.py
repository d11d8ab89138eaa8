"""Decisions from one released number and its interval: tests against margins, and confidence curves.

A test is met where the interval of its level lies beyond the margin: both come from the same convolution of sampling
error and noise. Proof: `decisions.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any, Literal

import numpy as np

from counterveil.errors import refusal
from counterveil.numerics.arrays import Ends
from counterveil.report.measures import margin_sentence

SUPERIORITY, NONINFERIORITY, EQUIVALENCE = "superiority", "noninferiority", "equivalence"
TestKind = Literal["superiority", "noninferiority", "equivalence"] | str
KINDS = (SUPERIORITY, NONINFERIORITY, EQUIVALENCE)
# How far a confidence curve reaches, in half-widths of the interval.
_REACH = 1.8


Verdict = Literal["met", "contradicted", "inconclusive"]


@dataclass(frozen=True, slots=True, repr=False)
class MarginTest:
    """Whether an effect lies inside `bounds`, of which one may be infinite.

    Attributes:
        kind: "superiority", "noninferiority" or "equivalence".
        bounds: what the effect is shown to lie between.
        estimate, interval, level: of the effect; the test has the error (1 - level) / 2.
        p_value: one-sided, the larger of two for equivalence; compare it with `alpha`.
    """

    kind: str
    bounds: Ends
    estimate: float
    interval: Ends
    level: float
    p_value: float

    @property
    def alpha(self) -> float:
        """The one-sided error of the test: 2.5% at a level of 95%, 5% at 90%."""
        return (1 - self.level) / 2

    @property
    def met(self) -> bool:
        """Whether the effect is shown to lie inside the bounds."""
        return self.p_value <= self.alpha

    @property
    def verdict(self) -> Verdict:
        """What the test says: "met", "contradicted" where no part of the interval is inside, else "inconclusive"."""
        if self.met:
            return "met"
        (low, high), (least, most) = self.bounds, self.interval
        return "contradicted" if most < low or least > high else "inconclusive"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; a bound or an end that is none is None."""
        ends = {
            name: [end if isfinite(end) else None for end in pair]
            for name, pair in (("bounds", self.bounds), ("interval", self.interval))
        }
        estimate = self.estimate if isfinite(self.estimate) else None
        said = {"estimate": estimate, "alpha": self.alpha, "met": self.met, "verdict": self.verdict}
        return asdict(self) | ends | said

    def __str__(self) -> str:
        return margin_sentence(self.to_dict())

    def __repr__(self) -> str:
        return f"<MarginTest: {self}>"


class Decided:
    """A number with one interval: what it may be tested against."""

    __slots__ = ()

    def _p_at(self, value: float, level: float | None) -> float:
        """Return the two-sided p-value of a value, variances as for an interval of `level`."""
        raise NotImplementedError

    def _ends(self, level: float | None) -> tuple[float, Ends, float]:
        """Return the estimate, the interval of a level, and the level."""
        raise NotImplementedError

    @property
    def _null(self) -> float:
        """The value of no effect: 1 on the scale of ratios."""
        return 0.0

    def test(
        self,
        kind: TestKind = SUPERIORITY,
        *,
        margin: float | Sequence[float] | None = None,
        higher_is_better: bool = True,
        level: float | None = None,
    ) -> MarginTest:
        """Return a test against a margin; free.

        Args:
            kind: "superiority" (better by more than the margin), "noninferiority" (worse by less than it) or
                "equivalence" (two one-sided tests; margin may be two bounds).
            margin: in units of the effect, on the scale of ratios a ratio such as 0.8 or 1.25. Omitted, superiority
                is any effect.
            higher_is_better: False where a lower outcome is.
            level: of the interval that must lie beyond the margin; the result's if omitted. One-sided error
                (1 - level) / 2.
        """
        low, high = bounds = margin_bounds(kind, margin, higher_is_better, self._null)
        estimate, ends, chosen = self._ends(level)
        sides = [
            self._above(sign * (estimate - bound) > 0, bound, chosen)
            for bound, sign in ((low, 1), (high, -1))
            if isfinite(bound)
        ]
        return MarginTest(kind, bounds, estimate, ends, chosen, max(sides))

    def confidence_curve(self, points: int = 101) -> list[dict[str, float]]:
        """Return effects around the estimate with the two-sided p-value of each; free.

        P-values are those of an interval of the result's level: they cross 1 - level at its ends.
        Without a finite estimate or end there is nothing to draw around: the curve is empty.
        """
        estimate, ends, level = self._ends(None)
        if not isfinite(estimate):
            closed = [end for end in ends if isfinite(end)]
            if not closed:
                return []
            estimate = closed[0]
        reach = [abs(end - estimate) for end in ends]
        finite = [one for one in reach if isfinite(one)] or [abs(estimate) or 1.0]
        low, high = (one if isfinite(one) else max(finite) for one in reach)
        values = estimate + _REACH * np.append(
            -low * np.linspace(1, 0, points // 2 + 1), high * np.linspace(0, 1, points // 2 + 1)[1:]
        )
        values = values[values > 0] if self._null == 1 else values
        return [{"effect": float(one), "p_value": self._p_at(float(one), level)} for one in values]

    def _above(self, beyond: bool, bound: float, level: float) -> float:
        """Return the one-sided p-value of an effect that is not beyond a bound; `beyond`: whether the estimate is."""
        half = self._p_at(bound, level) / 2
        return half if beyond else 1 - half


def margin_bounds(
    kind: str, margin: float | Sequence[float] | None, higher_is_better: bool, null: float
) -> Ends:
    """Return the bounds that an effect is shown to lie between, or raise CV-P796."""
    margin = float(null == 1) if margin is None else margin
    given: list[Any] = list(margin) if isinstance(margin, list | tuple) else [margin]
    pair = len(given) == 2
    numbers = all(type(one) in (int, float) or isinstance(one, np.number) for one in given)
    if (
        not isinstance(kind, str)
        or kind not in KINDS
        or not numbers
        or not all(map(isfinite, given))
        or not isfinite(null)
        or len(given) > 2
    ):
        raise refusal("CV-P796", kind=kind, margin=margin, null=null)
    if pair:
        if kind != EQUIVALENCE or not given[0] < null < given[1]:
            raise refusal("CV-P796", kind=kind, margin=margin, null=null)
        return float(given[0]), float(given[1])
    one = float(given[0])
    if one < 0 or (null == 1 and one == 0) or (kind != SUPERIORITY and one == (1 if null == 1 else 0)):
        raise refusal("CV-P796", kind=kind, margin=margin, null=null)
    low, high = (min(one, 1 / one), max(one, 1 / one)) if null == 1 else (null - one, null + one)
    if kind == EQUIVALENCE:
        return low, high
    better = kind == SUPERIORITY
    return (high if better else low, inf) if higher_is_better else (-inf, low if better else high)

"""Decisions from one released number and its interval: tests against margins, and confidence curves.

    superior to b:          L > b,                  [L, U] the interval of the level 1 - 2a
    within (l, u):          l < L and U < u         (two one-sided tests, Schuirmann 1987)

Either statement is wrong with probability at most a: if theta <= b and L > b, then the interval misses theta
on that side. P-values and intervals come from the same convolution of sampling error and noise, so that they
agree. In: a released effect and public margins, in units of the effect. Out: whether a test is met, and its
p-value. Proof: `results/decisions.proof.md`. Nothing is spent: it is arithmetic on released numbers.
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
    """Whether an effect is shown to lie inside bounds, of which one may be infinite.

    Attributes
    ----------
    kind : {"superiority", "noninferiority", "equivalence"}
        What was tested.
    bounds : tuple of (float, float)
        What the effect is shown to lie between, in units of the effect.
    estimate : float
        The released effect.
    interval : tuple of (float, float)
        Its interval, privacy noise included.
    level : float
        Confidence level of the interval; the test has the one-sided error (1 - level) / 2.
    p_value : float
        One-sided p-value, of equivalence the larger of two; compare it with `alpha`.

    Notes
    -----
    The test is met exactly where the interval of `level` lies inside the bounds: both come from the same
    convolution of sampling error and privacy noise.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> test = result.test("noninferiority", margin=10)
    >>> test.verdict, test.bounds, round(test.alpha, 3)
    ('met', (-10.0, inf), 0.025)
    >>> result.test("equivalence", margin=0.1).verdict
    'inconclusive'
    """

    kind: str
    bounds: Ends
    estimate: float
    interval: Ends
    level: float
    p_value: float

    @property
    def alpha(self) -> float:
        """One-sided error of the test: 2.5% at a level of 95%, 5% at 90%."""
        return (1 - self.level) / 2

    @property
    def met(self) -> bool:
        """Whether the effect is shown to lie inside the bounds."""
        return self.p_value <= self.alpha

    @property
    def verdict(self) -> Verdict:
        """What the test says: "met", "contradicted" or "inconclusive".

        It is contradicted where no part of the interval lies inside the bounds.
        """
        if self.met:
            return "met"
        (low, high), (least, most) = self.bounds, self.interval
        return "contradicted" if most < low or least > high else "inconclusive"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts.

        Returns
        -------
        dict
            The attributes, with `alpha`, `met` and `verdict`; an infinite bound or end is None.
        """
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
        """Return a test against a margin; it spends nothing.

        Parameters
        ----------
        kind : {"superiority", "noninferiority", "equivalence"}, default "superiority"
            What is to be shown: better by more than the margin, worse by less than it, or inside both bounds
            (two one-sided tests).
        margin : float or pair of floats, optional
            In units of the effect; on the scale of ratios a ratio such as 0.8 or 1.25. Of equivalence it may
            be two bounds. Default for superiority: any effect; the other kinds need one.
        higher_is_better : bool, default True
            False where a lower outcome is better.
        level : float, optional
            Confidence level of the interval that must lie beyond the margin, in (0, 1). Default: that of the
            result. The one-sided error is (1 - level) / 2.

        Returns
        -------
        MarginTest
            Verdict, bounds, one-sided p-value, and the interval that it was decided by.

        Raises
        ------
        CounterveilError
            An unknown kind, or a margin that does not go with it: CV-P796. A level outside (0, 1): CV-P015.

        References
        ----------
        .. [1] Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power
           approach. Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> result.test("superiority").met
        False
        >>> result.test("equivalence", margin=(-8, 8), level=0.9).met
        True
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
        """Return effects around the estimate, each with its two-sided p-value; it spends nothing.

        Parameters
        ----------
        points : int, default 101
            How many effects, about.

        Returns
        -------
        list of dict
            ``effect`` and ``p_value``, by rising effect; empty where neither the estimate nor an end is
            finite.

        Notes
        -----
        P-values are those of an interval of the result's level: they cross 1 - level at its ends, and are 1
        at the estimate. `counterveil.plots.confidence_curve` draws them.
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

"""Measures of two means: ratios, odds ratios, lifts and numbers needed to treat, with their errors.

    m1 / m0,    m1 / m0 - 1,    (m1 / (1 - m1)) / (m0 / (1 - m0)),    1 / (m1 - m0)

with m1 and m0 the released mean outcomes with and without treatment (units of the outcome). The first three
have no unit; the last is in people (for outcomes 0 and 1). Intervals of ratios are Fieller's, found by
inverting a test (`inference/quotient.py`), and may have no upper end; that of 1 / d is made of the ends of
the interval of d, and has two parts where that holds zero. They are right wherever the intervals they are
made of are. Nothing is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from counterveil.errors import CounterveilError, refusal
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.estimates import Known, OwnScale, Transformed
from counterveil.inference.p_values import p_value
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.quotient import DIFFERENCE, LIFT, NEEDED, ODDS, RATIO, Quotient
from counterveil.numerics.arrays import Ends
from counterveil.results.effect import Linear

Measure = Literal["difference", "ratio", "lift", "odds_ratio", "nnt"] | str
MEASURES = (DIFFERENCE, RATIO, ODDS, LIFT, NEEDED)
# Measures that need the means of both arms; the others follow from their difference.
OF_MEANS = (RATIO, ODDS, LIFT)
# Means of both arms of one study, or of several sites.
AnyMeans = IndependentArmMeans | JointArmMeans | PooledMeans
Numbers = Linear | AnyMeans


@dataclass(frozen=True, slots=True)
class Measured(Transformed, OwnScale):
    """A ratio, an odds ratio or a lift of two released means.

    Attributes
    ----------
    means : IndependentArmMeans, JointArmMeans or PooledMeans
        Means of both arms with their joint error.
    measure : {"ratio", "odds_ratio", "lift"}
        Scale of the estimate.
    """

    means: AnyMeans
    measure: str

    @property
    def source(self) -> Quotient:
        """The ratio, or odds ratio, of both means."""
        return Quotient(self.means, ODDS if self.measure == ODDS else RATIO)

    @property
    def null(self) -> float:
        """Value of no effect: 0 of a lift, else 1."""
        return 0.0 if self.measure == LIFT else 1.0

    def carried(self, value: float) -> float:
        """Return what a ratio is on the scale of the measure: one less for a lift.

        Parameters
        ----------
        value : float
            A ratio, or odds ratio.

        Returns
        -------
        float
            Value of the measure.
        """
        return value - (1.0 - self.null)

    def p_value(self, level: float, value: float | None = None) -> float:
        """Return the two-sided p-value of a value.

        Parameters
        ----------
        level : float
            Noisy variances are taken as for an interval of this level, in (0, 1).
        value : float, optional
            Value that is tested; no effect by default.

        Returns
        -------
        float
            P-value, privacy noise included.
        """
        return self.source.p_value(level, 1.0 if value is None else value + 1.0 - self.null)


@dataclass(frozen=True, slots=True)
class NumberNeededToTreat(Transformed, OwnScale):
    """One over a released difference, or over an average of such.

    Attributes
    ----------
    difference : Linear or another estimate
        The difference of risks.
    """

    difference: Known

    @property
    def null(self) -> float:
        """Value of no effect: infinite."""
        return inf

    @property
    def source(self) -> Known:
        """The difference of risks."""
        return self.difference

    def carried(self, value: float) -> float:
        """Return one over a difference; negative for one outcome fewer.

        Parameters
        ----------
        value : float
            A difference of risks.

        Returns
        -------
        float
            Number of people; infinite for no difference.
        """
        return 1 / value if value else inf

    def scaled(self, sd: float) -> float:
        """Return a standard deviation of the difference on the scale of its reciprocal.

        Parameters
        ----------
        sd : float
            Standard deviation of the difference.

        Returns
        -------
        float
            Standard deviation of the number of people.
        """
        return sd * self.estimate**2

    def interval(self, level: float) -> Ends:
        """Return the two ends.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            One over the ends of the difference's interval; where that holds 0, all numbers but those of
            `gap`.
        """
        low, high = self.difference.interval(level)
        if low <= 0 <= high:
            return -inf, inf
        return 1 / high, 1 / low

    def gap(self, level: float) -> Ends | None:
        """Return the numbers between the two parts of an interval that holds no difference (Altman 1998).

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float) or None
            The numbers that the interval leaves out; None where it has one part.
        """
        low, high = self.difference.interval(level)
        if not low <= 0 <= high:
            return None
        return 1 / low if low < 0 else -inf, 1 / high if high > 0 else inf

    def p_value(self, level: float, value: float | None = None) -> float:  # noqa: ARG002 - no margins of it
        """Return the two-sided p-value of no effect, which is that of the difference.

        Parameters
        ----------
        level : float
            Noisy variances are taken as for an interval of this level, in (0, 1).
        value : float, optional
            Not used: there are no margins on this scale.

        Returns
        -------
        float
            P-value, privacy noise included.
        """
        if isinstance(self.difference, Linear):
            return self.difference.uncertainty.p_value(self.difference.estimate, level)
        return p_value(self.difference.interval)


def known_as(measure: str, numbers: Numbers) -> Measured | NumberNeededToTreat | Linear:
    """Return what is known of released numbers on the scale of a measure."""
    if measure in (NEEDED, DIFFERENCE):
        known = difference_of(numbers)
        return NumberNeededToTreat(known) if measure == NEEDED else known
    assert not isinstance(numbers, Linear)
    return Measured(numbers, measure)


def difference_of(numbers: Numbers) -> Linear:
    """Return the difference of both means with its error, or the released difference itself."""
    if isinstance(numbers, Linear):
        return numbers
    low, high = numbers.range
    treated, control = numbers.values
    return Linear(treated - control, numbers.error_of_difference, (low - high, high - low))


def check_measure(measure: object) -> str:
    """Return the measure, or raise CV-P685."""
    if isinstance(measure, str) and measure in MEASURES:
        return measure
    raise refusal("CV-P685", measures=" or ".join(map(repr, MEASURES)), measure=measure)


def refuse_range(measure: str, outcome_range: Ends, *, divided: bool = False, more: str = "") -> None:
    """Raise CV-P686 where outcomes may be numbers, or are `divided`, so that the measure has no meaning for them."""
    low, high = outcome_range
    unit = measure in (ODDS, NEEDED)
    allowed = (low, high) == (0, 1) if unit else low >= 0
    if measure == DIFFERENCE or (allowed and not divided):
        return
    raise no_measure(measure, f"the range ({low:g}, {high:g}){more}")


def no_measure(measure: str, got: str) -> CounterveilError:
    """Return CV-P686, for outcomes that have no such measure."""
    unit = measure in (ODDS, NEEDED)
    return refusal(
        "CV-P686",
        measure=measure,
        expected="cv.Outcome(..., (0, 1)), so that means are risks, and no ratio"
        if unit
        else "an outcome that is never negative, cv.Outcome(..., (0, ...)), and no ratio",
        got=got,
        other="that is 0 or 1" if unit else "that cannot be negative",
    )


def refuse_of_difference(method: str, limits: Ends | None, measure: str) -> None:
    """Raise CV-P686 or CV-P687 for a measure that a released difference does not have."""
    if check_measure(measure) in OF_MEANS:
        raise no_means(method, "the difference alone", f"a result asked with measure={measure!r}")
    if measure == NEEDED and limits is not None and limits != (-1.0, 1.0):
        raise no_measure(measure, f"outcomes of which two differ by up to {limits[1]:g}")


def no_means(method: str, got: str, expected: str = "") -> CounterveilError:
    """Return CV-P687, for a method, or a result, that has the difference alone."""
    return refusal(
        "CV-P687",
        expected=expected
        or "with protects='outcome' method 'difference_in_means', 'weighting', 'matching' or 'stratified'; with "
        "protects='record' method 'trial' in a randomised study, elsewhere 'doubly_robust' with estimand='ATE'; with "
        "protects='treatment and outcome' estimand='ATE'; no clusters, no settings that change outcomes",
        method=method,
        got=got,
    )

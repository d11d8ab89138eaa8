"""Measures of two means: what they are called, and what a result computes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf
from typing import Literal

from counterveil.errors import CounterveilError, refusal
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans, Means
from counterveil.inference.estimates import Known, OwnScale, Transformed
from counterveil.inference.p_values import p_value
from counterveil.inference.pooling import PooledMeans
from counterveil.inference.quotient import ODDS, RATIO, Quotient
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand
from counterveil.report.text import probability, rounded
from counterveil.results.effect import Effect, Linear

DIFFERENCE, LIFT, NEEDED = "difference", "lift", "nnt"
Measure = Literal["difference", "ratio", "lift", "odds_ratio", "nnt"] | str
# What a measure is called in a table.
NAMES = {RATIO: "ratio", ODDS: "OR", LIFT: "lift", NEEDED: "NNT"}
WORDS = {
    RATIO: "ratio of mean outcomes {whose}, treated over control; 1 is no effect",
    ODDS: "odds ratio of mean outcomes {whose}, treated over control; 1 is no effect",
    LIFT: "lift: the ratio of mean outcomes {whose}, treated over control, less 1; 0 is no effect",
    NEEDED: "number needed to treat: 1 over the difference of mean outcomes {whose}; negative for one outcome fewer",
}
_WHOSE = {
    Estimand.ATE: "of everyone in the {where}",
    Estimand.ATT: "of those who received the treatment",
    Estimand.ATC: "of those who did not receive the treatment",
    Estimand.ATO: "of people weighted by overlap",
}
_CALLED = {RATIO: "ratio of means", ODDS: "odds ratio", LIFT: "lift", NEEDED: "number needed to treat"}


def whose_words(estimand: Estimand, where: str = "study") -> str:
    """Return whose outcomes are averaged."""
    return _WHOSE[estimand].format(where=where)


def called(measure: str, outcome_range: Ends | None) -> str:
    """Return what a measure is called in a sentence; means of outcomes from 0 to 1 are risks."""
    return "risk ratio" if measure == RATIO and outcome_range == (0.0, 1.0) else _CALLED[measure]


def means_in_words(means: Means) -> str:
    """Return the released means; one that noise put outside the range of outcomes is not printed."""
    said = []
    for arm, value, which in zip(("treated", "control"), means.values, ((1.0, 0.0), (0.0, 1.0)), strict=True):
        low, high = means.range
        text = rounded(value, hypot(*means.parts(*which)))
        if not low <= value <= high:
            text = f"below {low:g} (noise)" if value < low else f"above {high:g} (noise)"
        said.append(f"{arm} {text}")
    return f"{', '.join(said)} (released)"


def averaged_in_words(means: PooledMeans, details: Mapping[str, object]) -> str:
    """Return how the means of sites make those of all; sites count by all of their people, whatever the estimand."""
    if len(means.weighed) == 1:
        return f"the means are those of {means.weighed[0][0]} alone"
    limited = ", up to a limit on each weight" if "site_weight_limit" in details else ""
    return f"each arm's mean is averaged over sites by size{limited}"


def difference_in_words(effect: Effect) -> str:
    """Return a difference with its interval and p-value, rounded as in a table."""
    error = effect.std_error.total
    ends = ", ".join(rounded(end, error) for end in effect.interval())
    return f"{rounded(effect.estimate, error)} [{ends}], p {probability(effect.p_value)}"


def replaced_in_words(measure: str, rows: Sequence[tuple[str | None, Means]]) -> list[str]:
    """Return for which of the named means the estimate is made with the noise's standard deviation instead."""
    if measure not in (RATIO, LIFT, ODDS):
        return []
    said = []
    for name, means in rows:
        sds = Quotient(means, ODDS if measure == ODDS else RATIO).replaced
        for arm, sd in zip(("treated", "control"), sds, strict=True):
            if sd is not None:
                whose = f"the {arm} mean" if name is None else f"{name}: the {arm} mean"
                said.append(f"{whose} {_too_near(measure, sd)}. Use the interval.")
    return said


def _too_near(measure: str, sd: float) -> str:
    if measure == ODDS:
        return (
            f"is within one SD of its noise ({rounded(sd, sd)}) of 0 or 1; the odds ratio is computed with a mean one "
            "SD away from it"
        )
    return f"is smaller than the SD of its noise ({rounded(sd, sd)}); the ratio is computed with that SD"


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
    other = "that is 0 or 1" if unit else "that cannot be negative"
    return refusal(
        "CV-P686",
        measure=measure,
        expected="cv.Outcome(..., (0, 1)), so that means are risks, and no ratio"
        if unit
        else "an outcome that is never negative, cv.Outcome(..., (0, ...)), and no ratio",
        got=got,
        other=other,
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

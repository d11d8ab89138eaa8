"""The answer about one effect as a ratio, a lift, an odds ratio or a number needed to treat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite
from typing import Any, ClassVar, Self

from counterveil.errors import CounterveilError, refusal
from counterveil.inference import Uncertainty
from counterveil.inference.measures import ODDS, RATIO, ApartMeans, JointMeans, Quotient
from counterveil.inference.pooling import PooledMeans
from counterveil.privacy import Unit
from counterveil.report.caveats import people_words
from counterveil.report.measures import needed_sentence
from counterveil.results.codec import noise_from_dict
from counterveil.results.effect import Effect, Ends, Linear, check_level
from counterveil.results.measure_words import (
    DIFFERENCE,
    LIFT,
    NAMES,
    NEEDED,
    WORDS,
    averaged_in_words,
    called,
    difference_in_words,
    means_in_words,
    replaced_in_words,
    whose_words,
)
from counterveil.results.own_scale import OwnScale
from counterveil.results.result import OneEffect, Result

MEASURES = (DIFFERENCE, RATIO, ODDS, LIFT, NEEDED)
# Measures that need the means of both arms; the others follow from their difference.
OF_MEANS = (RATIO, ODDS, LIFT)
# Means of both arms of one study, or of several sites.
AnyMeans = ApartMeans | JointMeans | PooledMeans
Numbers = Linear | AnyMeans


@dataclass(frozen=True, slots=True)
class Measured(OwnScale):
    """A ratio, an odds ratio or a lift of two released means."""

    means: AnyMeans
    measure: str

    @property
    def _quotient(self) -> Quotient:
        return Quotient(self.means, ODDS if self.measure == ODDS else RATIO)

    @property
    def null(self) -> float:
        """The value of no effect."""
        return 0.0 if self.measure == LIFT else 1.0

    @property
    def estimate(self) -> float:
        """The measure of the released means."""
        return self._quotient.estimate - (1.0 - self.null)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, by the delta method."""
        return self._quotient.parts[0]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, by the delta method."""
        return self._quotient.parts[1]

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one may be infinite."""
        low, high = _interval(self._quotient, level)
        return low - (1.0 - self.null), high - (1.0 - self.null)

    def p_value(self, level: float) -> float:
        """Return the p-value of no effect, variances as for an interval of `level`."""
        return self._quotient.p_value(level)


@lru_cache(maxsize=64)
def _interval(quotient: Quotient, level: float) -> Ends:
    return quotient.interval(level)


@dataclass(frozen=True, slots=True)
class Needed(OwnScale):
    """One over a released difference."""

    difference: Linear

    @property
    def null(self) -> float:
        """The value of no effect."""
        return inf

    @property
    def estimate(self) -> float:
        """One over the difference."""
        return 1 / self.difference.estimate if self.difference.estimate else inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, by the delta method."""
        return self.difference.sampling_sd * self.estimate**2

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise, by the delta method."""
        return self.difference.noise_sd * self.estimate**2

    def interval(self, level: float) -> Ends:
        """Return the ends; where no difference is possible, all numbers, but for those of `gap`."""
        low, high = self.difference.interval(level)
        if low <= 0 <= high:
            return -inf, inf
        return 1 / high, 1 / low

    def gap(self, level: float) -> Ends | None:
        """Return the numbers between the two parts of an interval that holds no difference (Altman 1998)."""
        low, high = self.difference.interval(level)
        if not low <= 0 <= high:
            return None
        return 1 / low if low < 0 else -inf, 1 / high if high > 0 else inf

    def p_value(self, level: float) -> float:
        """Return the p-value of no effect."""
        return self.difference.uncertainty.p_value(self.difference.estimate, level)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasureResult(Result):
    """A released effect on the scale of a measure; nothing it does spends budget.

    `numbers` are the means of both arms with their joint error, or the difference where that alone was released
    (numbers needed to treat). `uncertainty` is that of the delta method, with normal noise of the same variance:
    intervals are not made from it. `site_sources` are the provenance of pooled sites, as columns.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    measure: str
    numbers: Numbers
    site_sources: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, measure: str, numbers: Numbers, **terms: Any) -> Self:
        """Return the result; `terms` are the provenance and the estimand."""
        known = known_as(measure, numbers)
        variance, noise = known.sampling_sd**2, known.noise_sd
        normal = {"mechanism": "gaussian", "sensitivity": "1", "mu": "1"}
        if isfinite(noise) and noise > 0:
            normal["sensitivity"] = str(Fraction(noise))
        uncertainty = Uncertainty(noise_from_dict(normal), variance, variance)
        return cls(
            measure=measure,
            numbers=numbers,
            estimate=known.estimate,
            uncertainty=uncertainty,
            **terms,
        )

    @classmethod
    def _made(cls, measure: str, numbers: Numbers, **terms: Any) -> Self:
        if isinstance(numbers, Linear) and check_measure(measure) != NEEDED:
            raise ValueError("the means of both arms are missing")
        sites = len(numbers.sites) if isinstance(numbers, PooledMeans) else 0
        if len(terms["site_sources"]) != sites:
            raise ValueError("sources of other sites")
        return cls.of(check_measure(measure), numbers, **terms)

    @property
    def means(self) -> AnyMeans | None:
        """The means of both arms with their joint error; None where the difference alone was released."""
        return None if isinstance(self.numbers, Linear) else self.numbers

    @property
    def difference(self) -> Effect:
        """The difference of both arms with its error."""
        return Effect(self.estimand.value, difference_of(self.numbers), self.level)

    @classmethod
    def of_difference(cls, result: Result) -> MeasureResult:
        """Return the number needed to treat of a released difference."""
        return cls.of(NEEDED, _linear(result.effect), **measure_terms(result))

    @property
    def effect(self) -> Effect:
        """The measure with its error."""
        own = self.estimand.value
        name = own if self.measure == DIFFERENCE else f"{NAMES[self.measure]}, {own}"
        name = name if self.population is None else f"{name}, trimmed"
        return Effect(name, known_as(self.measure, self.numbers), self.level)

    def as_measure(self, measure: str) -> OneEffect:
        """Return the same released numbers as another measure; free."""
        if self.means is None:
            refuse_of_difference(self, measure)
        else:
            refuse_range(check_measure(measure), self.means.range)
        if measure == DIFFERENCE and self.means is None:
            return difference_result(self)
        terms = measure_terms(self) | {"site_sources": self.site_sources}
        return MeasureResult.of(measure, self.numbers, **terms)

    def uncut_interval(self, level: float | None = None) -> Ends:
        """Return the interval, which is not cut: a ratio has no range."""
        return self.effect.interval(self.level if level is None else check_level(level))

    @property
    def _compared(self) -> Sequence[Effect]:
        # What an omitted confounder could do is told of the difference, and E-values of the ratio.
        return (self.difference,)

    @property
    def _risk_ratio(self) -> Effect | None:
        return None if self.means is None else Effect(RATIO, Measured(self.means, RATIO), self.level)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The measure; where means were pooled, that of every site in them before it."""
        if not isinstance(self.means, PooledMeans):
            return (self.effect,)
        rows = [
            Effect(name, known_as(self.measure, site), self.level)
            for name, site in zip(self.means.names, self.means.sites, strict=True)
        ]
        return (*rows, replace(self.effect, name="pooled"))

    def _columns(self) -> list[dict[str, Any]]:
        own = {"estimand": self.estimand.value, "measure": self.measure}
        if not isinstance(self.means, PooledMeans):
            return [own]
        sites = zip(self.means.names, self.means.weights, strict=True)
        rows = [{"site": name, "type": "study", "weight": weight} | own for name, weight in sites]
        return [*rows, {"site": "pooled", "type": "summary", "weight": 1.0} | own]

    def _rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for the measure; where means were pooled, one for each site before it."""
        rows = zip(self._columns(), self.table, (*self.site_sources, self._source()), strict=True)
        return [{"term": self.treatment} | own | effect.row() | source for own, effect, source in rows]

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, with a row for every site and one for all."""
        facts = Result.report_facts(self)
        if self.measure != DIFFERENCE:
            facts |= {"called": called(self.measure, None if self.means is None else self.means.range)}
        if not isinstance(self.means, PooledMeans):
            return facts
        *sites, pooled = (effect.facts() for effect in self.table)
        rows = [site | {"weight": weight} for site, weight in zip(sites, self.means.weights, strict=True)]
        summary = pooled | {"weight": 1.0, "summary": True}
        return facts | {"sites": list(self.means.names), "effects": [*rows, summary]}

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | {"sentence": self._sentence(), "notes": self._notes()}

    def _notes(self) -> list[tuple[str, str]]:
        notes = [("NNT", needed_sentence(self.effect.facts()))] if self.measure == NEEDED else []
        if self.means is not None:
            rows: list[tuple[str | None, AnyMeans]] = [(None, self.means)]
            if isinstance(self.means, PooledMeans):
                rows += self.means.weighed
            notes += [("Estimate", text) for text in replaced_in_words(self.measure, rows)]
            notes.append(("Means", means_in_words(self.means)))
        if self.measure != DIFFERENCE:
            notes.append(("Difference", difference_in_words(self.difference)))
        return notes

    def _sentence(self) -> str:
        if not isinstance(self.means, PooledMeans):
            return self._sentence_in("study")
        return f"{self._sentence_in('sites')}; {averaged_in_words(self.means, self.details)}"

    def _sentence_in(self, where: str) -> str:
        whose = whose_words(self.estimand, where) + (
            "" if self.population is None else f", among {people_words(self.population)}"
        )
        if self.measure == DIFFERENCE:
            return f"difference of mean outcomes {whose}, treated less control"
        return WORDS[self.measure].format(whose=whose)


# The fields of a result that do not depend on its measure.
_TERMS = (
    *("method", "treatment", "outcome", "level", "guarantee", "spent", "releases", "not_covered", "details"),
    *("diagnostics", "interval_of", "condition", "assumes", "population", "estimand", "by_arm"),
)


def measure_terms(result: OneEffect) -> dict[str, Any]:
    """Return the fields of a result that do not depend on its measure."""
    return {name: getattr(result, name) for name in _TERMS}


def difference_result(result: MeasureResult) -> Result:
    """Return the released difference that a measure of one table is made of."""
    known = difference_of(result.numbers)
    assert isinstance(known.uncertainty, Uncertainty)
    return Result(
        estimate=known.estimate,
        uncertainty=known.uncertainty,
        limits=known.limits,
        # Private outcomes have a variance with noise of its own; contrasts of records share theirs with it.
        variance_apart=result.guarantee.unit is Unit.OUTCOME,
        **measure_terms(result),
    )


def known_as(measure: str, numbers: Numbers) -> Measured | Needed | Linear:
    """Return what is known of released numbers on the scale of a measure."""
    if measure in (NEEDED, DIFFERENCE):
        known = difference_of(numbers)
        return Needed(known) if measure == NEEDED else known
    assert not isinstance(numbers, Linear)
    return Measured(numbers, measure)


def difference_of(numbers: Numbers) -> Linear:
    """Return the difference of both means with its error, or the released difference itself."""
    if isinstance(numbers, Linear):
        return numbers
    low, high = numbers.range
    treated, control = numbers.values
    return Linear(treated - control, numbers.error_of_difference, (low - high, high - low))


def _linear(effect: Effect) -> Linear:
    assert isinstance(effect.known, Linear)
    return effect.known


# What can be asked, checked before any data or budget is touched.


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
    raise no_measure(measure, f"outcome_range=({low:g}, {high:g}){more}")


def no_measure(measure: str, got: str) -> CounterveilError:
    """Return CV-P686, for outcomes that have no such measure."""
    unit = measure in (ODDS, NEEDED)
    other = "that is 0 or 1" if unit else "that cannot be negative"
    return refusal(
        "CV-P686",
        measure=measure,
        expected="outcome_range=(0, 1), so that means are risks, and no per="
        if unit
        else "an outcome that is never negative, outcome_range=(0, ...), and no per=",
        got=got,
        other=other,
    )


def refuse_of_difference(result: OneEffect, measure: str) -> None:
    """Raise CV-P686 or CV-P687 for a measure that a released difference does not have."""
    if check_measure(measure) in OF_MEANS:
        raise no_means(result.method, "the difference alone", f"a result asked with measure={measure!r}")
    if measure == NEEDED and result.limits is not None and result.limits != (-1.0, 1.0):
        raise no_measure(measure, f"outcomes of which two differ by up to {result.limits[1]:g}")


def no_means(method: str, got: str, expected: str = "") -> CounterveilError:
    """Return CV-P687, for a method, or a result, that has the difference alone."""
    return refusal(
        "CV-P687",
        expected=expected
        or "with protects='outcome' method 'difference_in_means', 'weighting', 'matching' or 'stratified'; with "
        "protects='record' method 'trial' in a randomised study; no clusters, no settings that change outcomes",
        method=method,
        got=got,
    )

"""The answer about one effect, and several results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar, Self

from counterveil.errors import refusal
from counterveil.inference.measures import RATIO
from counterveil.inference.pooling import PooledMeans, PooledUncertainty
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand, Guarantee
from counterveil.report import View
from counterveil.report.caveats import people_words
from counterveil.report.measures import drawn_side_by_side, needed_sentence, side_by_side
from counterveil.results.confounding import Sensitivity, sensitivity_of
from counterveil.results.decisions import Decided
from counterveil.results.effect import (
    Effect,
    Known,
    Linear,
    StdError,
    check_level,
    noise_from_dict,
    symmetric_interval,
)
from counterveil.results.measures import (
    DIFFERENCE,
    NAMES,
    NEEDED,
    WORDS,
    AnyMeans,
    Measure,
    Measured,
    Numbers,
    called,
    check_measure,
    difference_in_words,
    difference_of,
    known_as,
    means_in_words,
    refuse_of_difference,
    refuse_range,
    replaced_in_words,
    whose_words,
)
from counterveil.results.regression import Compliance, Regression
from counterveil.results.released import ReleasedAnswer
from counterveil.results.shown import Shown, sentence_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(ReleasedAnswer):
    """Released effects of a treatment, which an omitted confounder could change."""

    @property
    def _compared(self) -> Sequence[Effect]:
        """The effects that a confounder could change."""
        return self.table

    @property
    def _arm_means(self) -> Sequence[Effect]:
        """For each effect the mean of its arm and of the reference, if they were released."""
        return ()

    @property
    def _risk_ratio(self) -> Effect | None:
        """The ratio of both arms' means with its interval, if it is known."""
        return None

    def sensitivity(
        self,
        *,
        treatment_r2: float | None = None,
        outcome_r2: float | None = None,
        baseline: float | None = None,
        outcome_sd: float | None = None,
        level: float | None = None,
    ) -> Sensitivity:
        """Return how strong an omitted confounder must be to change these effects; free.

        Args:
            treatment_r2, outcome_r2: a confounder to bound the bias of: the shares that it explains of what the
                covariates leave of the treatment, and of what treatment and covariates leave of the outcome.
            baseline: mean outcome of untreated people from public sources; E-values are then those of the ratio.
            outcome_sd: standard deviation of outcomes from public sources; None takes an upper estimate.
            level: of the interval; None takes the result's.
        """
        return sensitivity_of(
            self,
            self._compared,
            treatment_r2=treatment_r2,
            outcome_r2=outcome_r2,
            baseline=baseline,
            outcome_sd=outcome_sd,
            level=level,
            means=self._arm_means,
            ratio=self._risk_ratio,
        )

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and what omitted confounders could do."""
        facts = self._facts()
        return facts | ({"confounding": self.sensitivity().to_dict()} if self.may_be_confounded else {})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneEffect(Decided, Comparison):
    """One released effect, of one table or pooled from several.

    `limits` are what an effect can be at all, plus or minus the width of the outcome's declared range: intervals
    for the effect are cut to them, while `estimate`, `std_error` and `uncertainty` are as released.
    """

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    estimand: Estimand
    limits: Ends | None = None

    @property
    def effect(self) -> Effect:
        """The effect with its error; an interval for something else is not cut to what the effect can be."""
        limits = None if self.interval_target is not None else self.limits
        name = self.estimand.value if self.population is None else f"{self.estimand.value}, trimmed"
        return Effect(name, Linear(self.estimate, self.uncertainty, limits), self.level)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect, alone."""
        return (self.effect,)

    @property
    def _compared(self) -> Sequence[Effect]:
        return (self.effect,)

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return self.effect.std_error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level when the interval leaves out 0."""
        return self.effect.p_value

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        One for the effect is cut to what the outcome's declared range allows; one for something else is not.
        """
        return self.effect.interval(level)

    @property
    def _null(self) -> float:
        return self.effect._null

    def _ends(self, level: float | None) -> tuple[float, Ends, float]:
        return self.effect._ends(level)

    def _p_at(self, value: float, level: float | None) -> float:
        return self.effect._p_at(value, level)

    def untruncated_interval(self, level: float | None = None) -> Ends:
        """Return the interval before it is cut: as far on either side of the estimate."""
        chosen = self.level if level is None else check_level(level)
        return symmetric_interval(self.estimate, self.uncertainty.half_width(chosen))

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value}]

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | sentence_of(self.estimand, self.guarantee.whose, self.population)

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show, with a row for the effect."""
        return super(OneEffect, self).report_facts() | {"effects": [self.effect.facts()]}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(OneEffect):
    """A released effect; nothing in it is private any more and nothing it does spends budget.

    `independent_variance` says that the variance was released with noise of its own, sharing none with the estimate, or
    that it is public: only then may it make the weight of a site.
    """

    uncertainty: Uncertainty
    independent_variance: bool = False

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the same released numbers as another measure: of a difference "nnt", others are CV-P687; free."""
        refuse_of_difference(self.method, self.limits, measure)
        return MeasureResult.of_difference(self) if measure == NEEDED else self


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasureResult(Result):
    """A released effect on the scale of a measure; nothing it does spends budget.

    `numbers` are the means of both arms with their joint error, or the difference where that alone was released
    (numbers needed to treat). `uncertainty` is that of the delta method; intervals are not made from it.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    measure: str
    numbers: Numbers

    @classmethod
    def of(cls, measure: str, numbers: Numbers, **terms: Any) -> Self:
        """Return the result; `terms` are the provenance and the estimand."""
        return cls._of_known(known_as(measure, numbers), measure=measure, numbers=numbers, **terms)

    @classmethod
    def _of_known(cls, known: Known, **terms: Any) -> Self:
        """Return the result whose estimate and error are those of a number on its own scale."""
        variance, noise = known.sampling_sd**2, known.noise_sd
        normal = {"mechanism": "gaussian", "sensitivity": "1", "mu": "1"}
        if isfinite(noise) and noise > 0:
            normal["sensitivity"] = str(Fraction(noise))
        uncertainty = Uncertainty(noise_from_dict(normal), variance, variance)
        return cls(estimate=known.estimate, uncertainty=uncertainty, **terms)

    @classmethod
    def _made(cls, measure: str, numbers: Numbers, **terms: Any) -> Self:
        if isinstance(numbers, Linear) and check_measure(measure) != NEEDED:
            raise ValueError("the means of both arms are missing")
        if isinstance(numbers, PooledMeans):
            raise ValueError("means of several sites")
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
        return Effect(self._effect_name, known_as(self.measure, self.numbers), self.level)

    @property
    def _effect_name(self) -> str:
        own = self.estimand.value
        name = own if self.measure == DIFFERENCE else f"{NAMES[self.measure]}, {own}"
        return name if self.population is None else f"{name}, trimmed"

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the same released numbers as another measure; free."""
        if self.means is None:
            refuse_of_difference(self.method, self.limits, measure)
        else:
            refuse_range(check_measure(measure), self.means.range)
        if measure == DIFFERENCE and self.means is None:
            return difference_result(self)
        return MeasureResult.of(measure, self.numbers, **measure_terms(self))

    def untruncated_interval(self, level: float | None = None) -> Ends:
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
        """The measure, alone."""
        return (self.effect,)

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value, "measure": self.measure}]

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and what the measure is called."""
        facts = Result.report_facts(self)
        if self.measure != DIFFERENCE:
            facts |= {"called": called(self.measure, None if self.means is None else self.means.range)}
        return facts

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | {"sentence": self._sentence(), "notes": self._notes()}

    def _notes(self) -> list[tuple[str, str]]:
        notes = [("NNT", needed_sentence(self.effect.facts()))] if self.measure == NEEDED else []
        if self.means is not None:
            notes += [("Estimate", text) for text in replaced_in_words(self.measure, [(None, self.means)])]
            notes.append(("Means", means_in_words(self.means)))
        if self.measure != DIFFERENCE:
            notes.append(("Difference", difference_in_words(self.difference)))
        return notes

    def _sentence(self) -> str:
        return self._sentence_in("study")

    def _sentence_in(self, where: str) -> str:
        whose = whose_words(self.estimand, where) + (
            "" if self.population is None else f", among {people_words(self.population)}"
        )
        if self.measure == DIFFERENCE:
            return f"difference of mean outcomes {whose}, treated less control"
        return WORDS[self.measure].format(whose=whose)


def measure_terms(result: OneEffect) -> dict[str, Any]:
    """Return the fields of a result that do not depend on its measure."""
    return result.provenance() | {"estimand": result.estimand}


def difference_result(result: MeasureResult) -> Result:
    """Return the released difference that a measure of one table is made of."""
    known = difference_of(result.numbers)
    assert isinstance(known.uncertainty, Uncertainty)
    return Result(
        estimate=known.estimate,
        uncertainty=known.uncertainty,
        limits=known.limits,
        # Private outcomes have a variance with noise of its own; contrasts of records share theirs with it.
        independent_variance=result.guarantee.unit.treatment_public,
        **measure_terms(result),
    )


def _linear(effect: Effect) -> Linear:
    assert isinstance(effect.known, Linear)
    return effect.known


@dataclass(frozen=True, slots=True, repr=False)
class ResultTable(Shown):
    """Results side by side, a column each; nothing was spent on it."""

    results: tuple[ReleasedAnswer | Regression | Compliance, ...]
    names: tuple[str, ...]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of all results, each with the name of its column."""
        pairs = zip(self.names, self.results, strict=True)
        return [{"column": name} | row for name, result in pairs for row in result._rows()]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table, and how its cells are read; in full, every guarantee."""
        return side_by_side([result.report_facts() for result in self.results], self.names, full)

    def drawn_facts(self) -> dict[str, Any]:
        """Return the effects of all columns, for one forest."""
        return drawn_side_by_side([result.report_facts() for result in self.results], self.names)

    @property
    def guarantee(self) -> Guarantee:
        """That of the first column that warns, else of the first."""
        found = [result.guarantee for result in self.results]
        return next((one for one in found if one.warning), found[0])

    @property
    def spent(self) -> str:
        """What each column cost."""
        return "; ".join(f"{name} {one.spent}" for name, one in zip(self.names, self.results, strict=True))

    def __repr__(self) -> str:
        return f"<ResultTable: {', '.join(self.names)}>"


def etable(results: Iterable[Shown] | Mapping[str, Shown]) -> ResultTable:
    """Return several results as one table: a column each, effects with errors and intervals, and what they cost.

    Args:
        results: what `ate`, `arms`, `groups`, `outcomes`, `survival`, `event_study`, `cate`, `pool` and
            `moments(...).regress(...)` returned; a mapping names the columns.
    """
    named = results if isinstance(results, Mapping) else dict(enumerate(results, 1))
    columns = [one for one in named.values() if isinstance(one, ReleasedAnswer | Regression | Compliance)]
    others = [one for one in named.values() if not any(one is each for each in columns)]
    if others or not columns:
        raise refusal("CV-P029", kind=type(others[0]).__name__ if others else "nothing")
    names = tuple(f"({name})" if isinstance(name, int) else str(name) for name in named)
    return ResultTable(tuple(columns), names)

"""The answer about one effect, and several results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar, Self

from counterveil.errors import refusal
from counterveil.inference.estimates import Known, symmetric_interval
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.quotient import DIFFERENCE, NEEDED, RATIO
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand, Guarantee
from counterveil.report import View
from counterveil.report.answer_words import estimand_sentence
from counterveil.report.measure_words import (
    MEASURE_NAMES,
    difference_words,
    means_words,
    measure_noun,
    measure_sentence,
    replaced_means_words,
)
from counterveil.report.measures import drawn_side_by_side, needed_sentence, side_by_side
from counterveil.results.confounding import Sensitivity, sensitivity_of
from counterveil.results.decisions import Decided
from counterveil.results.effect import Effect, Linear, StdError, check_level, noise_from_dict
from counterveil.results.measures import (
    AnyMeans,
    Measure,
    Measured,
    Numbers,
    check_measure,
    difference_of,
    known_as,
    refuse_of_difference,
    refuse_range,
)
from counterveil.results.regression import Compliance, Regression
from counterveil.results.released import ReleasedAnswer
from counterveil.results.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(ReleasedAnswer):
    """Released effects of a treatment, which an omitted confounder could change.

    Attributes
    ----------
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.
    """

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
        """Return how strong an omitted confounder must be to change these effects; it spends nothing.

        Parameters
        ----------
        treatment_r2, outcome_r2 : float, optional
            Partial R squared of an omitted confounder, whose bias is then bounded: the shares that it
            explains of what the covariates leave of the treatment, in [0, 1), and of what treatment and
            covariates leave of the outcome, in [0, 1]. Give both or none.
        baseline : float, optional
            Mean outcome of untreated people from public sources, above 0, in the outcome's units. E-values
            are then those of the ratio (baseline + effect) / baseline.
        outcome_sd : float, optional
            Standard deviation of outcomes from public sources, above 0. By default an upper estimate from
            released numbers.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        Sensitivity
            For each effect its tipping bias, E-values, robustness values, and the interval widened by the
            bias that was asked about; with public covariates and treatment, confounders as strong as
            covariates.

        Raises
        ------
        CounterveilError
            The interval is not for the effect: CV-P664. A share outside its range: CV-P665. A baseline or
            standard deviation that is not positive: CV-P666. A level outside (0, 1): CV-P015.

        Notes
        -----
        With R_t and R_y the two partial R squared, the bias is at most S sqrt(R_y R_t / (1 - R_t)) [1]_,
        where S = sqrt(n V) and V is the sampling variance that the interval takes. The E-value of a risk
        ratio r >= 1 is r + sqrt(r (r - 1)) [2]_. Both are computed from released numbers, of the estimate and
        of the interval's end nearest to no effect.

        References
        ----------
        .. [1] Cinelli, C. and Hazlett, C. (2020). Making sense of sensitivity: extending omitted variable
           bias. Journal of the Royal Statistical Society B 82, 39-67.
        .. [2] VanderWeele, T. J. and Ding, P. (2017). Sensitivity analysis in observational research:
           introducing the E-value. Annals of Internal Medicine 167, 268-274.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> analysis = result.sensitivity(treatment_r2=0.05, outcome_r2=0.05)
        >>> (row,) = analysis.rows
        >>> row.adjusted_low < row.low < row.high < row.adjusted_high
        True
        >>> analysis.e_value >= 1
        True
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
        """Return what reports show: the facts of `to_dict`, and what omitted confounders could do.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        facts = self._facts()
        return facts | ({"confounding": self.sensitivity().to_dict()} if self.may_be_confounded else {})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneEffect(Decided, Comparison):
    """One released effect, of one table or pooled from several.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    estimate : float
        Effect in units of the outcome, treated minus control, as released.
    uncertainty : Uncertainty or PooledUncertainty
        Sampling error and privacy noise, from which intervals of every level are computed.
    estimand : Estimand
        Population over which the effect is averaged.
    limits : tuple of (float, float) or None
        What the effect can be at all: plus or minus the width of the outcome's declared range.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.
    """

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    estimand: Estimand
    limits: Ends | None = None

    @property
    def effect(self) -> Effect:
        """The effect with its error.

        An interval for something else than the effect is not truncated to `limits`.
        """
        limits = None if self.interval_target is not None else self.limits
        name = self.estimand.value if self.population is None else f"{self.estimand.value}, trimmed"
        return Effect(name, Linear(self.estimate, self.uncertainty, limits), self.level)

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect, alone, as a tuple."""
        return (self.effect,)

    @property
    def _compared(self) -> Sequence[Effect]:
        return (self.effect,)

    @property
    def std_error(self) -> StdError:
        """Standard error in units of the outcome: `total`, and its parts `sampling` and `noise`."""
        return self.effect.std_error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, privacy noise included.

        It is below 1 - level where the interval leaves out 0.
        """
        return self.effect.p_value

    def interval(self, level: float | None = None) -> Ends:
        r"""Return the two ends of an interval that covers sampling error and privacy noise together.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the outcome. An interval for the effect is truncated to `limits`,
            one for something else (`interval_target`) is not.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.

        Notes
        -----
        The interval of level 1 - a is estimate -+ h with P(\|N(0, v) + X\| > h) = a. v is the sampling
        variance, enlarged by the smallest constant that keeps the level where v was released with noise, and
        X is the privacy noise. Intervals of every level are computed from the same released numbers and spend
        nothing.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> low, high = result.interval()
        >>> wider = result.interval(0.99)
        >>> wider[0] < low < result.estimate < high < wider[1]
        True
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
        """Return the interval before it is truncated to `limits`: as far on either side of the estimate.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the outcome.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.level if level is None else check_level(level)
        return symmetric_interval(self.estimate, self.uncertainty.half_width(chosen))

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value}]

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        sentence = estimand_sentence(self.estimand, self.guarantee.whose, self.population)
        return shown if sentence is None else shown | {"sentence": sentence}

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show, with a row for the effect.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return super(OneEffect, self).report_facts() | {"effects": [self.effect.facts()]}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(OneEffect):
    """A released effect: what `counterveil.ate` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    estimate : float
        Effect in units of the outcome, treated minus control, as released.
    uncertainty : Uncertainty
        Sampling error and privacy noise, from which intervals of every level are computed.
    independent_variance : bool
        Whether the variance shares no noise with the estimate, or is public: only then may it make the weight
        of a site when results are pooled.
    estimand : Estimand
        Population over which the effect is averaged.
    limits : tuple of (float, float) or None
        What the effect can be at all: plus or minus the width of the outcome's declared range.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> result.estimand.value, result.treatment, result.outcome
    ('ATE', 'train', 're78')
    >>> result.std_error.noise < result.std_error.total
    True
    >>> str(result.spent), result.details["rows"]
    ('epsilon 1', 445)
    >>> "p_value" in result.effects.columns
    True
    """

    uncertainty: Uncertainty
    independent_variance: bool = False

    def _site_numbers(self) -> tuple[float, ...]:
        return self.estimate, self.uncertainty.variance, self.uncertainty.variance_cap

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the same released numbers on another scale; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "nnt"}
            "difference" returns the result itself, "nnt" the number needed to treat 1 / (m1 - m0), for
            outcomes in (0, 1). Ratios, lifts and odds ratios need the means of both arms: ask with
            ``measure="ratio"``.

        Returns
        -------
        Result or MeasureResult
            The same release on that scale, with an interval of its own.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Outcomes that have no such measure: CV-P686. A measure of both means,
            where the difference alone was released: CV-P687.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> noise = cv.SeededNoise(1)
        >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
        >>> result.as_measure("difference") is result
        True
        """
        refuse_of_difference(self.method, self.limits, measure)
        return MeasureResult.of_difference(self) if measure == NEEDED else self


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasureResult(Result):
    r"""A released effect on the scale of a measure: what `counterveil.ate` returns with ``measure=``.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
        Scale of the estimate: difference of means m1 - m0, ratio m1 / m0, lift m1 / m0 - 1, odds ratio
        m1 (1 - m0) / (m0 (1 - m1)), or number needed to treat 1 / (m1 - m0).
    numbers : IndependentArmMeans, JointArmMeans or Linear
        Released means of both arms with their joint error, or the difference where that alone was released.
    estimate : float
        The measure of the released means. Below 1 a ratio says that treatment lowers the mean.
    uncertainty : Uncertainty
        Error by the delta method, for standard errors; intervals are not computed from it.
    independent_variance : bool
        Whether the variance shares no noise with the estimate, or is public.
    estimand : Estimand
        Population over which means are averaged.
    limits : tuple of (float, float) or None
        What the difference can be at all.
    method : str
        Estimator that was used, in words.
    treatment, outcome : str
        Columns of the study.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.
    not_covered : tuple of Caveat or Detail
        What intervals do not cover, the worst first. Compare values, never words:
        ``cv.results.Caveat.CONFOUNDING in result.not_covered``.
    details : dict of str to float or str
        Further public or released numbers, such as ``"rows"``.
    diagnostics : dict of str to list
        Tables such as ``"balance"`` and ``"overlap"`` where they are public; else empty.
    interval_target : Target, WeightedContrast, LearnersAnswer, AtSites or None
        What intervals are for where they are not for the effect; None where they are.
    condition : NotAdjusted, AtSites or None
        Declared bound on confounding under which an unadjusted interval covers.
    assumptions : FoldModels, LinearScores, LinearIn, KnownScore, AtSites or None
        Models that must be right for intervals to cover; None where they need none.
    population : KeptPeople, KeptByTrim, AtSites or None
        Whom ``trim`` kept; None for everyone.
    repeat : Repeat or None
        Study, call and command that ask the same again, for reports. Not stored.
    by_arm : dict or None
        Table 1 of public covariates by arm, for reports. Not stored.

    Notes
    -----
    An interval of a ratio is {r : \|m1 - r m0\| <= h_r} with P(\|N_r + X_r\| > h_r) = 1 - level, N_r being
    the sampling error and X_r the privacy noise of m1 - r m0, as Fieller's is. Odds ratios are inverted
    alike. It holds however near to zero m0 is; then its upper end is infinite. The interval of a number
    needed to treat is 1 over that of the difference, in two parts where it holds 0 [1]_.

    References
    ----------
    .. [1] Altman, D. G. (1998). Confidence intervals for the number needed to treat. BMJ 317, 1309-1312.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, measure="ratio", noise=noise)
    >>> result.measure, result.means.range
    ('ratio', (0.0, 60.0))
    >>> low, high = result.interval()
    >>> 0 <= low < result.estimate < high
    True
    >>> result.as_measure("lift").estimate == result.estimate - 1
    True
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    measure: str
    numbers: Numbers

    def _site_numbers(self) -> tuple[float, ...]:
        # Ratios of rare outcomes are all zero where noise put the mean of the treated below the range.
        return super(MeasureResult, self)._site_numbers() if self.means is None else self.means.values

    @classmethod
    def of(cls, measure: str, numbers: Numbers, **terms: Any) -> Self:
        """Return the result of released means or of a released difference.

        Parameters
        ----------
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
            Scale of the estimate.
        numbers : IndependentArmMeans, JointArmMeans, PooledMeans or Linear
            What was released.
        **terms : Any
            Provenance and estimand, as the attributes of a result.

        Returns
        -------
        MeasureResult
            The measure with its error.
        """
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
        """Means of both arms with their joint error, in units of the outcome.

        None where the difference alone was released.
        """
        return None if isinstance(self.numbers, Linear) else self.numbers

    @property
    def difference(self) -> Effect:
        """Difference of both arms' means with its error, in units of the outcome."""
        return Effect(self.estimand.value, difference_of(self.numbers), self.level)

    @classmethod
    def of_difference(cls, result: Result) -> MeasureResult:
        """Return the number needed to treat of a released difference.

        Parameters
        ----------
        result : Result
            Difference of mean outcomes in (0, 1).

        Returns
        -------
        MeasureResult
            1 over the difference.
        """
        return cls.of(NEEDED, _linear(result.effect), **measure_terms(result))

    @property
    def effect(self) -> Effect:
        """The measure with its error."""
        return Effect(self._effect_name, known_as(self.measure, self.numbers), self.level)

    @property
    def _effect_name(self) -> str:
        own = self.estimand.value
        name = own if self.measure == DIFFERENCE else f"{MEASURE_NAMES[self.measure]}, {own}"
        return name if self.population is None else f"{name}, trimmed"

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the same released numbers on another scale; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
            Scale: difference of means m1 - m0, ratio m1 / m0, lift m1 / m0 - 1, odds ratio
            m1 (1 - m0) / (m0 (1 - m1)), or number needed to treat 1 / (m1 - m0).

        Returns
        -------
        MeasureResult or Result
            The same release on that scale, with an interval of its own.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Outcomes that have no such measure: CV-P686. A measure of both means,
            where the difference alone was released: CV-P687.
        """
        if self.means is None:
            refuse_of_difference(self.method, self.limits, measure)
        else:
            refuse_range(check_measure(measure), self.means.range)
        if measure == DIFFERENCE and self.means is None:
            return difference_result(self)
        return MeasureResult.of(measure, self.numbers, **measure_terms(self))

    def untruncated_interval(self, level: float | None = None) -> Ends:
        """Return the interval, which is not truncated: a ratio has no range.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, on the scale of the measure; the upper one may be infinite.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
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
        """The measure, alone, as a tuple."""
        return (self.effect,)

    def _columns(self) -> list[dict[str, Any]]:
        return [{"estimand": self.estimand.value, "measure": self.measure}]

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and what the measure is called.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        facts = Result.report_facts(self)
        if self.measure != DIFFERENCE:
            facts |= {"called": measure_noun(self.measure, None if self.means is None else self.means.range)}
        return facts

    def _shown(self) -> dict[str, Any]:
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | {"sentence": self._sentence(), "notes": self._notes()}

    def _notes(self) -> list[tuple[str, str]]:
        notes = [("NNT", needed_sentence(self.effect.facts()))] if self.measure == NEEDED else []
        if self.means is not None:
            notes += [("Estimate", text) for text in replaced_means_words(self.measure, [(None, self.means)])]
            notes.append(("Means", means_words(self.means)))
        if self.measure != DIFFERENCE:
            effect = self.difference
            text = difference_words(
                effect.estimate, effect.std_error.total, effect.interval(), effect.p_value
            )
            notes.append(("Difference", text))
        return notes

    def _sentence(self) -> str:
        return self._sentence_in("study")

    def _sentence_in(self, where: str) -> str:
        return measure_sentence(self.measure, self.estimand, where=where, population=self.population)


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
    """Results side by side, a column each: what `counterveil.etable` returns. It spends nothing.

    Attributes
    ----------
    results : tuple of ReleasedAnswer, Regression or Compliance
        The results, in the order of the columns.
    names : tuple of str
        Names of the columns.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1)}
    >>> first = cv.ate(trial.frame, trial.study, method="difference_in_means", **ask)
    >>> second = cv.ate(trial.frame, trial.study, **ask)
    >>> table = cv.etable({"unadjusted": first, "weighted": second})
    >>> table.names
    ('unadjusted', 'weighted')
    >>> [row["column"] for row in table.tidy()]
    ['unadjusted', 'weighted']
    """

    results: tuple[ReleasedAnswer | Regression | Compliance, ...]
    names: tuple[str, ...]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of all results, each with the name of its column."""
        pairs = zip(self.names, self.results, strict=True)
        return [{"column": name} | row for name, result in pairs for row in result._rows()]

    def view(self, full: bool = False) -> View:
        """Return what is shown: the table, and how its cells are read.

        Parameters
        ----------
        full : bool, default False
            True for every column's guarantee too.

        Returns
        -------
        View
            Title, tables and lines of text.
        """
        return side_by_side([result.report_facts() for result in self.results], self.names, full)

    def drawn_facts(self) -> dict[str, Any]:
        """Return the effects of all columns, for one forest.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return drawn_side_by_side([result.report_facts() for result in self.results], self.names)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the first column that warns, else of the first column."""
        found = [result.guarantee for result in self.results]
        return next((one for one in found if one.warning), found[0])

    @property
    def spent(self) -> str:
        """What each column cost, in words."""
        return "; ".join(f"{name} {one.spent}" for name, one in zip(self.names, self.results, strict=True))

    def __repr__(self) -> str:
        return f"<ResultTable: {', '.join(self.names)}>"


def etable(results: Iterable[Shown] | Mapping[str, Shown]) -> ResultTable:
    """Return several results as one table: a column each, as in pyfixest.

    Parameters
    ----------
    results : iterable or mapping of results
        What `ate`, `arms`, `groups`, `outcomes`, `survival`, `event_study`, `cate`, `pool` and
        ``moments(...).regress(...)`` returned. A mapping names the columns; else they are (1), (2), ...

    Returns
    -------
    ResultTable
        Effects with standard errors, intervals and what each column spent; `to_latex`, `to_html` and `plot`
        work as on a result.

    Raises
    ------
    CounterveilError
        No results, or something that is none: CV-P029.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1)}
    >>> unadjusted = cv.ate(trial.frame, trial.study, method="difference_in_means", **ask)
    >>> weighted = cv.ate(trial.frame, trial.study, **ask)
    >>> table = cv.etable([unadjusted, weighted])
    >>> table.names
    ('(1)', '(2)')
    """
    named = results if isinstance(results, Mapping) else dict(enumerate(results, 1))
    columns = [one for one in named.values() if isinstance(one, ReleasedAnswer | Regression | Compliance)]
    others = [one for one in named.values() if not any(one is each for each in columns)]
    if others or not columns:
        raise refusal("CV-P029", kind=type(others[0]).__name__ if others else "nothing")
    names = tuple(f"({name})" if isinstance(name, int) else str(name) for name in named)
    return ResultTable(tuple(columns), names)

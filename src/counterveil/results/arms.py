"""The answers about several arms, several outcomes, and periods: effects with simultaneous intervals.

In: the released means or differences of a question, with the distribution of their noise. Out: tables of
effects in units of the outcome, comparisons of any two arms or of weighted sums of arms,

    sum_a c_a m_a,    variance = sum_a c_a^2 v_a + covariances,

with c_a public weights, m_a the released mean of arm a and v_a its variance, and simultaneous intervals, each
of the level L^(1/m) for m effects (Sidak; `inference/simultaneous.proof.md`). Means of different arms are
those of different people with noise of their own, so that errors are independent but for what was released
about them together. All of it is post-processing; the pages that prove the release are in the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import mul
from typing import Any, ClassVar, cast

import numpy as np

from counterveil.data import Study
from counterveil.data.domains import Label
from counterveil.errors import ParameterError, refusal
from counterveil.inference.arm_means import IndependentArmMeans
from counterveil.inference.estimates import Known
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import NoiseSum, weighted_sum
from counterveil.inference.quotient import DIFFERENCE
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Estimand, exact
from counterveil.report.answer_words import (
    REFERENCE_PERIOD,
    outcomes_sentence,
    outcomes_title,
    periods_sentence,
    periods_title,
    pre_trends_note,
)
from counterveil.report.measure_words import measure_noun, measure_sentence, replaced_means_words
from counterveil.results.effect import (
    ByName,
    Effect,
    EffectTable,
    FactsOf,
    Linear,
    check_table,
    intervals_by,
    prefetch_intervals,
)
from counterveil.results.measures import (
    OF_MEANS,
    Measure,
    Numbers,
    check_measure,
    difference_of,
    known_as,
    no_means,
    refuse_range,
)
from counterveil.results.released import ReleasedAnswer
from counterveil.results.result import Comparison
from counterveil.results.site_bounds import (
    Bound,
    Breach,
    Equal,
    PublicShape,
    SiteFigure,
    of_one_site,
    of_public_size,
)

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """Covariances of the errors of every two arms' means; 0 on the diagonal.

    Attributes
    ----------
    sampling : tuple of tuple of float
        Covariances of sampling errors, arms by arms, in squared units of the outcome.
    noise : tuple of tuple of float
        Covariances of privacy noise, arms by arms.
    """

    sampling: Matrix
    noise: Matrix

    def added(self, weights: Floats, places: Sequence[int] | slice = slice(None)) -> tuple[float, float]:
        """Return what they add to both variances of a weighted sum of means.

        Parameters
        ----------
        weights : ndarray of float, shape (k,)
            Weights of the means.
        places : sequence of int or slice, optional
            Which arms the weights are of; all by default.

        Returns
        -------
        tuple of (float, float)
            What is added to the sampling variance and to the noise variance; may be negative.
        """
        own = (np.array(one)[places][:, places] for one in (self.sampling, self.noise))
        sampling, noise = (float(weights @ one @ weights) for one in own)
        return sampling, noise


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ArmsResult(Comparison):
    """Released means of several arms, and their effects: what `counterveil.arms` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    means : tuple of Effect
        Mean outcome that everybody would have in each arm, the reference first. `name` is the arm's label,
        `size` its rows where they are known.
    shared : Shared or None
        Covariances of the errors of the means; None where they are independent.
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
    The effect of arm a is m_a - m_0, the average treatment effect of a against the reference 0. Its interval
    is that of one effect; those of ``interval(simultaneous=True)`` hold together (Šidák), also where arms
    share a reference.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = {
    ...     "dose": [("placebo", "low", "high")[row % 3] for row in range(600)],
    ...     "relief": [0.2 + 0.2 * (row % 3) + 0.1 * (row % 2) for row in range(600)],
    ... }
    >>> study = cv.Study(
    ...     cv.Treatment("dose", arms=("placebo", "low", "high"), reference="placebo"),
    ...     cv.Outcome("relief", (0, 1)),
    ...     assignment=cv.Trial(),
    ... )
    >>> result = cv.arms(trial, study, protects="outcome", epsilon=5, noise=cv.SeededNoise(1))
    >>> [mean.name for mean in result.means]
    ['placebo', 'low', 'high']
    >>> [effect.name for effect in result.pairwise()]
    ['low - placebo', 'high - placebo', 'high - low']
    >>> low, high = result.interval()["low"]
    >>> wide_low, wide_high = result.interval(simultaneous=True)["low"]
    >>> wide_low < low < high < wide_high
    True
    """

    _SAME_AT_SITES: ClassVar[tuple[str, ...]] = ("reference",)
    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ("means",)

    means: tuple[Effect, ...]
    shared: Shared | None = None

    @property
    def reference(self) -> Label:
        """Label of the arm that the others are compared with."""
        return self.means[0].name

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect of every other arm against the reference, in the order of the study."""
        several = len(self.means) - 1
        return tuple(self._contrast(place, 0, several) for place in range(1, several + 1))

    def _contrast(self, place: int, reference: int, several: int) -> Effect:
        """Return the effect of one arm against another, one of `several`."""
        means, weights = (self.means[place], self.means[reference]), [1.0, -1.0]
        added = self._added(weights, [place, reference])
        return replace(weighted(means, weights, f"{means[0].name} - {means[1].name}", added), several=several)

    def _added(
        self, weights: list[float], places: Sequence[int] | slice = slice(None)
    ) -> tuple[float, float]:
        return (0.0, 0.0) if self.shared is None else self.shared.added(np.array(weights), places)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[Label, Ends]:
        """Return every effect's interval by arm.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.
        simultaneous : bool, default False
            True for intervals that hold together (Šidák).

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end of each arm's effect against the reference, in units of the outcome.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        return intervals_by([mean.name for mean in self.means[1:]], self.table, level, simultaneous)

    def pairwise(self) -> EffectTable:
        """Return every arm's effect against each one before it; it spends nothing.

        Returns
        -------
        EffectTable
            Effects named "b - a". Their simultaneous intervals and adjusted p-values count all pairs (Šidák).
        """
        pairs = list(combinations(range(len(self.means)), 2))
        return EffectTable(self._contrast(later, earlier, len(pairs)) for earlier, later in pairs)

    def slope(self, doses: Mapping[Any, float] | None = None) -> Effect:
        """Return the change of the mean outcome per unit of a dose; it spends nothing.

        Parameters
        ----------
        doses : mapping of arm to float, optional
            Dose of every arm. By default labels that are numbers are their own doses, and a dose that was cut
            has the middles of its cells.

        Returns
        -------
        Effect
            Slope of the least-squares line through the means, in units of the outcome per unit of dose.

        Raises
        ------
        CounterveilError
            An arm without a dose, a dose without an arm, or doses that are all the same: CV-P797.

        Notes
        -----
        With weights w_a the slope is the sum of w_a (x_a - x) m_a over that of w_a (x_a - x)^2, x being the
        weighted mean dose. An arm weighs n_a / (1 + n_a (s_a / s)^2), with n_a its rows (1 where they are not
        known), s_a the standard deviation of its noise and s a sixth of the outcome's range.
        """
        counts = np.array([_worth(mean) for mean in self.means])
        x = self._doses(doses)
        x = x - counts @ x / counts.sum()
        weights = (counts * x / float(counts @ x**2)).tolist()
        return weighted(self.means, weights, "slope", self._added(weights))

    def dose_response(self, doses: Mapping[Any, float] | None = None) -> list[dict[str, float]]:
        """Return the mean outcome at every dose; it spends nothing.

        Parameters
        ----------
        doses : mapping of arm to float, optional
            Dose of every arm. By default labels that are numbers are their own doses, and a dose that was cut
            has the middles of its cells.

        Returns
        -------
        list of dict
            By rising dose ``dose``, ``estimate``, ``conf_low``, ``conf_high``, and a band that holds at all
            doses, ``band_low`` and ``band_high``.

        Raises
        ------
        CounterveilError
            An arm without a dose, a dose without an arm, or doses that are all the same: CV-P797.
        """
        x, rows = self._doses(doses), []
        for arm in np.argsort(x, kind="stable"):
            mean = replace(self.means[arm], several=len(self.means))
            (low, high), (least, most) = mean.interval(), mean.interval(simultaneous=True)
            ends = {"conf_low": low, "conf_high": high, "band_low": least, "band_high": most}
            rows.append({"dose": float(x[arm]), "estimate": mean.estimate} | ends)
        return rows

    def _doses(self, doses: Mapping[Any, float] | None) -> Floats:
        """Return every arm's dose, or raise CV-P797."""
        names = [mean.name for mean in self.means]
        declared: Any = {name: name for name in names} if doses is None else doses
        try:
            x = np.array([float(exact(declared[name], "doses")) for name in names])
        except (LookupError, TypeError, OverflowError, ParameterError):
            x = np.zeros(1)
        # Beyond these their squares are no doubles, or they differ by no more than rounding.
        if not max(1e-100, 1e-12 * abs(x).max()) < np.ptp(x) < 1e100 or len(declared) != len(x):
            raise refusal("CV-P797", arms=", ".join(map(repr, names)), doses=declared)
        return x

    @property
    def _arm_means(self) -> Sequence[Effect]:
        return [each for mean in self.means[1:] for each in (mean, self.means[0])]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {
                "contrast": f"{mean.name} - {self.reference}",
                "arm": mean.name,
                "reference": self.reference,
                "estimand": Estimand.ATE.value,
            }
            for mean in self.means[1:]
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "estimand": Estimand.ATE.value,
            "reference": self.reference,
            "effects": FactsOf(
                self.table, [{"arm": one.name, "reference": self.reference} for one in self.means[1:]]
            ),
            "arm_means": FactsOf(self.means),
        }

    def _site_bounds(self, shape: PublicShape) -> Iterator[Bound]:
        """Yield what a site may say of it: a mean of every arm, in the range of the outcome, of a public size."""
        (ends,) = shape.ranges
        names = tuple(mean.name for mean in self.means)
        yield Equal("arms", names, shape.names, breach=Breach.QUESTION)
        for mean in self.means:
            yield from of_one_site(mean.known, ends)
            yield from of_public_size(mean)

    def _check(self) -> None:
        Comparison._check(self)
        linear = [mean for mean in self.means if isinstance(mean.known, Linear) and mean.level == self.level]
        if len(self.means) < 2 or linear != [*self.means]:
            raise ValueError("several arms have means, which are linear")
        if self.shared is not None:
            count = len(self.means)
            for matrix in map(np.array, (self.shared.sampling, self.shared.noise)):
                if matrix.shape != (count, count) or not np.isfinite(matrix).all():
                    raise ValueError("covariances are those of every two arms")


def _worth(mean: Effect) -> float:
    """Return how many people without noise an arm's mean is worth, if outcomes have `_ASSUMED_SD`."""
    known, size = mean.known, 1.0 if mean.size is None else mean.size
    assert isinstance(known, Linear)
    if known.limits is None:
        return size
    low, high = known.limits
    return size / (1 + size * (known.uncertainty.noise_sd / (_ASSUMED_SD * (high - low))) ** 2)


# Standard deviation of outcomes in parts of their range, assumed only for how much each arm counts.
_ASSUMED_SD = 1 / 6


def weighted(
    means: Sequence[Effect], weights: list[float], name: str, added: tuple[float, float] = (0.0, 0.0)
) -> Effect:
    """Return a sum of means of different people with public weights.

    Their errors are independent, but for covariances that add to the variances of sampling and of noise.
    """
    known = [mean.known for mean in means if isinstance(mean.known, Linear)]
    errors = [mean.uncertainty for mean in known if isinstance(mean.uncertainty, Uncertainty)]
    assert len(errors) == len(means)
    squares = [weight**2 for weight in weights]
    sizes = [abs(weight) for weight in weights]
    uncertainty = Uncertainty(
        # Noise is symmetric: its sign does not matter.
        noise=_sum(sizes, [error.noise for error in errors]),
        variance=sum(map(mul, squares, [error.variance for error in errors])) + added[0],
        variance_cap=sum(map(mul, squares, [error.variance_cap for error in errors])) + added[0],
        variance_noise=_sum(squares, [error.variance_noise for error in errors]),
        extra=max(sum(map(mul, squares, [error.extra for error in errors])) + added[1], 0.0),
        bias=sum(map(mul, sizes, [error.bias for error in errors])),
    )
    limits = None
    if all(mean.limits is not None for mean in known):
        ends = [sorted(w * end for end in mean.limits or ()) for w, mean in zip(weights, known, strict=True)]
        limits = (sum(low for low, _ in ends), sum(high for _, high in ends))
    estimate = sum(map(mul, weights, [mean.estimate for mean in known]))
    return Effect(name, Linear(estimate, uncertainty, limits), means[0].level)


def _sum(weights: list[float], noises: list[NoiseDistribution | None]) -> NoiseDistribution | None:
    """Return the noise of a weighted sum; None where none of its parts has any."""
    if weights == [1.0, 1.0] and noises[0] is not None and noises[1] is not None:
        return NoiseSum(noises[0], noises[1])
    return weighted_sum(np.array(weights), noises)


def refuse_several_arms(study: Study, ratio: bool = False) -> None:
    """Raise CV-S063 where a question about two arms is asked of a study of several.

    Questions that do not take a `ratio` as their outcome refuse it with CV-S022.
    """
    refuse_several_outcomes(study)
    if study.denominator is not None and not ratio:
        raise refusal("CV-S022", denominator=study.denominator.column)
    if study.arms is not None:
        raise refusal("CV-S063", arms=study.arms)


def refuse_several_outcomes(study: Study) -> None:
    """Raise CV-S141 where a question about one outcome is asked of a study of several."""
    if study.several is not None:
        raise refusal(
            "CV-S141",
            names=", ".join(map(repr, study.several.names[:3])),
            more=", ..." * (len(study.several.names) > 3),
        )


@dataclass(frozen=True, slots=True)
class OutcomeEffect:
    """What was released about one outcome and one arm: a difference, or the means of both arms.

    Attributes
    ----------
    outcome : str
        Column of the outcome.
    arm : str, int, float or None
        Arm that is compared with the reference; None where there are two arms.
    numbers : IndependentArmMeans, JointArmMeans, PooledMeans or Linear
        Means of both arms with their joint error, or their difference.
    """

    outcome: str
    arm: Label | None
    numbers: Numbers

    @property
    def name(self) -> str:
        """Name of the effect in a table: the outcome, with the arm where there are several."""
        return self.outcome if self.arm is None else f"{self.outcome}: {self.arm}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OutcomesResult(ByName, Comparison):
    """Released effects on several outcomes, the primary one first: what `counterveil.outcomes` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    released : tuple of OutcomeEffect
        Numbers behind the effects, in the order of the study.
    measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
        Scale that effects are shown on.
    estimand : Estimand
        Population over which effects are averaged.
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
    >>> visits = {
    ...     "new": [row % 2 for row in range(400)],
    ...     "visits": [3 + row % 2 + row % 5 for row in range(400)],
    ...     "spend": [100 + 50 * (row % 2) + row % 7 for row in range(400)],
    ... }
    >>> outcomes = cv.Outcomes({"visits": (0, 30), "spend": (0, 500)})
    >>> study = cv.Study("new", outcomes, assignment=cv.Trial())
    >>> result = cv.outcomes(visits, study, protects="outcome", epsilon=5, noise=cv.SeededNoise(1))
    >>> result.primary.name
    'visits'
    >>> low, high = result.effect("spend").interval()
    >>> low < 50 < high
    True
    >>> result.holm_p_values["spend"] < 0.01
    True
    """

    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ("released",)

    released: tuple[OutcomeEffect, ...]
    measure: str
    estimand: Estimand

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect on every outcome, of every arm, in the order of the study."""
        return tuple(self._effect(released) for released in self.released)

    def _effect(self, released: OutcomeEffect) -> Effect:
        return replace(self._difference(released), known=known_as(self.measure, released.numbers))

    def _difference(self, released: OutcomeEffect) -> Effect:
        return Effect(released.name, difference_of(released.numbers), self.level, len(self.released))

    def effect(self, outcome: str, arm: Label | None = None) -> Effect:
        """Return the effect on an outcome.

        Parameters
        ----------
        outcome : str
            Column of the outcome.
        arm : str, int or float, optional
            Arm against the reference; needed where there are several.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value, on the scale of `measure`.

        Raises
        ------
        KeyError
            No such effect, or several; the message lists those there are.
        """
        effects = [
            effect
            for released, effect in zip(self.released, self.table, strict=True)
            if released.outcome == outcome and (arm is None or released.arm == arm)
        ]
        if len(effects) != 1:
            asked = f"{outcome!r}" if arm is None else f"{outcome!r}, {arm!r}"
            raise KeyError(f"{asked}; the effects are {[released.name for released in self.released]}")
        return effects[0]

    @property
    def primary(self) -> Effect:
        """Effect on the primary outcome, of the first arm."""
        return self.table[0]

    @property
    def holm_p_values(self) -> dict[str, float]:
        """P-values by effect, adjusted for looking at all effects by Holm's (1979) method."""
        effects = self.table
        prefetch_intervals(effects)
        return holm({str(effect.name): effect.careful_p_value for effect in effects})

    def as_measure(self, measure: Measure) -> OutcomesResult:
        """Return the same released numbers on another scale; it spends nothing.

        Parameters
        ----------
        measure : {"difference", "ratio", "lift", "odds_ratio", "nnt"}
            Scale: difference of means m1 - m0, ratio m1 / m0, lift m1 / m0 - 1, odds ratio
            m1 (1 - m0) / (m0 (1 - m1)), or number needed to treat 1 / (m1 - m0).

        Returns
        -------
        OutcomesResult
            The same release on that scale.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Outcomes that have no such measure: CV-P686. A measure of both means,
            where a difference alone was released: CV-P687.
        """
        check_measure(measure)
        if measure in OF_MEANS and any(isinstance(released.numbers, Linear) for released in self.released):
            raise no_means(self.method, f"measure={measure!r}, of which the difference alone was released")
        for released in self.released:
            refuse_range(measure, _range(released.numbers))
        return replace(self, measure=measure)

    @property
    def _compared(self) -> Sequence[Effect]:
        return tuple(self._difference(released) for released in self.released)

    @property
    def _arm_means(self) -> Sequence[Effect]:
        if any(not isinstance(released.numbers, IndependentArmMeans) for released in self.released):
            return ()
        return [
            Effect(released.name, Linear(value, error, released.numbers.range), self.level)
            for released in self.released
            if isinstance(released.numbers, IndependentArmMeans)
            for value, error in zip(released.numbers.values, released.numbers.known, strict=True)
        ]

    def _columns(self) -> list[dict[str, Any]]:
        adjusted = self.holm_p_values
        return [
            {"outcome": released.outcome}
            | ({} if released.arm is None else {"arm": released.arm})
            | {
                "primary": released.outcome == self.released[0].outcome,
                "estimand": self.estimand.value,
                "measure": self.measure,
                "holm_p_value": adjusted[released.name],
            }
            for released in self.released
        ]

    def _shown(self) -> dict[str, Any]:
        adjusted = self.holm_p_values
        sentence = self.estimand.sentence
        if self.measure != DIFFERENCE:
            sentence = measure_sentence(self.measure, self.estimand)
        names = list(dict.fromkeys(released.outcome for released in self.released))
        return {
            "title": outcomes_title(self.treatment, len(names)),
            "sentence": outcomes_sentence(sentence, names[0]),
            "effects": [
                effect.facts() | {"holm_p_value": adjusted[str(effect.name)]} for effect in self.table
            ],
        }

    def report_facts(self) -> dict[str, Any]:
        """Return what reports and pictures show: the facts of `to_dict`, and how estimates are read.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        facts = Comparison.report_facts(self)
        if self.measure == DIFFERENCE:
            return facts
        ranges = {_range(released.numbers) for released in self.released}
        rows = [(one.name, one.numbers) for one in self.released if not isinstance(one.numbers, Linear)]
        notes = [("Estimate", text) for text in replaced_means_words(self.measure, rows)]
        name = measure_noun(self.measure, ranges.pop() if len(ranges) == 1 else None)
        return facts | {"called": name} | ({"notes": notes} if notes else {})

    def _site_figures(self) -> list[SiteFigure]:
        return [SiteFigure(released.name, released.numbers) for released in self.released]

    def _site_bounds(self, shape: PublicShape) -> Iterator[Bound]:
        """Yield what a site may say of it: an effect of both arms on every outcome, with the error of one site."""
        names = tuple(released.outcome for released in self.released)
        yield Equal("outcomes", names, shape.names, breach=Breach.QUESTION)
        yield Equal("measure", self.measure, shape.measure, breach=Breach.QUESTION)
        yield Equal("estimand", self.estimand.value, shape.estimand, breach=Breach.QUESTION)
        for released, limits in zip(self.released, shape.ranges, strict=True):
            yield Equal("arm", released.arm, None, breach=Breach.KIND)
            yield from of_one_site(cast("Known", released.numbers), limits)

    def _check(self) -> None:
        Comparison._check(self)
        differences = [isinstance(released.numbers, Linear) for released in self.released]
        if not self.released or (check_measure(self.measure) in OF_MEANS and any(differences)):
            raise ValueError("the means of both arms are missing")


def _range(numbers: Numbers) -> Ends:
    """Return the range of outcomes; that of a difference says how wide it is."""
    if not isinstance(numbers, Linear):
        return numbers.range
    return (0.0, 1.0) if numbers.limits is None else (0.0, numbers.limits[1])


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """Return p-values adjusted for looking at all of them, by Holm's method."""
    adjusted: dict[str, float] = {}
    largest, count = 0.0, len(p_values)
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (count - rank) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EventStudyResult(ByName, ReleasedAnswer):
    """Released effects by period, relative to a reference period: what `counterveil.event_study` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    periods : tuple of Effect
        Effects as released, in the order of time, without the reference.
    reference : str, int or float
        Period before treatment that the others are compared with; its effect is 0 by definition.
    place : int
        Position of the reference among all periods, from 0.
    earlier : int
        Number of periods before treatment, the reference included.
    estimand : Estimand
        Population over which effects are averaged.
    reference_noise : NoiseDistribution or None
        Privacy noise of the reference period, which all effects share; None where changes were released.
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
    The effect of period t is E[Y_t - Y_r] among the treated less that among the untreated, r being the
    reference. In an observational study it is that of the treated if trends are parallel, which effects
    before treatment can contradict but not show.

    Examples
    --------
    >>> import counterveil as cv
    >>> workers = {
    ...     "programme": [row % 2 for row in range(400)],
    ...     "y2015": [10 + row % 3 for row in range(400)],
    ...     "y2016": [11 + row % 3 for row in range(400)],
    ...     "y2017": [12 + row % 3 + 4 * (row % 2) for row in range(400)],
    ... }
    >>> change = cv.Change("y2017", (0, 30), before=["y2015", "y2016"])
    >>> study = cv.Study("programme", change, assignment=cv.Observational())
    >>> result = cv.event_study(workers, study, protects="outcome", epsilon=8, noise=cv.SeededNoise(1))
    >>> result.reference, [effect.name for effect in result.before], [effect.name for effect in result.after]
    ('y2016', ['y2015'], ['y2017'])
    >>> result.pre_trend_p_value > 0.05
    True
    >>> low, high = result.effect("y2017").interval()
    >>> low < 4 < high
    True
    """

    _PLOT: ClassVar[str] = "event_study"
    periods: tuple[Effect, ...]
    reference: Label
    place: int
    earlier: int
    estimand: Estimand
    reference_noise: NoiseDistribution | None = None

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect of every period but the reference, in the order of time."""
        if self.reference_noise is None:
            return self.periods
        return tuple(replace(one, known=self._with_reference(one)) for one in self.periods)

    def _with_reference(self, period: Effect) -> Linear:
        known = period.known
        assert isinstance(known, Linear)
        assert isinstance(known.uncertainty, Uncertainty)
        noise = known.uncertainty.noise
        assert noise is not None
        assert self.reference_noise is not None
        both = replace(known.uncertainty, noise=NoiseSum(noise, self.reference_noise))
        return replace(known, uncertainty=both)

    @property
    def before(self) -> tuple[Effect, ...]:
        """Effects of periods before treatment, where parallel trends would leave none."""
        return self.table[: self.earlier - 1]

    @property
    def after(self) -> tuple[Effect, ...]:
        """Effects of periods after treatment started."""
        return self.table[self.earlier - 1 :]

    @property
    def pre_trend_p_value(self) -> float | None:
        """P-value of no effect in all periods before treatment (Bonferroni).

        None where the reference is the only period before treatment.
        """
        return min(1.0, len(self.before) * min(one.p_value for one in self.before)) if self.before else None

    def _columns(self) -> list[dict[str, Any]]:
        sides = ["before"] * (self.earlier - 1) + ["after"] * len(self.after)
        return [
            {
                "period": period.name,
                "reference": self.reference,
                "side": side,
                "estimand": self.estimand.value,
            }
            for period, side in zip(self.periods, sides, strict=True)
        ]

    def _shown(self) -> dict[str, Any]:
        p = self.pre_trend_p_value
        return {
            "title": periods_title(self.treatment, self.outcome),
            "sentence": periods_sentence(self.estimand, self.reference),
            "effects": [
                effect.facts() | {"before_treatment": position < self.earlier - 1}
                for position, effect in enumerate(self.table)
            ],
            "reference_row": {"place": self.place, "name": str(self.reference), "word": REFERENCE_PERIOD},
            "pre_trend_p_value": p,
            "notes": [pre_trends_note(p, len(self.before))],
        }

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        if not 1 <= self.earlier <= len(self.periods) or not 0 <= self.place < self.earlier:
            raise ValueError("the reference is a period before treatment")
        check_table(self.periods, self.level)
        if not all(isinstance(one.known, Linear) for one in self.periods):
            raise ValueError("effects by period are linear")

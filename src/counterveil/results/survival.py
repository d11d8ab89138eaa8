"""The answers about times to an event and about quantiles: curves, differences, tests and ratios.

In: released tables of events or of outcomes by cell, with the variance of their noise. Out, computed from
them when asked for: probabilities at times, restricted means and quantiles in units of the times (or
outcomes), the log-rank test, hazard ratios, and bands. How: `inference/survival/answers.py`. The tables'
release is proved in `rows/time_tables.proof.md` and `rows/distribution.proof.md`; all else is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, log
from typing import Any, ClassVar, Literal

from counterveil.errors import refusal
from counterveil.inference.estimates import Known, OwnScale, Transformed
from counterveil.inference.p_values import p_value
from counterveil.inference.survival.answers import SurvivalAnswers, answers_of
from counterveil.inference.survival.areas import AreaRatio
from counterveil.inference.survival.crossings import Crossing, CrossingGap
from counterveil.inference.survival.distributions import NoisyHistograms, distributions_of
from counterveil.inference.survival.hazard_ratio import HazardRatio
from counterveil.inference.survival.log_rank import LogRank, log_rank_of
from counterveil.inference.survival.probabilities import Complement
from counterveil.inference.survival.tables import NoisyTables
from counterveil.numerics.arrays import Ends
from counterveil.report.answer_words import effect_title
from counterveil.report.survival_words import (
    HAZARD_RATIO,
    QUANTILES_SENTENCE,
    CauseFigures,
    Figure,
    distribution_title,
    hazard_ratio_name,
    incidence_difference_name,
    mean_time_difference_name,
    quantile_note,
    restricted_mean_name,
    survival_difference_name,
    survival_notes,
    survival_sentence,
)
from counterveil.report.text import quantile_name
from counterveil.results.effect import ByName, Effect, check_level, intervals_by
from counterveil.results.figures import finite, interval_facts
from counterveil.results.released import ReleasedAnswer
from counterveil.results.site_bounds import Bound, Breach, Equal, OneOf, PublicShape

# The arms in the order of tables.
ARMS = ("control", "treated")
ArmName = Literal["control", "treated"] | str


@dataclass(frozen=True, slots=True)
class OpenEnded(Transformed, OwnScale):
    """A number whose interval may have no end: a hazard ratio, a quantile, or the difference of two.

    Attributes
    ----------
    known : HazardRatio, Crossing or CrossingGap
        The number with its error.
    """

    known: HazardRatio | Crossing | CrossingGap

    @property
    def time(self) -> bool:
        """Whether it is a quantile, or the difference of two."""
        return not isinstance(self.known, HazardRatio)

    @property
    def null(self) -> float:
        """Value of no effect: 1 of a hazard ratio, else 0."""
        return 1.0 if isinstance(self.known, HazardRatio) else 0.0

    @property
    def source(self) -> HazardRatio | Crossing | CrossingGap:
        """The number itself: it has the scale that is shown."""
        return self.known

    def p_value(self, level: float, value: float | None = None) -> float:  # noqa: ARG002 - noise is in the variance
        """Return the two-sided p-value of a value.

        Parameters
        ----------
        level : float
            Not used: noise is in the variance.
        value : float, optional
            Value that is tested; no effect by default.

        Returns
        -------
        float
            P-value, privacy noise included.
        """
        if isinstance(self.known, HazardRatio) and (value is None or value > 0):
            return self.known.score(0.0 if value is None else log(value)).p_value
        return p_value(self.known.interval, 0.0 if value is None else value)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SurvivalResult(ReleasedAnswer):
    """Released tables of events by time, and what follows from them: what `counterveil.survival` returns.

    %FREE% Arms are called "treated" and "control", whatever the labels in the data are. Times are those of
    the grid.

    Attributes
    ----------
    tables : NoisyTables
        Numbers of events and of people by arm and time cell, as released.
    merged_strata : mapping of str to tuple of tuple of str
        By covariate, the labels or bins that were merged into one stratum.
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
    Survival is S(t) = prod over cells up to t of (1 - d_j / n_j) (Kaplan and Meier 1958), d_j being the
    events and n_j the people at risk in cell j, less half of those censored in it unless the study says that
    they are censored at its end. Where a curve is lost in the noise, intervals go from the last known upper
    end down to 0. All effects are read off the same release and spend nothing.

    Examples
    --------
    >>> import counterveil as cv
    >>> people = {
    ...     "arm": [row % 2 for row in range(600)],
    ...     "days": [10 + 7919 * row % 350 for row in range(600)],
    ...     "died": [int(row % 5 != 0) for row in range(600)],
    ... }
    >>> study = cv.Study.from_formula("Surv(days, died) ~ arm", {"days": (0, 360)}, assignment=cv.Trial())
    >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
    >>> [effect.name for effect in result.table]
    ['difference in survival at 360', 'difference in mean time to 360']
    >>> low, high = result.hazard_ratio().interval()
    >>> 0 < low < 1 < high
    True
    >>> result.times[0], result.times[-1]
    (0.0, 360.0)
    """

    _PLOT: ClassVar[str] = "survival"
    _SAME_AT_SITES: ClassVar[tuple[str, ...]] = ("times",)
    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ("tables",)

    tables: NoisyTables
    merged_strata: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @property
    def times(self) -> tuple[float, ...]:
        """Time 0 and the ends of the time cells, in the unit of the data; the last is the horizon."""
        return self.tables.edges[:: self.tables.cut]

    @property
    def _answers(self) -> SurvivalAnswers:
        return answers_of(self.tables)

    def survival(self, arm: ArmName, time: float | None = None) -> Effect:
        """Return the probability of being free of the event in an arm.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.
        time : float, optional
            A time of the grid (`times`). Default: the horizon.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            A time that is not of the grid: CV-P690. An unknown arm: CV-P692.
        """
        position = self._place(time)
        return self._effect(f"{arm} at {self.times[position]:g}", self._answers.at(check_arm(arm), position))

    def difference(self, time: float | None = None) -> Effect:
        """Return the difference of both arms' survival probabilities, treated minus control.

        Parameters
        ----------
        time : float, optional
            A time of the grid (`times`). Default: the horizon.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            A time that is not of the grid: CV-P690.

        Examples
        --------
        >>> import counterveil as cv
        >>> people = {
        ...     "arm": [row % 2 for row in range(600)],
        ...     "days": [10 + 7919 * row % 350 for row in range(600)],
        ...     "died": [int(row % 5 != 0) for row in range(600)],
        ... }
        >>> study = cv.Study.from_formula("Surv(days, died) ~ arm", {"days": (0, 360)}, assignment=cv.Trial())
        >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
        >>> result.difference().name
        'difference in survival at 360'
        """
        position = self._place(time)
        return self._effect(survival_difference_name(self.times[position]), self._answers.gap(position))

    def restricted_mean(self, arm: ArmName) -> Effect:
        """Return the mean time free of the event up to the horizon in an arm.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            An unknown arm: CV-P692.

        Notes
        -----
        The restricted mean is the integral of S(t) from 0 to the horizon, in the unit of the data.
        """
        return self._effect(restricted_mean_name(arm), self._answers.area(check_arm(arm)))

    @property
    def restricted_mean_difference(self) -> Effect:
        """Difference of the restricted means, treated minus control, in the unit of the data."""
        return self._effect(mean_time_difference_name(self.times[-1]), self._answers.area_gap())

    @property
    def restricted_mean_ratio(self) -> AreaRatio:
        """Ratio of the restricted means, treated over control; ends that noise leaves open are infinite."""
        return self._answers.area_ratio()

    @property
    def log_rank(self) -> LogRank:
        """Log-rank test of equal hazards, within strata where there are any; noise is in its variance."""
        return log_rank_of(self.tables)

    def hazard_ratio(self, cause: str | None = None) -> Effect:
        """Return the ratio of hazards, treated over control, within strata where there are any.

        Parameters
        ----------
        cause : str, optional
            Cause of the event, whose own hazards are compared; all events by default.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            A cause that the study does not declare: CV-P694.

        Notes
        -----
        The ratio is that of Cox's model with grouped times: the value at which the score is 0.
        `proportionality` tests that it is the same at all times.

        Examples
        --------
        >>> import counterveil as cv
        >>> people = {
        ...     "arm": [row % 2 for row in range(600)],
        ...     "days": [10 + 7919 * row % 350 for row in range(600)],
        ...     "died": [int(row % 5 != 0) for row in range(600)],
        ... }
        >>> study = cv.Study.from_formula("Surv(days, died) ~ arm", {"days": (0, 360)}, assignment=cv.Trial())
        >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
        >>> ratio = result.hazard_ratio()
        >>> ratio.test("equivalence", margin=2).verdict
        'met'
        """
        return self._effect(HAZARD_RATIO, OpenEnded(self._ratio(cause)))

    def proportionality(self, cause: str | None = None) -> LogRank:
        """Return the test that the hazard ratio does not change along time; noise is in its variance.

        Parameters
        ----------
        cause : str, optional
            Cause of the event; all events by default.

        Returns
        -------
        LogRank
            Statistic and two-sided p-value.

        Raises
        ------
        CounterveilError
            A cause that the study does not declare: CV-P694.
        """
        return self._ratio(cause).proportionality

    def _ratio(self, cause: str | None) -> HazardRatio:
        return HazardRatio(self.tables, None if cause is None else self._cause(cause))

    def quantile(self, arm: ArmName, prob: float = 0.5) -> Effect:
        """Return the time by which a part of an arm had the event.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.
        prob : float, default 0.5
            Probability of the quantile, in (0, 1); 0.5 is the median.

        Returns
        -------
        Effect
            Time in the unit of the data, with its interval; infinite where it is not reached by the horizon.

        Raises
        ------
        CounterveilError
            An unknown arm: CV-P692. A probability outside (0, 1): CV-P693.

        Examples
        --------
        >>> import counterveil as cv
        >>> people = {
        ...     "arm": [row % 2 for row in range(600)],
        ...     "days": [10 + 7919 * row % 350 for row in range(600)],
        ...     "died": [int(row % 5 != 0) for row in range(600)],
        ... }
        >>> study = cv.Study.from_formula("Surv(days, died) ~ arm", {"days": (0, 360)}, assignment=cv.Trial())
        >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
        >>> low, high = result.quantile("treated").interval()
        >>> 0 < low < high <= 360
        True
        """
        known = OpenEnded(self._crossing(arm, prob))
        return self._effect(f"{quantile_name(prob)}, {arm}", known)

    def quantile_difference(self, prob: float = 0.5) -> Effect:
        """Return the difference of both arms' quantiles, treated minus control.

        Parameters
        ----------
        prob : float, default 0.5
            Probability of the quantile, in (0, 1); 0.5 is the median.

        Returns
        -------
        Effect
            Difference in the unit of the data: infinite where one arm's quantile is not reached by the
            horizon, not a number where neither is (printed as "not reached"). Ends of its interval are
            infinite where a quantile may lie beyond the horizon.

        Raises
        ------
        CounterveilError
            A probability outside (0, 1): CV-P693.
        """
        gap = CrossingGap(self._crossing("treated", prob), self._crossing("control", prob))
        return self._effect(quantile_name(prob, difference=True), OpenEnded(gap))

    def _crossing(self, arm: str, prob: float) -> Crossing:
        return Crossing(self._answers, check_arm(arm), 1 - check_prob(prob))

    def incidence(self, cause: str, arm: ArmName, time: float | None = None) -> Effect:
        """Return the probability of having had the event of one cause.

        Parameters
        ----------
        cause : str
            Cause that the study declares.
        arm : {"treated", "control"}
            Which arm.
        time : float, optional
            A time of the grid (`times`). Default: the horizon.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            A time that is not of the grid: CV-P690. An unknown arm: CV-P692. An unknown cause: CV-P694.

        Notes
        -----
        The cumulative incidence (Aalen and Johansen 1978) is the sum of S(t_j-) d_jk / n_j over cells up to
        the time, d_jk being the events of cause k.
        """
        position, answers = self._place(time), answers_of(self.tables, self._cause(cause))
        name = f"{cause}, {arm} at {self.times[position]:g}"
        return self._effect(name, Complement(answers.at(check_arm(arm), position)))

    def incidence_difference(self, cause: str, time: float | None = None) -> Effect:
        """Return the difference of both arms' probabilities of one cause, treated minus control.

        Parameters
        ----------
        cause : str
            Cause that the study declares.
        time : float, optional
            A time of the grid (`times`). Default: the horizon.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        CounterveilError
            A time that is not of the grid: CV-P690. An unknown cause: CV-P694.
        """
        position, gap_at = self._place(time), answers_of(self.tables, self._cause(cause)).gap
        gap = gap_at(position)
        name = incidence_difference_name(cause, self.times[position])
        return self._effect(name, replace(gap, one=gap.other, other=gap.one))

    def _cause(self, cause: str) -> int:
        if cause in self.tables.causes:
            return self.tables.causes.index(cause)
        raise refusal("CV-P694", causes=", ".join(map(repr, self.tables.causes)) or "none", cause=cause)

    def at_risk(self, arm: ArmName) -> tuple[float, ...]:
        """Return how many people were under observation when each cell began.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.

        Returns
        -------
        tuple of float
            Numbers of people as released, with noise: they may be fractions, and negative.

        Raises
        ------
        CounterveilError
            An unknown arm: CV-P692.
        """
        return tuple(map(float, self._answers.curves.people[check_arm(arm)][:: self.tables.cut]))

    def known_until(self, arm: ArmName) -> float:
        """Return the last time at which an arm's curve is not lost in the noise.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.

        Returns
        -------
        float
            Time in the unit of the data.

        Raises
        ------
        CounterveilError
            An unknown arm: CV-P692.
        """
        slack = self._answers.curves.slack[check_arm(arm)][:: self.tables.cut]
        return self.times[max(position for position in range(len(self.times)) if slack[position] == 0)]

    def curves(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return the survival curves of both arms and their difference, as rows.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        list of dict
            For each arm, and for the difference, a row per time: ``arm``, ``time``, ``estimate``, the
            interval at this time alone (``low``, ``high``), and a band that holds at all times (``band_low``,
            ``band_high``).

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        chosen = self.level if level is None else check_level(level)
        rows = []
        for arm, arms in ((0, (0,)), (1, (1,)), (None, (0, 1))):
            band_level = self._answers.band_level(chosen, arms)
            for position, time in enumerate(self.times):
                known = self._answers.gap(position) if arm is None else self._answers.at(arm, position)
                rows.append(self._row(arm, time, known, chosen, band_level))
        return rows

    def _row(
        self, arm: int | None, time: float, known: Known, level: float, band_level: float
    ) -> dict[str, Any]:
        names = ("low", "high", "band_low", "band_high")
        if time == 0:
            certain = 0.0 if arm is None else 1.0
            ends = dict.fromkeys(names, certain)
        else:
            ends = dict(zip(names, (*known.interval(level), *known.interval(band_level)), strict=True))
        word = "difference" if arm is None else ARMS[arm]
        return {"arm": word, "time": time, "estimate": known.estimate} | ends

    def _effect(self, name: str, known: Known) -> Effect:
        return Effect(name, known, self.level)

    def _place(self, time: float | None) -> int:
        if time is None:
            return len(self.times) - 1
        if time in self.times:
            return self.times.index(time)
        raise refusal("CV-P690", times=", ".join(f"{one:g}" for one in self.times), time=time)

    def _site_numbers(self) -> tuple[float, ...]:
        return tuple(number for block in self.tables.numbers for number in block)

    def _site_bounds(self, shape: PublicShape) -> Iterator[Bound]:
        """Yield what a site may say of it: tables of the declared events, in cells of the declared grid."""
        tables = self.tables
        yield OneOf("parts of a cell", tables.cut, shape.grids, breach=Breach.QUESTION)
        yield Equal("causes", tables.causes, shape.causes, breach=Breach.QUESTION)
        yield Equal("ends of cells", tables.edges, shape.grids[tables.cut], breach=Breach.QUESTION)
        yield Equal("convention", tables.convention, shape.convention, breach=Breach.QUESTION)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Difference in survival at the horizon, and difference of the restricted means."""
        return (self.difference(), self.restricted_mean_difference)

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return the intervals of both effects in `table`, by name.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        effects = self.table
        return intervals_by([str(effect.name) for effect in effects], effects, level, simultaneous=False)

    def _columns(self) -> list[dict[str, Any]]:
        return [{"contrast": effect.name, "horizon": self.times[-1]} for effect in self.table]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of `table`, then those of the hazard ratio, or of each cause's."""
        rows = ReleasedAnswer._rows(self)
        for cause in self.tables.causes or (None,):
            rows.append(rows[0] | {"contrast": hazard_ratio_name(cause)} | self.hazard_ratio(cause).row())
        return rows

    def _shown(self) -> dict[str, Any]:
        test, ratio = self.log_rank, self.restricted_mean_ratio
        return {
            "title": effect_title(self.treatment, self.outcome),
            "sentence": survival_sentence(self.times[-1]),
            "effects": [one.facts() for one in self.table],
            "curves": self.curves(),
            # Curves fall at the ends of cells, else evenly within them.
            "steps": self.tables.convention == "end",
            "at_risk": {arm: list(self.at_risk(arm)) for arm in ARMS},
            "hazard_ratio": self.hazard_ratio().facts(),
            "proportionality_p_value": self.proportionality().p_value,
            "medians": {arm: self._median_facts(arm) for arm in ARMS},
            "log_rank": {"statistic": test.statistic, "p_value": test.p_value, "cells": test.cells},
            "restricted_mean_ratio": {
                "estimate": finite(ratio.estimate),
                "interval": interval_facts(self.level, ratio.interval(self.level))
                | {"high": finite(ratio.interval(self.level)[1])},
                "p_value": ratio.p_value,
            },
            "notes": self._notes(),
        }

    def _median_facts(self, arm: str) -> dict[str, Any]:
        median = self.quantile(arm)
        return {
            "estimate": finite(median.estimate),
            "interval": interval_facts(self.level, median.interval()),
        }

    def _notes(self) -> list[tuple[str, str]]:
        test = self.log_rank
        ratio = self.restricted_mean_ratio
        horizon = self.times[-1]
        hazards = self.hazard_ratio()

        def by_arm(number: Callable[[str], Effect]) -> dict[str, Figure]:
            return {arm: figure_of(number(arm)) for arm in reversed(ARMS)}

        causes = [
            CauseFigures(
                cause,
                by_arm(partial(self.incidence, cause)),
                figure_of(self.incidence_difference(cause)),
            )
            for cause in self.tables.causes
        ]
        known_until = {arm: self.known_until(arm) for arm in ARMS}
        return survival_notes(
            horizon=horizon,
            hazard_ratio=figure_of(hazards),
            hazard_ratio_p=hazards.p_value,
            proportionality_p=self.proportionality().p_value,
            medians=by_arm(self.quantile),
            causes=causes,
            survival=by_arm(self.survival),
            restricted_means=by_arm(self.restricted_mean),
            restricted_mean_ratio=Figure(
                ratio.estimate, inf, interval_facts(self.level, ratio.interval(self.level))
            ),
            log_rank_statistic=test.statistic,
            log_rank_p=test.p_value,
            merged_strata=self.merged_strata,
            lost_after={arm: time for arm, time in known_until.items() if time < horizon},
        )


def check_arm(arm: str) -> int:
    """Return the position of an arm, or raise CV-P692."""
    if arm in ARMS:
        return ARMS.index(arm)
    raise refusal("CV-P692", arms=", ".join(map(repr, ARMS)), arm=arm)


def check_prob(prob: object) -> float:
    """Return a probability strictly between 0 and 1, or raise CV-P693."""
    if isinstance(prob, int | float) and 0 < prob < 1:
        return float(prob)
    raise refusal("CV-P693", prob=prob)


def figure_of(effect: Effect) -> Figure:
    """Return a number with its error and interval, as it is printed."""
    ends = interval_facts(effect.level, effect.interval())
    return Figure(effect.estimate, float(effect.std_error), ends)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuantilesResult(ByName, ReleasedAnswer):
    """Released counts of outcomes by cell, and what follows from them: what `counterveil.quantiles` returns.

    %FREE% Arms are called "treated" and "control", whatever the labels in the data are.

    Attributes
    ----------
    histograms : NoisyHistograms
        Counts of outcomes by arm and cell, as released.
    probs : tuple of float
        Probabilities of the quantiles that were asked for, in (0, 1); 0.5 is the median. Others are free.
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
    The quantile of probability p is the smallest value at which an arm's distribution function is at least p;
    an effect is q_1(p) - q_0(p), treated minus control, which is no quantile of individual effects. Within a
    cell outcomes are taken to lie evenly. Intervals of a quantile are the values whose distribution function
    the noisy counts do not contradict.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "record", "epsilon": 2, "grid": 20, "noise": cv.SeededNoise(1)}
    >>> result = cv.quantiles(trial.frame, trial.study, **ask)
    >>> result.probs, result.table[1].name
    ((0.25, 0.5, 0.75), 'median')
    >>> low, high = result.quantile_difference(0.75).interval()
    >>> low < high
    True
    """

    histograms: NoisyHistograms
    probs: tuple[float, ...]

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges of the cells, in units of the outcome."""
        return self.histograms.edges

    @property
    def _answers(self) -> SurvivalAnswers:
        return distributions_of(self.histograms)

    def quantile(self, arm: ArmName, prob: float = 0.5) -> Effect:
        """Return the value below which a part of an arm's outcomes lies.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.
        prob : float, default 0.5
            Probability of the quantile, in (0, 1); 0.5 is the median.

        Returns
        -------
        Effect
            Value in units of the outcome, with its interval.

        Raises
        ------
        CounterveilError
            An unknown arm: CV-P692. A probability outside (0, 1): CV-P693.
        """
        known = OpenEnded(self._crossing(arm, prob))
        return Effect(f"{quantile_name(prob)}, {arm}", known, self.level)

    def quantile_difference(self, prob: float = 0.5) -> Effect:
        """Return the difference of both arms' quantiles, treated minus control.

        Parameters
        ----------
        prob : float, default 0.5
            Probability of the quantile, in (0, 1); 0.5 is the median.

        Returns
        -------
        Effect
            Difference in units of the outcome, with its interval.

        Raises
        ------
        CounterveilError
            A probability outside (0, 1): CV-P693.
        """
        return self._difference(prob, 1)

    def _difference(self, prob: float, several: int) -> Effect:
        gap = CrossingGap(self._crossing("treated", prob), self._crossing("control", prob))
        return Effect(quantile_name(prob), OpenEnded(gap), self.level, several)

    def _crossing(self, arm: str, prob: float) -> Crossing:
        return Crossing(self._answers, check_arm(arm), 1 - check_prob(prob))

    def distribution(self, arm: ArmName, value: float) -> Effect:
        """Return the share of an arm's outcomes up to an edge of a cell, which is counted in.

        Parameters
        ----------
        arm : {"treated", "control"}
            Which arm.
        value : float
            One of `edges`.

        Returns
        -------
        Effect
            Share in [0, 1], with its interval.

        Raises
        ------
        CounterveilError
            A value that is no edge: CV-P690. An unknown arm: CV-P692.
        """
        known = Complement(self._answers.at(check_arm(arm), self._place(value)))
        return Effect(f"up to {value:g}, {arm}", known, self.level)

    def distribution_difference(self, value: float) -> Effect:
        """Return the difference of both arms' shares of outcomes up to an edge, treated minus control.

        Parameters
        ----------
        value : float
            One of `edges`.

        Returns
        -------
        Effect
            Difference of shares, in [-1, 1], with its interval.

        Raises
        ------
        CounterveilError
            A value that is no edge: CV-P690.
        """
        gap = self._answers.gap(self._place(value))
        return Effect(f"up to {value:g}", replace(gap, one=gap.other, other=gap.one), self.level)

    def bands(self, level: float | None = None) -> list[dict[str, Any]]:
        """Return the difference of both distribution functions at every inner edge, as rows.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        list of dict
            ``value``, ``estimate``, the interval at this edge alone (``low``, ``high``), and a band that
            holds at all edges (``band_low``, ``band_high``).

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        band_level = self._answers.band_level(self.level if level is None else check_level(level), (0, 1))
        return [self._band(edge, level, band_level) for edge in self.edges[1:-1]]

    def _band(self, edge: float, level: float | None, band_level: float) -> dict[str, Any]:
        difference = self.distribution_difference(edge)
        names = ("low", "high", "band_low", "band_high")
        ends = dict(zip(names, (*difference.interval(level), *difference.interval(band_level)), strict=True))
        return {"value": edge, "estimate": difference.estimate} | ends

    def quantile_band(self, probs: tuple[float, ...], level: float | None = None) -> list[dict[str, Any]]:
        """Return differences of quantiles with a band that holds for all of them at once.

        Parameters
        ----------
        probs : tuple of float
            Probabilities of the quantiles, each in (0, 1).
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        list of dict
            ``prob``, ``estimate``, ``band_low`` and ``band_high``, in units of the outcome.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015. A probability outside (0, 1): CV-P693.

        Notes
        -----
        The band of each arm's distribution function has half of the error, so that the differences hold
        together.

        Examples
        --------
        >>> import counterveil as cv
        >>> trial = cv.datasets.lalonde()
        >>> ask = {"protects": "record", "epsilon": 2, "grid": 20, "noise": cv.SeededNoise(1)}
        >>> result = cv.quantiles(trial.frame, trial.study, **ask)
        >>> rows = result.quantile_band((0.25, 0.5, 0.75))
        >>> all(row["band_low"] <= row["estimate"] <= row["band_high"] for row in rows)
        True
        """
        chosen = 1 - (1 - (self.level if level is None else check_level(level))) / 2
        band_levels = [self._answers.band_level(chosen, (arm,)) for arm in (0, 1)]
        rows = []
        for prob in probs:
            difference = self.quantile_difference(prob)
            (least, most), (low, high) = (
                self._crossing(arm, prob).interval(band_level)
                for arm, band_level in zip(("control", "treated"), band_levels, strict=True)
            )
            ends = {"band_low": low - most, "band_high": high - least}
            rows.append({"prob": prob, "estimate": difference.estimate} | ends)
        return rows

    def _place(self, value: float) -> int:
        if value in self.edges:
            return self.edges.index(value)
        raise refusal("CV-P690", times=", ".join(f"{one:g}" for one in self.edges), time=value)

    @property
    def table(self) -> tuple[Effect, ...]:
        """Differences of quantiles at `probs`, treated minus control."""
        return tuple(self._difference(prob, len(self.probs)) for prob in self.probs)

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        if not self.probs:
            raise ValueError("no probs")
        for prob in self.probs:
            check_prob(prob)

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"contrast": effect.name, "prob": prob}
            for effect, prob in zip(self.table, self.probs, strict=True)
        ]

    def _shown(self) -> dict[str, Any]:
        return {
            "title": distribution_title(self.treatment, self.outcome),
            "sentence": QUANTILES_SENTENCE,
            "effects": [one.facts() for one in self.table],
            "notes": [
                quantile_note(
                    prob, {arm: figure_of(self.quantile(arm, prob)) for arm in ("treated", "control")}
                )
                for prob in self.probs
            ],
        }

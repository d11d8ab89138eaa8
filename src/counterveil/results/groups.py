"""The answers about groups, and about ratios of sums: effects by group, gains of rules, targeting curves.

In: released effects of disjoint public groups, or of scores by cell. Out: tables of effects in units of the
outcome, a test that they do not differ, gains of a rule over treating everyone or nobody, with single and
simultaneous intervals (each of m at the level L^(1/m); Sidak). All of it is post-processing; the guarantee
names the pages that prove the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from counterveil.inference.estimates import Known
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.quotient import DIFFERENCE
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand, Unit
from counterveil.report.answer_words import (
    GAIN,
    GROUPS_SENTENCE,
    groups_notes,
    ranking_sentence,
    ratio_sentence,
    rule_note,
    rule_sentence,
)
from counterveil.report.text import probability, rounded
from counterveil.results.effect import (
    ByName,
    Effect,
    FactsOf,
    check_level,
    check_table,
    noise_from_dict,
    prefetch_intervals,
)
from counterveil.results.measures import Measure, check_measure, no_measure
from counterveil.results.released import ReleasedAnswer
from counterveil.results.result import Comparison, OneEffect, Result
from counterveil.results.site_bounds import (
    Bound,
    Breach,
    Equal,
    PublicShape,
    SiteFigure,
    Within,
    of_one_site,
    of_public_size,
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupsResult(ByName, Comparison):
    """Released effects of public groups: what `counterveil.groups` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    groups : tuple of Effect
        Average treatment effect within each group, in units of the outcome, treated minus control. `name` is
        the group, `size` its number of people, `size_sd` the noise of that number (0 where it is public).
    by : tuple of str
        Columns that make the groups.
    left_out : tuple of str
        Groups with too few people, named only where that is public.
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
    Intervals of one group hold by themselves; ``interval(simultaneous=True)`` holds for all groups together
    (Šidák).

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> ask = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1)}
    >>> result = cv.groups(trial.frame, trial.study, by="nodegree", **ask)
    >>> [(group.name, group.size) for group in result.groups]
    [('nodegree=0', 97.0), ('nodegree=1', 348.0)]
    >>> low, high = result.interval(simultaneous=True)["nodegree=1"]
    >>> low < result.effect("nodegree=1").estimate < high
    True
    """

    _SAME_AT_SITES: ClassVar[tuple[str, ...]] = ("by",)
    _COMPUTED_FROM: ClassVar[tuple[str, ...]] = ("groups",)

    groups: tuple[Effect, ...]
    by: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def table(self) -> tuple[Effect, ...]:
        """Effect of every group."""
        return self.groups

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"group": one.name, "size": one.size, "size_sd": one.size_sd, "estimand": Estimand.ATE.value}
            for one in self.groups
        ]

    def _shown(self) -> dict[str, Any]:
        sizes_public = all(group.size_sd == 0 for group in self.groups)
        return {
            "sentence": GROUPS_SENTENCE,
            "estimand": Estimand.ATE.value,
            "effects": FactsOf(self.groups),
            "notes": groups_notes(self.by, self.left_out, sizes_public=sizes_public),
        }

    def _site_figures(self) -> list[SiteFigure]:
        sizes = [group.size if group.size_sd == 0 else None for group in self.groups]
        return [
            SiteFigure(str(group.name), group.known, size)
            for group, size in zip(self.groups, sizes, strict=True)
        ]

    def _site_bounds(self, shape: PublicShape) -> Iterator[Bound]:
        """Yield what a site may say of it: an effect of every group that is not left out, in the order of the groups.

        Where sizes are public the groups have no more people than the site; else no group is left out.
        """
        names = tuple(str(group.name) for group in self.groups)
        yield Equal("covariates", self.by, shape.by, breach=Breach.QUESTION)
        in_order = tuple(name for name in shape.names if name in names)
        yield Equal("groups", names, in_order, breach=Breach.QUESTION)
        missing = tuple(name for name in shape.names if name not in names)
        yield Equal("groups that are left out", self.left_out, missing, breach=Breach.QUESTION)
        if not shape.sizes_public:
            yield Equal("groups that are left out", self.left_out, (), breach=Breach.QUESTION)
            return
        for group in self.groups:
            yield from of_public_size(group)
        people = sum(cast("float", group.size) for group in self.groups)
        yield Within("people in all groups", people, high=shape.rows, breach=Breach.ROWS)
        (limits,) = shape.ranges
        for group in self.groups:
            yield from of_one_site(group.known, limits)

    def _check(self) -> None:
        Comparison._check(self)
        check_table(self.groups, self.level)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gains(ReleasedAnswer):
    """Released gains, per person of everybody and after the cost of treatment.

    Attributes
    ----------
    gains : tuple of Effect
        Gains, in units of the outcome per person of everybody.
    cost : float
        Cost of treating one person, in units of the outcome.
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

    gains: tuple[Effect, ...]
    cost: float

    @property
    def table(self) -> tuple[Effect, ...]:
        """The gains."""
        return self.gains

    def _check(self) -> None:
        ReleasedAnswer._check(self)
        check_table(self.gains, self.level)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyValue(Gains):
    """Released gains of a rule: what `counterveil.policy_value` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    policy : str
        The rule, in words.
    share : float
        Part of people whom the rule treats, in [0, 1], as released.
    gains : tuple of Effect
        policy - nobody, policy - everybody, and everybody - nobody, in units of the outcome per person of
        everybody, after the cost.
    cost : float
        Cost of treating one person, in units of the outcome.
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
    The gain over treating nobody is E[d(X) (Y(1) - Y(0) - c)], with d(X) 1 where the rule treats and c the
    cost; that over treating everybody is E[(d(X) - 1) (Y(1) - Y(0) - c)].

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> rule, noise = cv.Policy.where(nodegree=[1]), cv.SeededNoise(1)
    >>> ask = {"policy": rule, "protects": "outcome", "epsilon": 1, "noise": noise}
    >>> value = cv.policy_value(trial.frame, trial.study, **ask)
    >>> [gain.name for gain in value.gains]
    ['policy - nobody', 'policy - everybody', 'everybody - nobody']
    >>> value.estimate == value.over_none.estimate
    True
    """

    policy: str
    share: float

    @property
    def over_none(self) -> Effect:
        """What the rule gains over treating nobody, in units of the outcome per person."""
        return self.gains[0]

    @property
    def over_all(self) -> Effect:
        """What the rule gains over treating everybody, in units of the outcome per person."""
        return self.gains[1]

    @property
    def estimate(self) -> float:
        """Gain over treating nobody, in units of the outcome per person."""
        return self.over_none.estimate

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval for the gain over treating nobody.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the outcome per person.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        return self.over_none.interval(level)

    def _columns(self) -> list[dict[str, Any]]:
        named = {"policy": self.policy, "cost": self.cost, "share": self.share, "estimand": GAIN}
        return [{"contrast": one.name} | named for one in self.gains]

    def _shown(self) -> dict[str, Any]:
        prefetch_intervals(self.gains)
        note = rule_note(self.policy, self.share, share_released=self.guarantee.unit is Unit.RECORD)
        return {
            "sentence": rule_sentence(self.cost),
            "effects": [gain.facts() for gain in self.gains],
            "notes": [note],
        }

    def _check(self) -> None:
        Gains._check(self)
        if len(self.gains) != 3:
            raise ValueError("a rule is compared with nobody and everybody")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TargetingCurve(Gains):
    """Released gains of treating those ranked highest: what `counterveil.targeting_curve` returns.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    gains : tuple of Effect
        Gain of treating everyone with a score of the threshold or more, from the highest scores downwards, in
        units of the outcome per person of everybody, after the cost.
    thresholds : tuple of (float or None)
        Least score that is treated at each point; None for everyone.
    shares : tuple of float
        Part of people who are treated at each point, in [0, 1], as released.
    qini : NoisyRatio or another estimate
        Area between the curve and treating the same shares at random; 0 for a ranking that tells nothing.
    autoc : NoisyRatio or another estimate
        Mean over shares of the gain per treated person, less that of everybody [1]_; 0 for a ranking that
        tells nothing.
    cost : float
        Cost of treating one person, in units of the outcome.
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

    References
    ----------
    .. [1] Yadlowsky, S., Fleming, S., Shah, N., Brunskill, E. and Wager, S. (2025). Evaluating treatment
       prioritization rules via rank-weighted average treatment effects. Journal of the American Statistical
       Association 120, 38-51.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=500, covariates=2)
    >>> model = SimpleNamespace(effect=lambda people: people["x1"])
    >>> ask = {"bins": 4, "protects": "outcome", "epsilon": 4, "noise": cv.SeededNoise(2)}
    >>> curve = cv.targeting_curve(data.frame, data.study, model=model, **ask)
    >>> len(curve.gains), len(curve.interval()), curve.thresholds[-1] is None
    (4, 4, True)
    >>> low, high = curve.qini.interval(0.95)
    >>> low < curve.qini.estimate < high
    True
    """

    _PLOT: ClassVar[str] = "policy_curve"
    thresholds: tuple[float | None, ...]
    shares: tuple[float, ...]
    qini: Known
    autoc: Known

    def interval(self, level: float | None = None, simultaneous: bool = False) -> list[Ends]:
        """Return every gain's interval, in the order of `gains`.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.
        simultaneous : bool, default False
            True for intervals that hold for the whole curve (Šidák).

        Returns
        -------
        list of tuple of (float, float)
            Lower and upper end, in units of the outcome per person.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        return [gain.interval(level, simultaneous) for gain in self.gains]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {
                "threshold": float("-inf") if threshold is None else threshold,
                "share": share,
                "cost": self.cost,
                "estimand": GAIN,
            }
            for threshold, share in zip(self.thresholds, self.shares, strict=True)
        ]

    def _shown(self) -> dict[str, Any]:
        prefetch_intervals(self.gains)
        said = "; ".join(
            f"{name} {_summary(known, self.level)}"
            for name, known in (("qini", self.qini), ("autoc", self.autoc))
        )
        return {
            "sentence": ranking_sentence(self.cost),
            "effects": [gain.facts() for gain in self.gains],
            "notes": [("Ranking", said)],
        }

    def _check(self) -> None:
        Gains._check(self)
        if not len(self.gains) == len(self.shares) == len(self.thresholds):
            raise ValueError("a point has a gain, a share and a threshold")


def point(threshold: float | None, share: float, known: Known, level: float, points: int) -> Effect:
    """Return what treating everyone with a score of `threshold` or more gains, one of so many points of a curve."""
    name = "everybody" if threshold is None else f"score >= {threshold:.4g}"
    return Effect(f"{name} ({share:.0%})", known, level, points)


def _summary(known: Known, level: float) -> str:
    one = Effect("", known, level)
    low, high = one.interval()
    found = f"{one.estimate:.3g} [{low:.3g}, {high:.3g}]"
    return f"{found} (std. error {float(one.std_error):.2g}, p {probability(one.p_value)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RatioResult(Result):
    r"""A released difference of two arms' ratios of sums: what `counterveil.ate` returns with a denominator.

    Nothing in it is private any more, and nothing that its methods do spends budget.

    Attributes
    ----------
    ratios : tuple of (Effect, Effect)
        Sum of outcomes over sum of denominators, of the treated and of the controls.
    estimate : float
        Difference of both ratios, treated minus control.
    uncertainty : Uncertainty
        Error by the delta method, for standard errors; intervals are not computed from it.
    independent_variance : bool
        Whether the variance shares no noise with the estimate.
    estimand : Estimand
        Population whose ratios are compared.
    limits : tuple of (float, float) or None
        None: a ratio of sums has no range that is known.
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
    The interval of each ratio A / B is Fieller's, {r : \|A - r B\| <= h_r}, and that of the difference joins
    both by the rule of Zou and Donner [1]_: r1 - r0 -+ the root of the sum of the squared distances of the
    ends on either side. `cv.pool` does not take differences of ratios.

    References
    ----------
    .. [1] Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a
       general approach. Statistics in Medicine 27, 1693-1702.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    ratios: tuple[Effect, ...]

    @property
    def effect(self) -> Effect:
        """Difference of both ratios, with its error."""
        one, other = (each.known for each in self.ratios)
        assert isinstance(one, NoisyRatio)
        assert isinstance(other, NoisyRatio)
        return Effect("difference", RatioDifference(one, other), self.level)

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the result itself; a difference of ratios has no other measure.

        Parameters
        ----------
        measure : {"difference"}
            Scale of the estimate.

        Returns
        -------
        RatioResult
            The same object.

        Raises
        ------
        CounterveilError
            An unknown measure: CV-P685. Another measure: CV-P686.
        """
        if check_measure(measure) == DIFFERENCE:
            return self
        raise no_measure(measure, f"a ratio of sums, {self.outcome}")

    def untruncated_interval(self, level: float | None = None) -> Ends:
        """Return the interval, which is not truncated: a ratio may lie outside the range of outcomes.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        return self.effect.interval(self.level if level is None else check_level(level))

    @classmethod
    def of(cls, ratios: list[Effect], **terms: Any) -> RatioResult:
        """Return the result of both arms' ratios.

        Parameters
        ----------
        ratios : list of Effect
            Those of the treated and of the controls.
        **terms : Any
            Provenance and estimand, as the attributes of a result.

        Returns
        -------
        RatioResult
            Their difference with its error.
        """
        one, other = (each.known for each in ratios)
        if not isinstance(one, NoisyRatio) or not isinstance(other, NoisyRatio):
            raise ValueError("both arms have ratios")
        difference = RatioDifference(one, other)
        variance, noise = difference.sampling_sd**2, difference.noise_sd
        normal = {"mechanism": "gaussian", "sensitivity": str(Fraction(noise)), "mu": "1"}
        known = Uncertainty(noise_from_dict(normal), variance, variance)
        return cls(ratios=tuple(ratios), estimate=difference.estimate, uncertainty=known, **terms)

    def _shown(self) -> dict[str, Any]:
        by_arm = ", ".join(
            f"{each.name} {rounded(each.estimate, each.std_error.total)}" for each in self.ratios
        )
        shown = {name: value for name, value in self.effect.facts().items() if name != "name"}
        return shown | {
            "sentence": ratio_sentence(self.outcome),
            "notes": [("Ratios", by_arm)],
        }

    @classmethod
    def _made(cls, ratios: tuple[Effect, ...], **terms: Any) -> RatioResult:
        if len(ratios) != 2:
            raise ValueError("there are two arms")
        return cls.of([*ratios], **terms)

"""What an omitted confounder would have to be like to change an answer; made from released numbers, free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite, sqrt
from typing import Any, ClassVar

from counterveil.errors import refusal
from counterveil.inference.confounding import (
    as_strong_as,
    bias_bound,
    e_value,
    nearest_to,
    outcome_r2_needed,
    ratio_of_difference,
    robustness_value,
)
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy.caveats import Fact
from counterveil.report import View, sensitivity_view
from counterveil.report.caveats import target_words
from counterveil.results.effect import Effect, Linear, check_level, prefetch_intervals
from counterveil.results.released import ReleasedAnswer
from counterveil.results.shown import Shown


def refuse_no_interval(interval_target: Fact | None) -> None:
    """Raise CV-P664 where intervals are for something else than the effect."""
    if interval_target is not None:
        raise refusal("CV-P664", interval_target=target_words(interval_target))


def asked_shares(treatment_r2: float | None, outcome_r2: float | None) -> tuple[float, float] | None:
    """Return the two shares of a confounder, None where neither is given, or raise CV-P665."""
    if treatment_r2 is None and outcome_r2 is None:
        return None
    return share("treatment_r2", treatment_r2), share("outcome_r2", outcome_r2, 1.0)


def share(name: str, value: float | None, most: float = 1 - 1e-9) -> float:
    """Return a share of variance, or raise CV-P665."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    raise refusal("CV-P665", name=name, value=value)


def refuse_not_positive(name: str, value: float | None) -> None:
    """Raise CV-P666 for a public number that is given and not above 0."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf):
        return
    raise refusal("CV-P666", name=name, value=value)


# How many times as strong as a covariate an omitted confounder is supposed to be.
_TIMES = (1.0, 2.0, 3.0)
# Confounders that explain less of the treatment than this are not compared with.
_LEAST = 1e-3
_MEANS, _BASELINE, _SD = "means", "baseline", "standardised"


@dataclass(frozen=True, slots=True)
class EffectSensitivity:
    r"""How far one effect withstands an omitted confounder.

    Attributes
    ----------
    name : str
        Name of the effect.
    estimate : float
        The released effect.
    low, high : float
        Ends of its interval, privacy noise included.
    tipping_bias : float
        Least bias that takes the interval to no effect, in units of the effect; 0 where it covers no effect
        already.
    e_value, e_value_limit : float
        E-values of the estimate and of the interval's end nearest to no effect; 1 where the interval covers
        it. A confounder explains the effect away only if its risk ratios with treatment and with outcome are
        both at least this.
    ratio, ratio_limit : float
        Risk ratios that the E-values are of.
    sd : float or None
        Standard deviation of outcomes given covariates that a ratio is approximated with, an upper estimate
        unless it was declared; None where ratios are those of means.
    scale : float or None
        S, from which bounds on bias follow, in units of the effect; None where the number of rows is not
        known.
    robustness, robustness_limit : float or None
        Robustness values, in [0, 1]: the partial R squared with treatment and with outcome that a confounder
        needs to take the estimate, or the interval, to no effect. None where `scale` is.
    bias : float or None
        Bound on the bias of the confounder that was asked about; None where none was.
    adjusted_low, adjusted_high : float or None
        The interval, longer by that bias at both ends.

    Notes
    -----
    The bias of a confounder with partial R squared R_t and R_y is at most S sqrt(R_y R_t / (1 - R_t)). The
    robustness value R of an estimate b solves \|b\| = S R / sqrt(1 - R) (Cinelli and Hazlett 2020). The
    E-value of a risk ratio r >= 1 is r + sqrt(r (r - 1)) (VanderWeele and Ding 2017); the ratio of a
    difference d is approximated by exp(0.91 d / sd).
    """

    name: str
    estimate: float
    low: float
    high: float
    tipping_bias: float
    e_value: float
    e_value_limit: float
    ratio: float
    ratio_limit: float
    sd: float | None
    scale: float | None
    robustness: float | None
    robustness_limit: float | None
    bias: float | None = None
    adjusted_low: float | None = None
    adjusted_high: float | None = None

    def bound(self, treatment_r2: float, outcome_r2: float) -> float | None:
        """Return the largest bias of a confounder that explains these shares of variance.

        Parameters
        ----------
        treatment_r2 : float
            Partial R squared with treatment, given the covariates, in [0, 1).
        outcome_r2 : float
            Partial R squared with the outcome, given treatment and covariates, in [0, 1].

        Returns
        -------
        float or None
            Bias in units of the effect; None where `scale` is not known.

        Raises
        ------
        CounterveilError
            A share outside its range: CV-P665.
        """
        shares = share("treatment_r2", treatment_r2), share("outcome_r2", outcome_r2, 1.0)
        return None if self.scale is None else bias_bound(self.scale, *shares)

    def outcome_r2_needed(self, treatment_r2: float) -> float | None:
        """Return the partial R squared with the outcome that takes the interval to no effect.

        Parameters
        ----------
        treatment_r2 : float
            Partial R squared of the confounder with treatment, given the covariates, in [0, 1).

        Returns
        -------
        float or None
            Share of variance; above 1 where no confounder does. None where `scale` is not known.
        """
        if self.scale is None:
            return None
        return outcome_r2_needed(self.tipping_bias, self.scale, treatment_r2)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A confounder that is some times as strongly related to the treatment as a covariate.

    Attributes
    ----------
    covariate : str
        The covariate it is compared with.
    times : float
        How many times as strong.
    partial_r2 : float
        Share that the covariate explains of what the other covariates leave of the treatment, in [0, 1].
    treatment_r2 : float
        That share of the confounder.
    outcome_r2 : float or None
        Partial R squared with the outcome that it needs to take the interval to no effect; above 1 where it
        cannot.
    """

    covariate: str
    times: float
    partial_r2: float
    treatment_r2: float
    outcome_r2: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Sensitivity(Shown):
    """How far released effects withstand unmeasured confounding: what ``result.sensitivity()`` returns.

    It is made of released numbers and spends nothing. It says how strong a confounder would have to be, not
    whether there is one.

    Attributes
    ----------
    treatment, outcome : str
        Columns of the study.
    level : float
        Confidence level of the intervals, in (0, 1).
    rows : tuple of EffectSensitivity
        Figures of each effect.
    how : {"means", "baseline", "standardised"}
        Where risk ratios come from: released means, a declared baseline, or the standardised effect.
    measure : str
        Scale of the result.
    risks : bool
        Whether outcomes lie in [0, 1], so that means are risks.
    warnings : tuple of str
        First lines of the rendering.
    benchmarks : tuple of Benchmark
        Confounders as strong as covariates, where covariates and treatment are public and there is one
        effect.
    asked : tuple of (float, float) or None
        Partial R squared with treatment and with outcome of the confounder that was asked about.
    guarantee : Guarantee
        That of the result.

    References
    ----------
    .. [1] Cinelli, C. and Hazlett, C. (2020). Making sense of sensitivity: extending omitted variable bias.
       Journal of the Royal Statistical Society B 82, 39-67.
    .. [2] VanderWeele, T. J. and Ding, P. (2017). Sensitivity analysis in observational research: introducing
       the E-value. Annals of Internal Medicine 167, 268-274.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> analysis = result.sensitivity()
    >>> analysis.tipping_bias, analysis.e_value_limit
    (0.0, 1.0)
    """

    _PLOT: ClassVar[str] = "sensitivity"
    treatment: str
    outcome: str
    level: float
    rows: tuple[EffectSensitivity, ...]
    how: str
    measure: str = "difference"
    risks: bool = False
    warnings: tuple[str, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    asked: Ends | None = None
    guarantee: Any = field(default=None, repr=False)

    @property
    def tipping_bias(self) -> float:
        """Least bias that takes the interval to no effect, of a single effect, in its units."""
        return self._single().tipping_bias

    @property
    def e_value(self) -> float:
        """E-value of the estimate, of a single effect."""
        return self._single().e_value

    @property
    def e_value_limit(self) -> float:
        """E-value of the interval's end nearest to no effect, of a single effect."""
        return self._single().e_value_limit

    @property
    def robustness(self) -> float | None:
        """Robustness value of the estimate, of a single effect, in [0, 1]; None where rows are not known."""
        return self._single().robustness

    @property
    def robustness_limit(self) -> float | None:
        """Robustness value of the interval, of a single effect, in [0, 1]; None where rows are not known."""
        return self._single().robustness_limit

    def _single(self) -> EffectSensitivity:
        if len(self.rows) != 1:
            raise AttributeError("there are several effects: take one by sensitivity.effect(name)")
        return self.rows[0]

    def effect(self, name: str) -> EffectSensitivity:
        """Return the figures of an effect.

        Parameters
        ----------
        name : str
            Name of the effect, as in `rows`.

        Returns
        -------
        EffectSensitivity
            Tipping bias, E-values and robustness values.

        Raises
        ------
        KeyError
            No effect of that name; the message lists the names.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r}; the effects are {[row.name for row in self.rows]}")

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary an effect."""
        return [{"term": self.treatment} | asdict(row) | {"level": self.level} for row in self.rows]

    def report_facts(self) -> dict[str, Any]:
        """Return what is printed, as facts.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        shares = dict(zip(("treatment_r2", "outcome_r2"), self.asked or (), strict=False)) or None
        plain = {
            name: getattr(self, name) for name in ("treatment", "outcome", "level", "how", "measure", "risks")
        }
        rows = {
            "effects": [asdict(row) for row in self.rows],
            "benchmarks": [asdict(one) for one in self.benchmarks],
        }
        return {"warnings": list(self.warnings)} | plain | {"asked": shares} | rows

    def view(self, full: bool = False) -> View:
        """Return what is shown: the figures and what they mean; in full, every benchmark.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return sensitivity_view(self.to_dict(), full)

    def __repr__(self) -> str:
        first = self.rows[0]
        return (
            f"<Sensitivity: {self.treatment} on {self.outcome}; {first.name}: tipping bias {first.tipping_bias:.3g}, "
            f"E-value {first.e_value:.3g}, of the limit {first.e_value_limit:.3g}>"
        )


def sensitivity_of(
    result: ReleasedAnswer,
    effects: Sequence[Effect],
    *,
    treatment_r2: float | None = None,
    outcome_r2: float | None = None,
    baseline: float | None = None,
    outcome_sd: float | None = None,
    level: float | None = None,
    means: Sequence[Effect] = (),
    ratio: Effect | None = None,
) -> Sensitivity:
    """Return how far the effects of a result withstand an omitted confounder; `means` are an arm's with its reference.

    With two `means` for each effect, in its order, risk ratios are those of released means; `ratio` is that of a single
    effect, with its own interval.
    """
    refuse_no_interval(result.interval_target)
    asked = asked_shares(treatment_r2, outcome_r2)
    refuse_not_positive("baseline", baseline)
    refuse_not_positive("outcome_sd", outcome_sd)
    chosen = result.level if level is None else check_level(level)
    prefetch_intervals(means, _of_both(chosen))
    prefetch_intervals(effects, chosen)
    rows = tuple(
        _row(result, effect, level, asked, baseline, outcome_sd, means[2 * place : 2 * place + 2], ratio)
        for place, effect in enumerate(effects)
    )
    how = _BASELINE if baseline is not None else _MEANS if _by_means(rows, outcome_sd) else _SD
    warnings = [text for text in (result.guarantee.warning, result.warning) if text]
    return Sensitivity(
        treatment=result.treatment,
        outcome=result.outcome,
        level=chosen,
        rows=rows,
        how=how,
        measure=str(getattr(result, "measure", "difference")),
        risks=all(getattr(effect.known, "limits", None) == (-1.0, 1.0) for effect in effects),
        warnings=tuple(warnings),
        benchmarks=_benchmarks(result, rows[0]) if len(rows) == 1 else (),
        asked=asked,
        guarantee=result.guarantee,
    )


def _by_means(rows: Sequence[EffectSensitivity], outcome_sd: float | None) -> bool:
    return outcome_sd is None and all(row.sd is None for row in rows)


def _row(
    result: ReleasedAnswer,
    effect: Effect,
    level: float | None,
    asked: Ends | None,
    baseline: float | None,
    outcome_sd: float | None,
    means: Sequence[Effect],
    ratio: Effect | None,
) -> EffectSensitivity:
    ends = effect.interval(level)
    end, estimate = nearest_to(ends, 0.0), effect.estimate
    scale = _scale(result, effect, level)
    sd: float | None = None
    if baseline is not None:
        ratios = (baseline + estimate) / baseline, (baseline + end) / baseline
    elif ratio is not None and outcome_sd is None:
        ratios = ratio.estimate, nearest_to(ratio.interval(level), 1.0)
    elif means and outcome_sd is None and min(mean.estimate for mean in means) > 0:
        ratios = _ratio_of_means(means[0], means[1], level)
    else:
        sd = outcome_sd if outcome_sd is not None else _upper_sd(result, effect, scale)
        ratios = (ratio_of_difference(estimate, sd), ratio_of_difference(end, sd)) if sd else (1.0, 1.0)
    row = EffectSensitivity(
        name=str(effect.name),
        estimate=estimate,
        low=ends[0],
        high=ends[1],
        tipping_bias=abs(end),
        e_value=e_value(ratios[0]),
        e_value_limit=e_value(ratios[1]),
        ratio=ratios[0],
        ratio_limit=ratios[1],
        sd=sd,
        scale=scale,
        robustness=None if scale is None else robustness_value(abs(estimate), scale),
        robustness_limit=None if scale is None else robustness_value(abs(end), scale),
    )
    return row if asked is None else _with_bias(row, asked)


def _with_bias(row: EffectSensitivity, asked: Ends) -> EffectSensitivity:
    bias = row.bound(*asked)
    if bias is None:
        return row
    return replace(row, bias=bias, adjusted_low=row.low - bias, adjusted_high=row.high + bias)


def _ratio_of_means(mean: Effect, reference: Effect, level: float | None) -> Ends:
    """Return the ratio of two released means, and the end nearest to 1 of an interval for it.

    Both means are in their intervals with the level if each is with half the error (Bonferroni).
    """
    each = _of_both(mean.level if level is None else level)
    (low, high), (least, most) = mean.interval(each), reference.interval(each)
    ends = max(low, 0.0) / max(most, 1e-300), high / least if least > 0 else inf
    return mean.estimate / reference.estimate, nearest_to(ends, 1.0)


def _of_both(level: float) -> float:
    """Return the level of two intervals that hold together with `level`."""
    return 1 - (1 - level) / 2


def _scale(result: ReleasedAnswer, effect: Effect, level: float | None) -> float | None:
    """Return S: the root of rows times sampling variance, as enlarged for the interval; None without rows.

    The sampling variance is at least that of residuals times squared weights, which S is made of, so that bounds are
    rather too large than too small.
    """
    rows = effect.size if effect.size is not None else result.details.get("rows")
    if not isinstance(rows, int | float) or not rows >= 1:
        return None
    known = effect.known
    alpha = 1 - (effect.level if level is None else level)
    if isinstance(known, Linear):
        error = known.uncertainty
        variance = (
            error.known_variance(alpha) if isinstance(error, Uncertainty) else error.known_sd(alpha) ** 2
        )
    else:
        variance = known.sampling_sd**2
    return sqrt(rows * variance) if isfinite(variance) and variance > 0 else None


def _upper_sd(result: ReleasedAnswer, effect: Effect, scale: float | None) -> float | None:
    """Return an upper estimate of the outcome's standard deviation given treatment and covariates.

    S^2 is the residual variance times rows times squared weights, and the weights of an arm sum to one: their
    squares are 1 over its effective size together, 4 over all rows at the least. Half the range is most of all.
    """
    limits = getattr(effect.known, "limits", None)
    most = limits[1] / 2 if limits is not None and isfinite(limits[1]) else inf
    if scale is not None:
        most = min(most, scale / sqrt(_squared_weights(result, effect)))
    return most if isfinite(most) else None


def _squared_weights(result: ReleasedAnswer, effect: Effect) -> float:
    """Return at least how large rows times squared weights are, from public sizes."""
    sizes = result.diagnostics.get("effective_size", [])
    if effect.size is None and len(sizes) == 2 and all(one["effective"] > 0 for one in sizes):
        rows = sum(one["rows"] for one in sizes)
        return max(4.0, float(sum(rows / one["effective"] for one in sizes)))
    return 4.0


def _benchmarks(result: ReleasedAnswer, row: EffectSensitivity) -> tuple[Benchmark, ...]:
    """Return confounders one to three times as strong as each covariate, the strongest covariate first."""
    table: list[dict[str, Any]] = result.diagnostics.get("treatment_r2", [])
    found = sorted(table, key=lambda one: -one["partial_r2"]) if row.tipping_bias else []
    strengths = [(one, times, as_strong_as(one["partial_r2"], times)) for one in found for times in _TIMES]
    return tuple(
        Benchmark(one["covariate"], times, one["partial_r2"], share, row.outcome_r2_needed(share))
        for one, times, share in strengths
        if _LEAST <= share < 1
    )

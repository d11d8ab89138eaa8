"""The answers about groups, and about ratios of sums."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from counterveil.inference.measures import NoisyRatio, RatioDifference
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Estimand, Unit
from counterveil.report.text import probability, rounded
from counterveil.results.effect import (
    ByName,
    Effect,
    FactsOf,
    Known,
    check_level,
    check_table,
    noise_from_dict,
    prefetch_intervals,
)
from counterveil.results.measures import DIFFERENCE, Measure, check_measure, no_measure
from counterveil.results.released import ReleasedAnswer
from counterveil.results.result import Comparison, OneEffect, Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupsResult(ByName, Comparison):
    """Released effects of public groups; nothing in it is private any more and nothing it does spends budget.

    `left_out` names groups with too few people: only where that is public.
    """

    groups: tuple[Effect, ...]
    by: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effect of every group."""
        return self.groups

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {"group": one.name, "size": one.size, "size_sd": one.size_sd, "estimand": Estimand.ATE.value}
            for one in self.groups
        ]

    def _shown(self) -> dict[str, Any]:
        sizes = "public" if all(one.size_sd == 0 for one in self.groups) else "released, with noise"
        notes = [("Groups", f"by {', '.join(self.by)}; numbers of people are {sizes}")]
        if self.left_out:
            notes.append(("Left out", f"{'; '.join(self.left_out)}: too few people"))
        return {
            "sentence": "average effect of the treatment on everyone in a group",
            "estimand": Estimand.ATE.value,
            "effects": FactsOf(self.groups),
            "notes": notes,
        }

    def _check(self) -> None:
        Comparison._check(self)
        check_table(self.groups, self.level)


_GAIN = "gain per person"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gains(ReleasedAnswer):
    """Released gains, per person of everybody and after the cost of treatment."""

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
    """Released gains of a rule, per person of everybody and after its cost; nothing it does spends budget.

    `gains` are policy - nobody, policy - everybody and everybody - nobody; `share` is the part of people whom
    the rule treats, as released.
    """

    policy: str
    share: float

    @property
    def over_none(self) -> Effect:
        """What the rule gains over treating nobody."""
        return self.gains[0]

    @property
    def over_all(self) -> Effect:
        """What the rule gains over treating everybody."""
        return self.gains[1]

    @property
    def estimate(self) -> float:
        """The gain over treating nobody."""
        return self.over_none.estimate

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval for the gain over treating nobody."""
        return self.over_none.interval(level)

    def _columns(self) -> list[dict[str, Any]]:
        named = {"policy": self.policy, "cost": self.cost, "share": self.share, "estimand": _GAIN}
        return [{"contrast": one.name} | named for one in self.gains]

    def _shown(self) -> dict[str, Any]:
        prefetch_intervals(self.gains)
        released = " (released)" if self.guarantee.unit is Unit.RECORD else ""
        return {
            "sentence": f"value of a rule per person, after a cost of {self.cost:g} for everyone treated",
            "effects": [gain.facts() for gain in self.gains],
            "notes": [("Policy", f"{self.policy}; it treats {self.share:.1%} of people{released}")],
        }

    def _check(self) -> None:
        Gains._check(self)
        if len(self.gains) != 3:
            raise ValueError("a rule is compared with nobody and everybody")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TargetingCurve(Gains):
    """Released gains of treating the people ranked highest, from the highest scores downwards.

    A gain is that of treating everyone with a score of its threshold or more (None: everyone); shares are as
    released. `qini` is the area between the curve and treating the same shares at random;
    `autoc` the mean over shares of the gain per treated person, less that of everybody. Both are 0 for a ranking
    that tells nothing.
    """

    _PLOT: ClassVar[str] = "policy_curve"
    thresholds: tuple[float | None, ...]
    shares: tuple[float, ...]
    qini: Known
    autoc: Known

    def interval(self, level: float | None = None, simultaneous: bool = False) -> list[Ends]:
        """Return every gain's interval; with `simultaneous` they hold for the whole curve (Šidák)."""
        return [gain.interval(level, simultaneous) for gain in self.gains]

    def _columns(self) -> list[dict[str, Any]]:
        return [
            {
                "threshold": float("-inf") if threshold is None else threshold,
                "share": share,
                "cost": self.cost,
                "estimand": _GAIN,
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
            "sentence": f"gain per person of treating the highest ranked, after a cost of {self.cost:g} each",
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
    """A released difference of two arms' ratios; nothing it does spends budget.

    `ratios` are those of the treated and of the controls. Intervals are Fieller's for each, joined by Zou and Donner's
    rule; `uncertainty` is that of the delta method, with normal noise of the same variance.
    """

    _DERIVED: ClassVar[tuple[str, ...]] = ("estimate", "uncertainty")

    ratios: tuple[Effect, ...]

    @property
    def effect(self) -> Effect:
        """The difference with its error."""
        one, other = (each.known for each in self.ratios)
        assert isinstance(one, NoisyRatio)
        assert isinstance(other, NoisyRatio)
        return Effect("difference", RatioDifference(one, other), self.level)

    def as_measure(self, measure: Measure) -> OneEffect:
        """Return the result itself for "difference"; a difference of ratios has no other measure (CV-P686)."""
        if check_measure(measure) == DIFFERENCE:
            return self
        raise no_measure(measure, f"a ratio of sums, {self.outcome}")

    def untruncated_interval(self, level: float | None = None) -> Ends:
        """Return the interval, which is not cut to a range of outcomes: a ratio may lie outside it."""
        return self.effect.interval(self.level if level is None else check_level(level))

    @classmethod
    def of(cls, ratios: list[Effect], **terms: Any) -> RatioResult:
        """Return the result of both arms' ratios; `terms` are the provenance and the estimand."""
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
            "sentence": f"{self.outcome}, treated minus control",
            "notes": [("Ratios", by_arm)],
        }

    @classmethod
    def _made(cls, ratios: tuple[Effect, ...], **terms: Any) -> RatioResult:
        if len(ratios) != 2:
            raise ValueError("there are two arms")
        return cls.of([*ratios], **terms)

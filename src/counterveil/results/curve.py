"""The answer about a ranking: what treating the highest ranked gains, share by share, and two summaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from counterveil.inference.ratio import NoisyRatio, p_value
from counterveil.privacy import Budget, Guarantee
from counterveil.report.text import probability
from counterveil.results.estimated import check_level, one_of_several_row
from counterveil.results.groups import GroupEffect, known_from_dict, known_to_dict, total_sd
from counterveil.results.result import (
    Answered,
    Shown,
    answer_facts,
    answer_from_dict,
    opening_facts,
    promise_row,
)
from counterveil.results.saved import reads_facts


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What treating everyone with a score of `threshold` or more gains per person of everybody.

    `threshold` is None at the end of the curve, where everybody is treated; `share` is as released.
    """

    threshold: float | None
    share: float
    known: NoisyRatio
    level: float
    points: int

    @property
    def gain(self) -> GroupEffect:
        """The gain over treating nobody, with its intervals."""
        name = "everybody" if self.threshold is None else f"score >= {self.threshold:.4g}"
        return GroupEffect(f"{name} ({self.share:.0%})", 0.0, 0.0, self.known, self.level, self.points)


@dataclass(frozen=True, slots=True)
class TargetingCurve(Answered, Shown):
    """Released gains of treating the people ranked highest; nothing it does spends budget.

    `qini` is the area between the curve and treating the same shares at random; `autoc` the mean over shares of
    the gain per treated person, less that of everybody. Both are 0 for a ranking that tells nothing.
    """

    points: tuple[CurvePoint, ...]
    qini: NoisyRatio
    autoc: NoisyRatio
    cost: float
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)

    @property
    def gains(self) -> tuple[GroupEffect, ...]:
        """The gain at every point, from the highest scores downwards."""
        return tuple(point.gain for point in self.points)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of people treated at every point."""
        return tuple(point.share for point in self.points)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> list[tuple[float, float]]:
        """Return every gain's interval; with `simultaneous` they hold for the whole curve (Šidák)."""
        chosen = self.level if level is None else check_level(level)
        return [gain.interval(chosen, simultaneous) for gain in self.gains]

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row a point with the names that `broom` uses, ready for a data frame."""
        promise = promise_row(self.guarantee, self.spent)
        return [
            {
                "term": self.treatment,
                "threshold": "-inf" if point.threshold is None else point.threshold,
                "share": point.share,
            }
            | one_of_several_row(point.gain)
            | promise
            for point in self.points
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `TargetingCurve.from_dict` reads them back."""
        summaries = (("qini", self.qini), ("autoc", self.autoc))
        said = "; ".join(f"{name} {_summary(known, self.level)}" for name, known in summaries)
        return (
            opening_facts(self.guarantee)
            | self.stored()
            | {
                "sentence": f"gain per person of treating the highest ranked, after a cost of {self.cost:g} each",
                "effects": [gain.to_dict() for gain in self.gains],
                "notes": [("Ranking", said)],
            }
        )

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return answer_facts(self) | {
            "cost": self.cost,
            "effects": [gain.stored() for gain in self.gains],
            "thresholds": [point.threshold for point in self.points],
            "shares": list(self.shares),
            "qini": known_to_dict(self.qini),
            "autoc": known_to_dict(self.autoc),
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> TargetingCurve:
        """Return the curve written by `to_dict` or `stored`."""
        points = tuple(
            CurvePoint(threshold, share, _ratio(one["known"]), facts["level"], len(facts["shares"]))
            for threshold, share, one in zip(
                facts["thresholds"], facts["shares"], facts["effects"], strict=True
            )
        )
        return cls(
            points=points,
            qini=_ratio(facts["qini"]),
            autoc=_ratio(facts["autoc"]),
            cost=facts["cost"],
            **answer_from_dict(facts),
        )


def _ratio(facts: dict[str, Any]) -> NoisyRatio:
    known = known_from_dict(facts)
    assert isinstance(known, NoisyRatio)  # a curve writes nothing else
    return known


def _summary(known: NoisyRatio, level: float) -> str:
    low, high = known.interval(level)
    found = f"{known.estimate:.3g} [{low:.3g}, {high:.3g}]"
    return f"{found} (std. error {total_sd(known):.2g}, p {probability(p_value(known.interval))})"

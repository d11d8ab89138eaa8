"""The answer about groups: an effect for each, its intervals, one promise for all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import hypot, inf
from typing import Any, Protocol

from scipy.special import ndtri

from counterveil.inference import Uncertainty, adjusted_p
from counterveil.inference.ratio import NoisyRatio, RatioDifference, p_value
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.results.estimated import (
    StdError,
    around,
    level_of_one,
    one_of_several_facts,
    one_of_several_row,
    uncertainty_from_dict,
    uncertainty_to_dict,
    within,
)
from counterveil.results.result import (
    Answered,
    Shown,
    answer_facts,
    answer_from_dict,
    opening_facts,
    promise_row,
)
from counterveil.results.saved import reads_facts

# What is known about one released effect of a group: a linear estimate, a noisy ratio, or two of them.


class Known(Protocol):
    """An estimate with its interval; every number in it is public or released."""

    @property
    def estimate(self) -> float:
        """The released effect."""
        ...

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        ...

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        ...

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two ends of an interval of this level."""
        ...


@dataclass(frozen=True, slots=True)
class LinearKnown:
    """A number with its own uncertainty, which lies in [-limit, limit] for certain."""

    estimate: float
    uncertainty: Uncertainty
    limit: float = inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.uncertainty.sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.uncertainty.noise_sd

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two ends of an interval of this level."""
        return within(around(self.estimate, self.uncertainty.half_width(level)), (-self.limit, self.limit))


def p_value_of(known: Known, level: float) -> float:
    """Return the two-sided p-value of no effect, noise included; below 1 - level where the interval leaves out 0."""
    if isinstance(known, LinearKnown):
        return known.uncertainty.p_value(known.estimate, level)
    return p_value(known.interval)


def total_sd(known: Known) -> float:
    """Return the standard deviation of sampling error and noise together."""
    return hypot(known.sampling_sd, known.noise_sd)


def naive_interval(known: Known, level: float) -> tuple[float, float]:
    """Return the interval that ignores the noise: too short, for comparison only."""
    return around(known.estimate, -float(ndtri((1 - level) / 2)) * known.sampling_sd)


def known_to_dict(known: Known) -> dict[str, Any]:
    """Return what is known as JSON-ready facts; `known_from_dict` reads them back."""
    if isinstance(known, LinearKnown):
        facts = {"kind": "linear", "estimate": known.estimate, "limit": _written(known.limit)}
        return facts | uncertainty_to_dict(known.uncertainty)
    if isinstance(known, RatioDifference):
        return {"kind": "difference", "one": _ratio(known.one), "other": _ratio(known.other)}
    assert isinstance(known, NoisyRatio)
    return {"kind": "ratio"} | _ratio(known)


def known_from_dict(facts: dict[str, Any]) -> Known:
    """Return what `known_to_dict` wrote."""
    rest = {name: value for name, value in facts.items() if name != "kind"}
    if facts["kind"] == "linear":
        return LinearKnown(rest["estimate"], uncertainty_from_dict(rest), _read(rest["limit"]))
    if facts["kind"] == "difference":
        return RatioDifference(_from(rest["one"]), _from(rest["other"]))
    return _from(rest)


def _ratio(known: NoisyRatio) -> dict[str, Any]:
    return asdict(known) | {"limit": _written(known.limit)}


def _from(facts: dict[str, Any]) -> NoisyRatio:
    return NoisyRatio(**(facts | {"limit": _read(facts["limit"])}))


def _written(limit: float) -> float | None:
    # JSON knows no infinity.
    return None if limit == inf else limit


def _read(limit: float | None) -> float:
    return inf if limit is None else limit


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """The effect on one group, one of `groups` such effects.

    `size` is the group's number of people: exact where it is public (`size_sd` is 0), else as released.
    """

    name: str
    size: float
    size_sd: float
    known: Known
    level: float
    groups: int

    @property
    def estimate(self) -> float:
        """The released effect."""
        return self.known.estimate

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return StdError(total_sd(self.known), self.known.sampling_sd, self.known.noise_sd)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> tuple[float, float]:
        """Return an interval for this effect; with `simultaneous`, all groups' intervals hold together."""
        return self.known.interval(level_of_one(self, self.groups, level, simultaneous))

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        return p_value_of(self.known, self.level)

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all groups; below 1 - level when the simultaneous interval leaves out 0."""
        each = level_of_one(self, self.groups, None, simultaneous=True)
        return adjusted_p(p_value_of(self.known, each), self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the effect and both its intervals as JSON-ready facts."""
        return self.stored() | one_of_several_facts(self, naive_interval(self.known, self.level))

    def stored(self) -> dict[str, Any]:
        """Return the group and what is known of its effect, as released and without intervals."""
        named = {"name": self.name, "size": self.size, "size_sd": self.size_sd}
        return named | {"known": known_to_dict(self.known)}


@dataclass(frozen=True, slots=True)
class GroupsResult(Answered, Shown):
    """Released effects of public groups; nothing in it is private any more and nothing it does spends budget.

    `left_out` names groups without two people in either arm: only where that is public.
    """

    effects: tuple[GroupEffect, ...]
    by: tuple[str, ...]
    guarantee: Guarantee
    spent: Budget
    method: str
    treatment: str
    outcome: str
    level: float
    releases: tuple[tuple[str, str], ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def effect(self, name: str) -> GroupEffect:
        """Return the effect of the group called `name`; a KeyError names the groups there are."""
        for one in self.effects:
            if one.name == name:
                return one
        raise KeyError(f"{name!r}; the groups are {[one.name for one in self.effects]}")

    def interval(
        self, level: float | None = None, simultaneous: bool = False
    ) -> dict[str, tuple[float, float]]:
        """Return every effect's interval by group; with `simultaneous` they hold together (Šidák)."""
        return {one.name: one.interval(level, simultaneous) for one in self.effects}

    def tidy(self) -> list[dict[str, float | str]]:
        """Return one row a group with the names that `broom` uses, ready for a data frame."""
        named: dict[str, float | str] = {"term": self.treatment, "estimand": Estimand.ATE.value}
        promise = promise_row(self.guarantee, self.spent)
        return [
            {**named, "group": one.name, "size": one.size} | one_of_several_row(one) | promise
            for one in self.effects
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `GroupsResult.from_dict` reads them back."""
        sizes = "public" if all(one.size_sd == 0 for one in self.effects) else "released, with noise"
        notes = [("Groups", f"by {', '.join(self.by)}; numbers of people are {sizes}")]
        if self.left_out:
            notes.append(("Left out", f"{'; '.join(self.left_out)}: fewer than two people in an arm"))
        return (
            opening_facts(self.guarantee)
            | answer_facts(self)
            | {
                "sentence": "average effect of the treatment on everyone in a group",
                "estimand": Estimand.ATE.value,
                "by": list(self.by),
                "effects": [one.to_dict() for one in self.effects],
                "left_out": list(self.left_out),
                "notes": notes,
            }
        )

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters, from which all else follows."""
        return answer_facts(self) | {
            "by": list(self.by),
            "effects": [one.stored() for one in self.effects],
            "left_out": list(self.left_out),
        }

    @classmethod
    @reads_facts
    def from_dict(cls, facts: dict[str, Any]) -> GroupsResult:
        """Return the result written by `to_dict` or `stored`."""
        return cls(
            effects=effects_from_dict(facts),
            by=tuple(facts["by"]),
            left_out=tuple(facts["left_out"]),
            **answer_from_dict(facts),
        )


def effects_from_dict(facts: dict[str, Any]) -> tuple[GroupEffect, ...]:
    """Return the effects that a result wrote under "effects"."""
    return tuple(
        GroupEffect(
            one["name"],
            one["size"],
            one["size_sd"],
            known_from_dict(one["known"]),
            facts["level"],
            len(facts["effects"]),
        )
        for one in facts["effects"]
    )

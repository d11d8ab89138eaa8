"""A released number and its error: standard error, interval, and the facts and rows that show them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Protocol

from counterveil.errors import ParameterError, shown
from counterveil.inference import PooledUncertainty, Uncertainty, UnsureScale, level_of_each
from counterveil.session import SmoothSensitivityMechanism, mechanism_from_dict

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StdError:
    """Standard error of an estimate; `float(...)` is the total."""

    total: float
    sampling: float
    noise: float

    @classmethod
    def of(cls, known: Uncertainty | PooledUncertainty) -> StdError:
        """Return the standard error of an estimate of this uncertainty."""
        return cls(known.total_sd, known.sampling_sd, known.noise_sd)

    def __float__(self) -> float:
        return self.total


class Estimated:
    """A number with its uncertainty: what a result, a pooled result and the mean of an arm share.

    `limits` are what the quantity can be at all, from the outcome's declared range; None where they are not known.
    """

    __slots__ = ()

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    level: float
    limits: Ends | None

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        return StdError.of(self.uncertainty)

    def interval(self, level: float | None = None) -> Ends:
        """Return the two ends of an interval that covers sampling error and privacy noise together.

        It is cut to what the outcome's declared range allows, which is public and loses no coverage. The estimate and
        its standard error stay as they were released.
        """
        return within(self.uncut_interval(level), self.limits)

    def uncut_interval(self, level: float | None = None) -> Ends:
        """Return the interval before it is cut: as far on either side of the estimate."""
        chosen = self.level if level is None else check_level(level)
        return around(self.estimate, self.uncertainty.half_width(chosen))


class OneOfSeveral(Protocol):
    """One of several effects: its intervals may hold for it alone or for all of them together."""

    @property
    def estimate(self) -> float:
        """The released effect."""
        ...

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        ...

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        ...

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included."""
        ...

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all effects."""
        ...

    def interval(self, level: float | None = None, simultaneous: bool = False) -> Ends:
        """Return the two ends of an interval."""
        ...


def level_of_one(one: OneOfSeveral, several: int, level: float | None, simultaneous: bool) -> float:
    """Return the level of one effect's interval: its own or `level`; for `several` to hold together, a higher one."""
    chosen = one.level if level is None else check_level(level)
    return level_of_each(chosen, several) if simultaneous else chosen


def around(middle: float, half: float) -> Ends:
    """Return the two ends of an interval of half-width `half`."""
    return middle - half, middle + half


def within(ends: Ends, limits: Ends | None) -> Ends:
    """Return an interval cut to limits; one that lies beyond them is the nearer limit alone."""
    if limits is None:
        return ends
    low, high = (min(max(end, limits[0]), limits[1]) for end in ends)
    return low, high


def ends_from(written: list[float] | None) -> Ends | None:
    """Return two ends that were written as a list, None for none."""
    if written is None:
        return None
    low, high = written
    return float(low), float(high)


def interval_facts(level: float, ends: Ends) -> dict[str, float]:
    """Return an interval as JSON-ready facts."""
    return {"level": level, "low": ends[0], "high": ends[1]}


def estimate_facts(estimate: float, error: StdError, level: float, ends: Ends) -> dict[str, Any]:
    """Return an estimate, its standard error and its interval as JSON-ready facts."""
    return {"estimate": estimate, "std_error": asdict(error), "interval": interval_facts(level, ends)}


def one_of_several_facts(one: OneOfSeveral, without_noise: Ends) -> dict[str, Any]:
    """Return an effect with its intervals as JSON-ready facts; the one without noise is for comparison only."""
    return estimate_facts(one.estimate, one.std_error, one.level, one.interval()) | {
        "simultaneous_interval": interval_facts(one.level, one.interval(simultaneous=True)),
        "interval_without_noise": {"low": without_noise[0], "high": without_noise[1]},
        "p_value": one.p_value,
        "adjusted_p_value": one.adjusted_p_value,
    }


def estimate_row(estimate: float, error: StdError, p_value: float) -> dict[str, float | str]:
    """Return an estimate and its error with the names that `broom` uses."""
    return {
        "estimate": estimate,
        "std.error": error.total,
        "std.error.sampling": error.sampling,
        "std.error.noise": error.noise,
        "statistic": estimate / error.total,
        "p.value": p_value,
    }


def one_of_several_row(one: OneOfSeveral) -> dict[str, float | str]:
    """Return an effect and both its intervals with the names that `broom` uses."""
    (low, high), (least, most) = one.interval(), one.interval(simultaneous=True)
    return estimate_row(one.estimate, one.std_error, one.p_value) | {
        "adj.p.value": one.adjusted_p_value,
        "conf.low": low,
        "conf.high": high,
        "conf.low.simultaneous": least,
        "conf.high.simultaneous": most,
        "conf.level": one.level,
    }


def check_level(level: float) -> float:
    """Return the confidence level if it lies strictly between 0 and 1."""
    if isinstance(level, int | float) and 0 < level < 1:
        return float(level)
    raise ParameterError(
        "CV-P015",
        "a confidence level lies between 0 and 1",
        expected="level such as 0.95",
        got=f"level={shown(level)}",
        fix="pass 0.95 rather than 95",
    )


# Laws of noise, and what is known of an error, as they are written into results and read back.


_UNSURE = "unsure_scale"


def unsure_law(noise: SmoothSensitivityMechanism, scale: float, spread: float) -> UnsureScale:
    """Return the law of smooth noise at a released scale; `spread` is that of the scale's logarithm."""
    return UnsureScale(noise.law(Fraction(1)), scale, spread, json.dumps(noise.to_dict()))


def law_to_dict(law: Any) -> dict[str, str] | None:
    """Return a law as JSON-ready facts, None for no noise."""
    if law is None:
        return None
    if isinstance(law, UnsureScale):
        return {
            "mechanism": _UNSURE,
            "of": law.origin,
            "scale": repr(law.scale),
            "spread": repr(law.spread),
        }
    facts: dict[str, str] = law.to_dict()
    return facts


def law_from_dict(facts: dict[str, str] | None) -> Any:
    """Return the law written by `law_to_dict`."""
    if facts is None:
        return None
    if facts.get("mechanism") == _UNSURE:
        noise: Any = mechanism_from_dict(json.loads(facts["of"]))
        return unsure_law(noise, float(facts["scale"]), float(facts["spread"]))
    return mechanism_from_dict(facts)


def uncertainty_to_dict(known: Uncertainty) -> dict[str, Any]:
    """Return noise and variance as JSON-ready facts; results that have an `extra` and a `bias` add them."""
    return {
        "noise": law_to_dict(known.noise),
        "variance": known.variance,
        "variance_cap": known.variance_cap,
        "variance_noise": law_to_dict(known.variance_noise),
    }


def uncertainty_from_dict(facts: dict[str, Any]) -> Uncertainty:
    """Return what `uncertainty_to_dict` wrote; a noisy variance without room for it raises ValueError."""
    if not (isfinite(facts["variance"]) and 0 <= facts["variance_cap"] < inf):
        raise ValueError("no variance is possible")
    if facts["variance_noise"] is not None and not facts["variance_cap"]:
        raise ValueError("a noisy variance needs room")
    return Uncertainty(
        noise=law_from_dict(facts["noise"]),
        variance=facts["variance"],
        variance_cap=facts["variance_cap"],
        variance_noise=law_from_dict(facts["variance_noise"]),
    )

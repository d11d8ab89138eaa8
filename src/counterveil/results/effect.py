"""One row of a result's table of effects: a released number, its error and its intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import hypot, inf, isfinite
from typing import Any, Protocol

from scipy.special import ndtri

from counterveil.errors import refusal
from counterveil.inference import PooledUncertainty, Uncertainty, adjusted_p, level_of_each, solve_together
from counterveil.inference.measures import p_value
from counterveil.numerics.arrays import Ends
from counterveil.results.decisions import Decided


@dataclass(frozen=True, slots=True)
class StdError:
    """Standard error of an estimate; `float(...)` is the total."""

    total: float
    sampling: float
    noise: float

    def __float__(self) -> float:
        return self.total


def check_level(level: float) -> float:
    """Return the confidence level if it lies strictly between 0 and 1."""
    if isinstance(level, int | float) and 0 < level < 1:
        return float(level)
    raise refusal("CV-P015", level=level)


def check_table(effects: Sequence[Effect], level: float) -> None:
    """Raise ValueError unless effects that were read are a table of their own, at the level of the answer."""
    if any((one.level, one.several) != (level, len(effects)) for one in effects):
        raise ValueError("effects of another table")


def around(middle: float, half: float) -> Ends:
    """Return the two ends of an interval of half-width `half`."""
    return middle - half, middle + half


def within(ends: Ends, limits: Ends | None) -> Ends:
    """Return an interval cut to limits; one that lies beyond them is the nearer limit alone."""
    if limits is None:
        return ends
    low, high = (min(max(end, limits[0]), limits[1]) for end in ends)
    return low, high


def interval_facts(level: float, ends: Ends, gap: Ends | None = None) -> dict[str, Any]:
    """Return an interval as JSON-ready facts: an end that is missing is None, and so is one of a `gap` inside it."""
    found: dict[str, Any] = {"level": level} | _ends_facts(ends)
    return found if gap is None else found | {"gap": list(_ends_facts(gap).values())}


def _number(value: float) -> float | None:
    # JSON knows no infinity.
    return value if isfinite(value) else None


def _ends_facts(ends: Ends) -> dict[str, float | None]:
    return {"low": _number(ends[0]), "high": _number(ends[1])}


# What is known about a released number: a linear estimate, a noisy ratio, or the difference of two of them.


class Known(Protocol):
    """An estimate with its interval; every number in it is public or released."""

    @property
    def estimate(self) -> float:
        """The released number."""
        ...

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        ...

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        ...

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval of this level."""
        ...


class OwnScale(Known):
    """What is known on a scale of its own, such as that of ratios; ends of intervals may be infinite."""

    __slots__ = ()

    @property
    @abstractmethod
    def null(self) -> float:
        """The value of no effect."""

    @abstractmethod
    def p_value(self, level: float, value: float | None = None) -> float:
        """Return the p-value of a value, None for no effect; variances as for an interval of `level`."""

    def gap(self, level: float) -> Ends | None:  # noqa: ARG002 - most intervals have one part
        """Return what lies between the two parts of an interval, None where it has one part."""
        return None


@dataclass(frozen=True, slots=True)
class Linear:
    """A number with its own uncertainty; `limits` are what it can be at all, None where they are not known."""

    estimate: float
    uncertainty: Uncertainty | PooledUncertainty
    limits: Ends | None = None

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self.uncertainty.sampling_sd

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self.uncertainty.noise_sd

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval, cut to what is possible, which is public and loses no coverage."""
        return within(around(self.estimate, self.uncertainty.half_width(level)), self.limits)


@dataclass(frozen=True, slots=True, repr=False)
class Effect(Decided):
    """One released effect, or mean of an arm, among `several` that are shown together.

    `size` is the number of people behind it: exact where it is public (`size_sd` is 0), else as released.
    """

    name: str | int | float
    known: Known
    level: float
    several: int = 1
    size: float | None = None
    size_sd: float = 0.0

    @property
    def estimate(self) -> float:
        """The released number."""
        return self.known.estimate

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part."""
        known, parts = self.known, (self.known.sampling_sd, self.known.noise_sd)
        # Differences between sites are in the total of a pooled effect alone.
        if isinstance(known, Linear):
            return StdError(known.uncertainty.total_sd, *parts)
        return StdError(hypot(*parts), *parts)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> Ends:
        """Return an interval for this effect; with `simultaneous`, the intervals of all hold together (Šidák)."""
        return self.known.interval(self._level(level, simultaneous))

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, noise included; below 1 - level where the interval leaves out 0."""
        return self._p_value(self.level)

    @property
    def careful_p_value(self) -> float:
        """The p-value with variances inflated as for an interval that holds for all effects."""
        return self._p_value(self._level(None, simultaneous=True))

    @property
    def adjusted_p_value(self) -> float:
        """The p-value for looking at all effects; below 1 - level where the simultaneous interval leaves out 0."""
        return adjusted_p(self.careful_p_value, self.several)

    def _p_value(self, level: float) -> float:
        if isinstance(self.known, Linear):
            return self.known.uncertainty.p_value(self.estimate, level)
        if isinstance(self.known, OwnScale):
            return self.known.p_value(level)
        return p_value(self.known.interval)

    @property
    def _null(self) -> float:
        return self.known.null if isinstance(self.known, OwnScale) else 0.0

    def _ends(self, level: float | None) -> tuple[float, Ends, float]:
        return self.estimate, self.interval(level), self._level(level, simultaneous=False)

    def _p_at(self, value: float, level: float | None) -> float:
        if isinstance(self.known, Linear):
            return self.known.uncertainty.p_value(self.estimate - value, level or self.level)
        if isinstance(self.known, OwnScale):
            return self.known.p_value(level or self.level, value)
        return p_value(self.known.interval, value)

    def _without_noise(self) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only."""
        if isinstance(self.known, Linear):
            return self.known.uncertainty.naive_half_width(self.level)
        return -float(ndtri((1 - self.level) / 2)) * self.known.sampling_sd

    def _gap(self, simultaneous: bool = False) -> Ends | None:
        known = self.known
        return known.gap(self._level(None, simultaneous)) if isinstance(known, OwnScale) else None

    def _level(self, level: float | None, simultaneous: bool) -> float:
        chosen = self.level if level is None else check_level(level)
        return level_of_each(chosen, self.several) if simultaneous else chosen

    def __repr__(self) -> str:
        low, high = self.interval()
        return f"<Effect: {self.name} {self.estimate:.4g} [{low:.4g}, {high:.4g}]>"

    def facts(self) -> dict[str, Any]:
        """Return estimate, standard error and intervals as JSON-ready facts."""
        low, high = around(self.estimate, self._without_noise())
        found: dict[str, Any] = {
            "name": self.name,
            "estimate": self.estimate,
            "std_error": asdict(self.std_error),
            "interval": interval_facts(self.level, self.interval(), self._gap()),
            "interval_without_noise": {"low": low, "high": high},
            "p_value": self.p_value,
        }
        if isinstance(self.known, OwnScale):
            found |= {"interval_without_noise": _ends_facts((low, high)), "null": _number(self.known.null)}
            found["std_error"] = {part: _number(sd) for part, sd in asdict(self.std_error).items()}
            found["estimate"] = _number(self.estimate)
        if self.several > 1:
            found |= {
                "simultaneous_interval": interval_facts(
                    self.level, self.interval(simultaneous=True), self._gap(simultaneous=True)
                ),
                "adjusted_p_value": self.adjusted_p_value,
            }
        return found | ({} if self.size is None else {"size": self.size, "size_sd": self.size_sd})

    def row(self) -> dict[str, Any]:
        """Return the effect as a row of a data frame; names are those of R's `broom`, with underscores."""
        (low, high), error = self.interval(), self.std_error
        found = {
            "estimate": self.estimate,
            "std_error": error.total,
            "se_sampling": error.sampling,
            "se_noise": error.noise,
            "statistic": self._statistic,
            "p_value": self.p_value,
            "conf_low": low,
            "conf_high": high,
        }
        if self.several > 1:
            least, most = self.interval(simultaneous=True)
            all_of_them = {"conf_low_simultaneous": least, "conf_high_simultaneous": most}
            found |= {"adj_p_value": self.adjusted_p_value} | all_of_them
        gap = self._gap()
        if gap is not None:
            found |= {"conf_gap_low": gap[0], "conf_gap_high": gap[1]}
        return found | {"level": self.level}

    @property
    def _statistic(self) -> float | None:
        """The estimate in standard errors; None on a scale of its own, whose test is not made of it."""
        if isinstance(self.known, OwnScale):
            return None
        total = self.std_error.total
        return self.estimate / total if total else inf


def solved(effects: Sequence[Effect], *levels: float) -> Sequence[Effect]:
    """Return effects after what their intervals and p-values need was solved for all of them at once.

    Without `levels` at those that a table shows.
    """
    errors = [
        (one.estimate, one.known.uncertainty)
        for one in effects
        if isinstance(one.known, Linear) and isinstance(one.known.uncertainty, Uncertainty)
    ]
    shown = {level_of_each(one.level, several) for one in effects for several in (1, one.several)}
    solve_together(errors, levels or sorted(shown))
    return effects

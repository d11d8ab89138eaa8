"""One row of a table of effects, and how answers are stored and read.

`Effect` holds an estimate with its `Uncertainty`, in units of the effect. Out come the interval [e - h, e + h] with
P(|N(0, v) + X| > h) = 1 - level for the sampling variance v and the privacy noise X, cut to what the range of outcomes
allows, and a p-value by the same law. From `write` on, the module is the codec of stored answers: `write` gives numbers
as released and public parameters as JSON, `read` makes the same answer of them or refuses (CV-P661). Everything is
made of released numbers: post-processing, which spends nothing.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import frexp, hypot, inf, isfinite, isqrt, log
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from counterveil.bounded_reading import UnreadableError, read_json
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.estimates import Known, OwnScale, symmetric_interval, truncate
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import WeightedSum
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.noisy_scale import NoiseOfNoisyScale
from counterveil.inference.p_values import p_value
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.simultaneous import adjusted_p, level_of_each
from counterveil.inference.uncertainty import Uncertainty, solve_together
from counterveil.numerics.arrays import Ends, Floats
from counterveil.privacy import Budget, Guarantee
from counterveil.privacy.caveats import Detail, read_fact, written
from counterveil.report.text import effect_line
from counterveil.report.view import effects_text
from counterveil.results.decisions import Decided
from counterveil.results.figures import Figures, ends_facts, error_facts, finite, interval_facts
from counterveil.results.shown import written_to
from counterveil.session import Lomax, mechanism_from_dict


@dataclass(frozen=True, slots=True)
class StdError:
    """Standard error of an estimate, with its parts; ``float(std_error)`` is the total.

    Attributes
    ----------
    total : float
        Standard error with privacy noise: the root of the sum of both squared parts, and of differences
        between sites where results are pooled.
    sampling : float
        Standard deviation of the sampling error.
    noise : float
        Standard deviation of the privacy noise.

    Examples
    --------
    >>> import counterveil as cv
    >>> error = cv.results.StdError(total=5.0, sampling=4.0, noise=3.0)
    >>> float(error), error.noise
    (5.0, 3.0)
    """

    total: float
    sampling: float
    noise: float

    def __float__(self) -> float:
        return self.total

    @property
    def parts(self) -> tuple[float, float, float]:
        """Standard error, its sampling part and its noise part."""
        return self.total, self.sampling, self.noise

    def facts(self) -> dict[str, float | None]:
        """Return the three numbers by name.

        Returns
        -------
        dict
            ``total``, ``sampling``, ``noise``.
        """
        return error_facts(self.parts)


def check_level(level: float) -> float:
    """Return the confidence level if it lies strictly between 0 and 1."""
    if isinstance(level, int | float) and 0 < level < 1:
        return float(level)
    raise refusal("CV-P015", level=level)


def check_table(effects: Sequence[Effect], level: float) -> None:
    """Raise ValueError unless effects that were read are a table of their own, at the level of the answer."""
    if any((one.level, one.several) != (level, len(effects)) for one in effects):
        raise ValueError("effects of another table")


@dataclass(frozen=True, slots=True)
class Linear:
    """A number with its own uncertainty.

    Attributes
    ----------
    estimate : float
        The released number.
    uncertainty : Uncertainty or PooledUncertainty
        Sampling error and privacy noise, from which intervals and p-values are computed.
    limits : tuple of (float, float) or None
        What the number can be at all; None where that is not known.
    """

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
        """Return the two ends of an interval, truncated to what is possible.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            estimate - h and estimate + h, truncated to `limits`, which are public: coverage stays.
        """
        return truncate(symmetric_interval(self.estimate, self.uncertainty.half_width(level)), self.limits)


@dataclass(frozen=True, slots=True, repr=False)
class Effect(Decided):
    """One released effect, or mean of an arm, with its error.

    Attributes
    ----------
    name : str, int or float
        Estimand, arm, group, period or outcome.
    known : Linear, Measured, NumberNeededToTreat, NoisyRatio or another estimate
        Estimate and uncertainty, from which everything else is computed.
    level : float
        Default confidence level, in (0, 1).
    several : int
        How many effects are shown together; simultaneous intervals hold for all of them.
    size : float or None
        Number of people behind the effect: exact where it is public, else as released. None where it is not
        known.
    size_sd : float
        Standard deviation of the noise of `size`; 0 where `size` is public.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> (effect,) = result.table
    >>> effect.name, effect.level
    ('ATE', 0.95)
    >>> low, high = effect.interval()
    >>> low < effect.estimate < high
    True
    """

    name: str | int | float
    known: Known
    level: float
    several: int = 1
    size: float | None = None
    size_sd: float = 0.0

    @property
    def estimate(self) -> float:
        """Released number, in units of the effect."""
        return self.known.estimate

    @property
    def std_error(self) -> StdError:
        """Standard error: total, sampling part, privacy-noise part, in units of the effect."""
        known, parts = self.known, (self.known.sampling_sd, self.known.noise_sd)
        # Differences between sites are in the total of a pooled effect alone.
        if isinstance(known, Linear):
            return StdError(known.uncertainty.total_sd, *parts)
        return StdError(hypot(*parts), *parts)

    def interval(self, level: float | None = None, simultaneous: bool = False) -> Ends:
        r"""Return the two ends of an interval that covers sampling error and privacy noise together.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.
        simultaneous : bool, default False
            True for an interval that holds together with those of the `several` effects shown beside it.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in units of the effect; infinite where a ratio or a quantile has no such end.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.

        Notes
        -----
        An interval of level 1 - a is estimate -+ h with P(\|N(0, v) + X\| > h) = a, where v is the sampling
        variance, enlarged where it was released with noise, and X the privacy noise. Effects on other scales
        have intervals of their own: see `counterveil.results.MeasureResult`. Of m simultaneous intervals each
        has the level (1 - a)^(1/m) (Šidák).
        """
        ends = self.known.interval(self._level(level, simultaneous))
        # Those that reach to the edges of cells may be shorter at a higher level: they hold the shorter ones too.
        alone = self.interval(level) if simultaneous and isinstance(self.known, OwnScale) else ends
        return min(ends[0], alone[0]), max(ends[1], alone[1])

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no effect, privacy noise included.

        It is below 1 - level where the interval leaves out no effect.
        """
        return self._p_value(self.level)

    @property
    def careful_p_value(self) -> float:
        """Two-sided p-value with noisy variances enlarged as for an interval that holds for all effects."""
        return self._p_value(self._level(None, simultaneous=True))

    @property
    def adjusted_p_value(self) -> float:
        """Two-sided p-value adjusted for looking at all effects (Šidák).

        It is below 1 - level where the simultaneous interval leaves out no effect.
        """
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
        time = isinstance(self.known, OwnScale) and self.known.time
        ends = interval_facts(self.level, self.interval(), self._gap())
        return f"<Effect: {effect_line(self.name, self.estimate, ends, time)}>"

    def facts(self) -> dict[str, Any]:
        """Return estimate, standard error, intervals and p-values as JSON-ready facts.

        Returns
        -------
        dict
            ``name``, ``estimate``, ``std_error``, ``interval``, ``interval_without_noise`` (too short, for
            comparison only), ``p_value``; with several effects ``simultaneous_interval`` and
            ``adjusted_p_value``; with a size ``size`` and ``size_sd``.
        """
        low, high = symmetric_interval(self.estimate, self._without_noise())
        facts: dict[str, Any] = {
            "name": self.name,
            "estimate": self.estimate,
            "std_error": self.std_error.facts(),
            "interval": interval_facts(self.level, self.interval(), self._gap()),
            "interval_without_noise": {"low": low, "high": high},
            "p_value": self.p_value,
        }
        if isinstance(self.known, OwnScale):
            facts |= {"interval_without_noise": ends_facts((low, high)), "null": finite(self.known.null)}
            facts["std_error"] = error_facts(self.std_error.parts, open_ended=True)
            facts["estimate"] = finite(self.estimate)
        if self.several > 1:
            facts |= {
                "simultaneous_interval": interval_facts(
                    self.level, self.interval(simultaneous=True), self._gap(simultaneous=True)
                ),
                "adjusted_p_value": self.adjusted_p_value,
            }
        return facts | ({} if self.size is None else {"size": self.size, "size_sd": self.size_sd})

    def row(self, exponentiate: bool = True) -> dict[str, Any]:
        """Return the effect as a row of a data frame, with the names and scales of R's `broom`.

        Dots in names are underscores.

        Parameters
        ----------
        exponentiate : bool, default True
            False gives estimate and interval of a ratio as logarithms; other effects are as they are.

        Returns
        -------
        dict
            ``estimate``, ``std_error``, ``se_sampling``, ``se_noise``, ``statistic``, ``p_value``,
            ``conf_low``, ``conf_high``, ``level``, and the columns of simultaneous intervals where there are
            several effects.

        Notes
        -----
        As in `broom`, standard errors and statistic of a ratio (of hazards, of means, of odds) are those of
        its logarithm.
        """
        (low, high), error, own_scale = self.interval(), self.std_error, isinstance(self.known, OwnScale)
        errors, estimate = [error.total, error.sampling, error.noise], self.estimate
        # What is known exactly has no error.
        exact = inf if estimate else 0.0
        statistic = None if own_scale else estimate / error.total if error.total else exact
        ratio = self._null == 1

        def scaled(value: float) -> float:
            if exponentiate or not ratio:
                return value
            return log(value) if value > 0 else -inf

        if ratio:
            errors = [sd / estimate if 0 < estimate < inf else inf for sd in errors]
            statistic = log(estimate) / errors[0] if 0 < errors[0] < inf else None
        several = self.several > 1
        together = self.interval(simultaneous=True) if several else None
        figures = Figures(
            estimate=scaled(estimate),
            errors=(errors[0], errors[1], errors[2]),
            level=self.level,
            ends=(scaled(low), scaled(high)),
            p_value=self.p_value,
            statistic=statistic,
            together=None if together is None else (scaled(together[0]), scaled(together[1])),
            adjusted_p_value=self.adjusted_p_value if several else None,
            gap=self._gap(),
        )
        return figures.row()


class EffectTable(tuple[Effect, ...]):
    """Effects in their order: a tuple that prints as a table.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> table = cv.results.effect.EffectTable(result.table)
    >>> table.tidy()[0]["contrast"]
    'ATE'
    """

    __slots__ = ()

    def tidy(self) -> list[dict[str, Any]]:
        """Return a row for each effect.

        Returns
        -------
        list of dict
            The name under ``contrast``, then ``estimate``, ``std_error``, ``p_value``, ``conf_low``,
            ``conf_high`` and further columns with the names of R's `broom`.
        """
        prefetch_intervals(self)
        return [{"contrast": effect.name} | effect.row() for effect in self]

    def __repr__(self) -> str:
        if not self:
            return "no effects"
        prefetch_intervals(self)
        return effects_text([effect.facts() for effect in self], self[0].level)


def prefetch_intervals(effects: Sequence[Effect], *levels: float) -> None:
    """Solve what intervals and p-values of several effects need in one batch, and cache it.

    Results are the same without it; one batch is several times faster than one effect at a time. Without `levels`
    at those that a table shows.
    """
    errors = [
        (effect.estimate, effect.known.uncertainty)
        for effect in effects
        if isinstance(effect.known, Linear) and isinstance(effect.known.uncertainty, Uncertainty)
    ]
    shown = {level_of_each(effect.level, several) for effect in effects for several in (1, effect.several)}
    solve_together(errors, levels or sorted(shown))


def effect_rows(
    treatment: str,
    columns: Iterable[dict[str, Any]],
    effects: Sequence[Effect],
    sources: Iterable[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return a table of effects: the treatment, each effect's own columns, its figures, and its provenance."""
    prefetch_intervals(effects)
    return [
        {"term": treatment} | own | effect.row() | source
        for own, effect, source in zip(columns, effects, sources, strict=True)
    ]


def intervals_by(
    names: Iterable[Any], effects: Sequence[Effect], level: float | None, simultaneous: bool
) -> dict[Any, Ends]:
    """Return every effect's interval by a name."""
    prefetch_intervals(effects)
    return {name: effect.interval(level, simultaneous) for name, effect in zip(names, effects, strict=True)}


class ByName:
    """Effects in a table, each by its name: a group, a period, an outcome, a share."""

    __slots__ = ()

    @property
    def table(self) -> tuple[Effect, ...]:
        """The effects."""
        raise NotImplementedError

    def effect(self, name: Any) -> Effect:
        """Return the effect of a name.

        Parameters
        ----------
        name : str, int or float
            Group, period, outcome or quantile, as in ``table``.

        Returns
        -------
        Effect
            Estimate, standard error, interval and p-value.

        Raises
        ------
        KeyError
            No effect of that name; the message lists the names.
        """
        for effect in self.table:
            if effect.name == name:
                return effect
        raise KeyError(f"{name!r}; the effects are {[effect.name for effect in self.table]}")

    def interval(self, level: float | None = None, simultaneous: bool = False) -> dict[Any, Ends]:
        """Return every effect's interval by its name.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.
        simultaneous : bool, default False
            True for intervals that hold together: Šidák's, of pooled results Bonferroni's.

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end, in units of the effect.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        effects = self.table
        return intervals_by([effect.name for effect in effects], effects, level, simultaneous)


class FactsOf(Sequence[dict[str, Any]]):
    """The facts of effects, each after its own columns; solved in batches as far as they are read, and kept."""

    def __init__(self, effects: Sequence[Effect], columns: Sequence[dict[str, Any]] | None = None) -> None:
        self._effects, self._columns = effects, columns or [{}] * len(effects)
        self._facts: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._effects)

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return self[place : place + 1 or None][0]
        rows = range(len(self))[place]
        unread = [row for row in rows if row not in self._facts]
        prefetch_intervals([self._effects[row] for row in unread])
        for row in unread:
            self._facts[row] = self._columns[row] | self._effects[row].facts()
        return [self._facts[row] for row in rows]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self[:])


# One codec: answers as JSON, read back by the declared types of their fields, or refused.
#
# An answer is a frozen dataclass. It is written as a table of its fields, with the version of this format and its
# kind. A field is written by its declared type: numbers, texts, enumerations, tuples, mappings and dataclasses as
# they are; one of several dataclasses with its name under `is`; what is no finite number as a text; noise, and what
# has a `from_dict` and is no answer (budgets, studies), by its own form; a vector as a list, and a symmetric matrix
# as its upper triangle in single precision.
#
# Fields that do not count in comparisons are not written. A class may say more: `_DERIVED` names fields that follow
# from the others and are not written, `_made` makes an object of those that are, `_SHOWN` names what stands beside
# them for readers, and `_check` raises ValueError where fields do not fit together.


Read = TypeVar("Read")
# Of files and of answers in ledgers; those of another version are refused.
VERSION = 3
# What `to_dict` adds for readers; it follows from the fields and is never read.
_SHOWN = frozenset({
    "guarantee_warning", "warning", "title", "sentence", "notes", "effects", "estimand", "reference", "arm_means",
    "estimate", "std_error", "interval", "interval_without_noise", "p_value", "null", "means", "simultaneous_interval",
    "reference_row", "pre_trend_p_value", "prediction", "curves", "steps", "at_risk", "log_rank", "heterogeneity",
    "restricted_mean_ratio", "intervals", "hazard_ratio", "proportionality_p_value", "medians", "share_intervals",
    "not_in_result",
})  # fmt: skip
# What reading facts of another kind can end with.
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_NOT_FINITE = {"inf": inf, "-inf": -inf, "nan": float("nan")}
_NOISY_SCALE, _SUM = "noisy_scale", "weighted_sum"
# Noises that a stored one may be the sum of.
_MOST_TERMS = 3
# How near to one the stored weights of sites add up.
_WEIGHTS_ADD_UP = 1e-9
# Largest entries of a binary exponent within this are written as they are. Others are scaled by a power of two, which
# is written before them: single precision ends at exponents of about 126.
_PLAIN = 60


def write(answer: Any) -> dict[str, Any]:
    """Return an answer as JSON-ready facts; `read` reads them back."""
    table: dict[str, Any] = _table(cast("Any", type(answer))).written(answer)
    return {"version": VERSION, "kind": type(answer).__name__} | table


def read(kind: type[Read], facts: Any) -> Read:
    """Return the answer of a kind that was written, with what `to_dict` adds or without, or raise CV-P661."""
    with refusing(kind):
        fields_of_answer = {name: value for name, value in facts.items() if name not in ("version", "kind")}
        if facts.get("version") != VERSION:
            raise UnreadableError("another version")
        if facts.get("kind") != kind.__name__:
            raise UnreadableError("another kind of answer")
        answer = _table(cast("Any", kind)).fields_of(fields_of_answer, "", _SHOWN)
    return cast("Read", answer)


@contextmanager
def refusing(kind: type) -> Iterator[None]:
    """Raise CV-P661 where facts do not make an object of a kind; refusals of our own pass."""
    try:
        yield
    except CounterveilError:
        raise
    except _FAULTS as fault:
        got = str(fault) if isinstance(fault, UnreadableError) else type(fault).__name__
        raise refusal("CV-P661", kind=kind.__name__, got=got) from None


def kind_of(facts: Mapping[str, Any], kinds: Mapping[str, type[Read]]) -> type[Read]:
    """Return the class that facts are of, among those of these names; others raise UnreadableError."""
    kind = facts.get("kind") if isinstance(facts, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise UnreadableError("another kind of answer")
    return kinds[kind]


def save(facts: dict[str, Any], path: str | Path) -> Path:
    """Write facts as JSON; return the path."""
    return cast("Path", written_to(path, json.dumps(facts)))


def load(
    path: str | Path, reader: Callable[[dict[str, Any]], Read], refused: Callable[[str], CounterveilError]
) -> Read:
    """Return what `reader` makes of the facts in a file, or raise the refusal of what was found there."""
    try:
        return reader(read_json(path))
    except CounterveilError as error:
        raise refused(f"{shown(path)}: {error.code}, {error.got}") from None
    except (OSError, *_FAULTS) as fault:
        raise refused(f"{shown(path)}: {type(fault).__name__}") from None


def no_effects(got: str, writer: str) -> CounterveilError:
    """Return CV-P552, for a file that `writer` did not write."""
    return refusal("CV-P552", writer=writer, got=got)


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of a type are written, and read under a name that refusals repeat."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def _misfit(name: str) -> UnreadableError:
    return UnreadableError(f"{name or 'facts'} of another type")


@lru_cache(maxsize=512)
def _form(hint: Any, role: str) -> _Form:
    """Return the form of a declared type; `role` is the name of a field that holds facts."""
    form = _EXACT.get(hint)
    if form is not None:
        return form
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        alternatives = [each for each in inside if each is not types.NoneType]
        return _union(alternatives, types.NoneType in inside, role)
    if origin is tuple:
        return _tuple(inside, role)
    if origin is list:
        many = _tuple((inside[0], ...), role)
        return _Form(many.write, lambda value, name: [*many.read(value, name)])
    if origin in (dict, Mapping):
        return _mapping(_form(inside[1], role))
    # From Python 3.12 and numpy 2.5 on, NDArray is a name of its own for the type.
    if origin in (np.ndarray, NDArray):
        return _Form(_write_array, _read_array)
    if hint in _CHOICES:
        return _one_of(_CHOICES[hint])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Form(lambda value: value.value, lambda value, _: hint(value))
    if hasattr(hint, "from_dict") and not hasattr(hint, "stored"):
        return _exact(hint.to_dict, hint.from_dict)
    return _table(hint).form


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _write_float(value: float) -> Any:
    number = _plain(value)
    return number if isfinite(number) else str(float(number))


def _read_float(value: Any, name: str) -> Any:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    # A whole number beyond the largest double is none.
    if isinstance(value, float) or (_whole(value) and abs(value) < 2**1000):
        return value
    raise _misfit(name)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _of(*kinds: type) -> _Form:
    """Return the form of plain values of some types."""

    def read_plain(value: Any, name: str) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _misfit(name)
        return value

    return _Form(_plain, read_plain)


def _union(inside: list[Any], optional: bool, role: str) -> _Form:
    if Detail in inside:
        form = _Form(written, lambda value, _: read_fact(role, value))
    elif len(inside) == 1:
        form = _form(inside[0], role)
    elif all(alternative in (str, int, float, bool) for alternative in inside):
        form = _of(*inside, int, bool)
    else:
        form = _one_of(
            tuple(kind for alternative in inside for kind in _CHOICES.get(alternative, (alternative,)))
        )
    if not optional:
        return form
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda value, name: None if value is None else form.read(value, name),
    )


def _tuple(inside: tuple[Any, ...], role: str) -> _Form:
    forms = [_form(hint, role) for hint in inside if hint is not Ellipsis]
    many = Ellipsis in inside

    def write_all(values: Any) -> list[Any]:
        item_forms = forms * len(values) if many else forms
        return [form.write(value) for form, value in zip(item_forms, values, strict=True)]

    def read_all(values: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple) or not (many or len(values) == len(forms)):
            raise _misfit(name)
        item_forms = forms * len(values) if many else forms
        return tuple(form.read(value, name) for form, value in zip(item_forms, values, strict=True))

    return _Form(write_all, read_all)


def _mapping(value_form: _Form) -> _Form:
    def read_all(values: Any, name: str) -> dict[str, Any]:
        if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
            raise _misfit(name)
        return {key: value_form.read(value, name) for key, value in values.items()}

    return _Form(lambda values: {key: value_form.write(value) for key, value in values.items()}, read_all)


def _one_of(kinds: tuple[type, ...]) -> _Form:
    """Return the form of one of several dataclasses, which is named."""
    tables = {kind.__name__: _table(kind) for kind in kinds}

    def read_one(value: Any, name: str) -> Any:
        kind = value.get("is") if isinstance(value, Mapping) else None
        if not isinstance(kind, str) or kind not in tables:
            raise _misfit(name)
        return tables[kind].form.read({key: part for key, part in value.items() if key != "is"}, name)

    return _Form(
        lambda value: {"is": type(value).__name__} | tables[type(value).__name__].form.write(value), read_one
    )


@dataclass(frozen=True, slots=True)
class _Record:
    """The fields of a dataclass that are stored, each with its form; `given` are those that it is made with."""

    kind: Any
    forms: Mapping[str, _Form]
    given: frozenset[str]

    @property
    def form(self) -> _Form:
        """How objects of the class are written and read inside others."""
        return _Form(self.written, self.fields_of)

    def written(self, value: Any) -> dict[str, Any]:
        """Return the fields as facts."""
        return {name: form.write(getattr(value, name)) for name, form in self.forms.items()}

    def fields_of(self, facts: Any, name: str, besides: Collection[str] = ()) -> Any:
        """Return the object made of facts that have all of its fields, and nothing else but what may stand besides."""
        if not isinstance(facts, Mapping) or not all(isinstance(key, str) for key in facts):
            raise _misfit(name)
        dot = f"{name}." if name else ""
        besides = getattr(self.kind, "_SHOWN", besides)
        missing = self.forms.keys() - facts.keys()
        unknown = facts.keys() - self.forms.keys() - set(besides)
        if missing or unknown:
            raise UnreadableError(f"{dot}{min(missing)} missing" if missing else f"{dot}an unknown field")
        values = {field: form.read(facts[field], dot + field) for field, form in self.forms.items()}
        answer = getattr(self.kind, "_made", self.kind)(**{field: values[field] for field in self.given})
        if any(getattr(answer, field) != values[field] for field in self.forms.keys() - self.given):
            raise UnreadableError(f"{dot}fields that do not fit together")
        check = _CHECKS.get(self.kind) or getattr(self.kind, "_check", None)
        if check is not None:
            check(answer)
        return answer


@lru_cache(maxsize=128)
def _table(kind: Any) -> _Record:
    if not is_dataclass(kind):
        raise TypeError(f"{kind} is not stored")
    hints, derived = get_type_hints(kind), getattr(kind, "_DERIVED", ())
    stored = [field for field in fields(kind) if field.compare and field.name not in derived]
    forms = {field.name: _form(hints[field.name], field.name) for field in stored}
    return _Record(kind, forms, frozenset(field.name for field in stored if field.init))


def noise_with_noisy_scale(noise: Lomax, scale: float, log_scale: float) -> NoiseOfNoisyScale:
    """Return the mechanism of smooth noise at a released scale; `log_scale` is that of the scale's logarithm."""
    return NoiseOfNoisyScale(noise.distribution(Fraction(1)), scale, log_scale, json.dumps(noise.to_dict()))


def noise_to_dict(mechanism: Any) -> dict[str, str]:
    """Return a mechanism as JSON-ready facts, none for no noise."""
    if mechanism is None:
        return {}
    if isinstance(mechanism, NoiseOfNoisyScale):
        scales = {"scale": repr(mechanism.scale), "log_scale": repr(mechanism.log_scale)}
        return {"mechanism": _NOISY_SCALE, "of": mechanism.origin} | scales
    if isinstance(mechanism, WeightedSum):
        terms = [[repr(weight), noise_to_dict(term)] for weight, term in mechanism.terms]
        return {"mechanism": _SUM, "of": json.dumps(terms)}
    facts: dict[str, str] = mechanism.to_dict()
    return facts


def noise_from_dict(facts: dict[str, str]) -> Any:
    """Return the mechanism written by `noise_to_dict`."""
    if facts.get("mechanism") == _NOISY_SCALE:
        noise: Any = mechanism_from_dict(json.loads(facts["of"]))
        return noise_with_noisy_scale(noise, float(facts["scale"]), float(facts["log_scale"]))
    if facts.get("mechanism") == _SUM:
        terms: Any = tuple(
            (float(weight), mechanism_from_dict(term)) for weight, term in json.loads(facts["of"])
        )
        _require(0 < len(terms) <= _MOST_TERMS and all(0 < weight < inf for weight, _ in terms))
        return WeightedSum(terms)
    return mechanism_from_dict(facts)


def _guarantee(facts: dict[str, Any]) -> Guarantee:
    # Read as a budget first, which bounds the digits.
    Budget(facts["epsilon"], facts["delta"])
    guarantee = Guarantee.from_dict(facts)
    if not all(isinstance(text, str) for text in (*guarantee.public, *guarantee.pages, *guarantee.remarks)):
        raise _misfit("guarantee")
    return guarantee


def _exact(write_one: Callable[[Any], Any], read_one: Callable[[Any], Any]) -> _Form:
    """Return a form of a type's own, of a table."""

    def read_table(value: Any, name: str) -> Any:
        if not isinstance(value, Mapping):
            raise _misfit(name)
        return read_one(value)

    return _Form(write_one, read_table)


def _write_array(array: Floats) -> Any:
    if array.ndim == 1:
        return array.tolist()
    upper = array[np.triu_indices(len(array))]
    exponent = frexp(float(np.abs(upper).max(initial=0.0)))[1]
    power = exponent if abs(exponent) > _PLAIN else 0
    text = b64encode(np.ldexp(upper, -power).astype("<f4").tobytes()).decode("ascii")
    return f"{power}:{text}" if power else text


def _read_array(value: Any, name: str) -> Floats:
    if isinstance(value, list) and all(_whole(number) or isinstance(number, float) for number in value):
        return np.array(value, dtype=np.float64)
    if not isinstance(value, str):
        raise _misfit(name)
    power, _, body = value.rpartition(":")
    upper = np.frombuffer(b64decode(body), dtype="<f4").astype(np.float64)
    size = (isqrt(8 * len(upper) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = np.ldexp(upper, int(power or 0))
    return np.asarray(matrix + np.triu(matrix, 1).T)


_EXACT: dict[Any, _Form] = {
    Any: _Form(lambda value: value, lambda value, _: value),
    float: _Form(_write_float, _read_float),
    int: _of(int),
    str: _of(str),
    bool: _of(bool),
    Guarantee: _exact(Guarantee.to_dict, _guarantee),
    NoiseDistribution: _exact(noise_to_dict, noise_from_dict),
}
_CHOICES: dict[Any, tuple[type, ...]] = {
    Known: (Linear, NoisyRatio, RatioDifference),
    Uncertainty: (Uncertainty, ClusterUncertainty),
}


def _require(*conditions: bool) -> None:
    if not all(conditions):
        raise UnreadableError("numbers that do not fit together")


def _check_error(error: Uncertainty) -> None:
    """Raise ValueError for an error that no release has; a noisy variance needs a cap."""
    _require(isfinite(error.variance), 0 <= error.variance_cap < inf)
    _require(error.variance_noise is None or error.variance_cap > 0)
    ball = error.ball_variance, error.ball_dimensions
    _require(ball == (0, 0) or (0 < ball[0] < inf and ball[1] in (2, 3)))
    if isinstance(error, ClusterUncertainty):
        _require(isfinite(error.freedom), error.freedom >= 1)
        capped = error.noise is not None and error.variance_cap > 0 and error.variance >= 0
        _require(error.sd_noise is None or capped)


def _check_weights(pooled: PooledUncertainty | PooledMeans) -> None:
    _require(len(pooled.sites) == len(pooled.weights) > 0)
    _require(min(pooled.weights) >= 0, abs(sum(pooled.weights) - 1) <= _WEIGHTS_ADD_UP)


def _check_pooled(error: PooledUncertainty) -> None:
    _check_weights(error)
    _require(error.steadied is None or len(error.steadied) == len(error.sites))


def _check_means(means: PooledMeans) -> None:
    _check_weights(means)
    _require(len(means.names) == len(means.sites))


_CHECKS: dict[Any, Callable[[Any], None]] = {
    Uncertainty: _check_error,
    ClusterUncertainty: _check_error,
    PooledUncertainty: _check_pooled,
    PooledMeans: _check_means,
    IndependentArmMeans: lambda means: _require(min(means.sizes) > 0, means.range[0] < means.range[1]),
    JointArmMeans: lambda means: _require(
        0 < means.share < 1, means.rows >= 1, means.range[0] < means.range[1]
    ),
}

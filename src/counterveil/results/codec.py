"""One codec: answers as JSON, read back by the declared types of their fields, or refused.

An answer is a frozen dataclass. It is written as a table of its fields, with the version of this format and its kind.
A field is written by its declared type: numbers, texts, enumerations, tuples, mappings and dataclasses as they are;
one of several dataclasses with its name under `is`; what is no finite number as a text; noise, and what has a
`from_dict` and is no answer (budgets, studies), by its own form; a vector as a list, and a symmetric matrix as its
upper triangle in single precision.

Fields that do not count in comparisons are not written. A class may say more: `_DERIVED` names fields that follow from
the others and are not written, `_made` makes an object of those that are, `_SHOWN` names what stands beside them for
readers, and `_check` raises ValueError where fields do not fit together.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import frexp, inf, isfinite, isqrt
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from counterveil.bounded_reading import UnreadableError, read_json
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.inference import (
    ClusterUncertainty,
    NoiseDistribution,
    PooledUncertainty,
    Uncertainty,
    UnsureScale,
    WeightedSum,
)
from counterveil.inference.distributions import NoisyHistograms
from counterveil.inference.measures import ApartMeans, JointMeans, NoisyRatio, RatioDifference
from counterveil.inference.pooling import PooledMeans
from counterveil.inference.survival import NoisyTables
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget, Guarantee
from counterveil.privacy.caveats import Detail, read_fact, written
from counterveil.results.effect import Known, Linear
from counterveil.session import Lomax, mechanism_from_dict

Read = TypeVar("Read")
# Of files and of answers in ledgers; those of another version are refused.
VERSION = 3
# What `to_dict` adds for readers; it follows from the fields and is never read.
_SHOWN = frozenset(
    {
        *(
            "warning",
            "caution",
            "title",
            "sentence",
            "notes",
            "effects",
            "estimand",
            "reference",
            "arm_means",
        ),
        *("estimate", "std_error", "interval", "interval_without_noise", "p_value", "null", "means"),
        *("simultaneous_interval", "reference_row", "pre_trend_p_value", "prediction"),
        *("curves", "steps", "at_risk", "log_rank", "restricted_mean_ratio", "heterogeneity", "intervals"),
        *("hazard_ratio", "proportionality_p_value", "medians"),
        *("share_intervals", "not_in_result"),
    }
)
# What reading facts of another kind can end with.
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_NOT_FINITE = {"inf": inf, "-inf": -inf, "nan": float("nan")}
_UNSURE, _SUM = "unsure_scale", "weighted_sum"
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
        own = {name: value for name, value in facts.items() if name not in ("version", "kind")}
        if facts.get("version") != VERSION:
            raise UnreadableError("another version")
        if facts.get("kind") != kind.__name__:
            raise UnreadableError("another kind of answer")
        made = _table(cast("Any", kind)).fields_of(own, "", _SHOWN)
    return cast("Read", made)


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


# Files.


def save(facts: dict[str, Any], path: str | Path) -> Path:
    """Write facts as JSON; return the path."""
    target = Path(path)
    target.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    return target


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


# The form of every declared type.


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
    known = _EXACT.get(hint)
    if known is not None:
        return known
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union([one for one in inside if one is not types.NoneType], types.NoneType in inside, role)
    if origin is tuple:
        return _tuple(inside, role)
    if origin is list:
        many = _tuple((inside[0], ...), role)
        return _Form(many.write, lambda value, name: [*many.read(value, name)])
    if origin in (dict, Mapping):
        return _mapping(_form(inside[1], role))
    if origin is np.ndarray:
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
        own = _Form(written, lambda value, _: read_fact(role, value))
    elif len(inside) == 1:
        own = _form(inside[0], role)
    elif all(one in (str, int, float, bool) for one in inside):
        own = _of(*inside, int, bool)
    else:
        own = _one_of(tuple(kind for one in inside for kind in _CHOICES.get(one, (one,))))
    if not optional:
        return own
    return _Form(
        lambda value: None if value is None else own.write(value),
        lambda value, name: None if value is None else own.read(value, name),
    )


def _tuple(inside: tuple[Any, ...], role: str) -> _Form:
    forms = [_form(one, role) for one in inside if one is not Ellipsis]
    many = Ellipsis in inside

    def write_all(values: Any) -> list[Any]:
        each = forms * len(values) if many else forms
        return [form.write(value) for form, value in zip(each, values, strict=True)]

    def read_all(values: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(values, list | tuple) or not (many or len(values) == len(forms)):
            raise _misfit(name)
        each = forms * len(values) if many else forms
        return tuple(form.read(value, name) for form, value in zip(each, values, strict=True))

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
        found = {own: form.read(facts[own], dot + own) for own, form in self.forms.items()}
        made = getattr(self.kind, "_made", self.kind)(**{own: found[own] for own in self.given})
        if any(getattr(made, own) != found[own] for own in self.forms.keys() - self.given):
            raise UnreadableError(f"{dot}fields that do not fit together")
        check = _CHECKS.get(self.kind) or getattr(self.kind, "_check", None)
        if check is not None:
            check(made)
        return made


@lru_cache(maxsize=128)
def _table(kind: Any) -> _Record:
    if not is_dataclass(kind):
        raise TypeError(f"{kind} is not stored")
    hints, derived = get_type_hints(kind), getattr(kind, "_DERIVED", ())
    stored = [one for one in fields(kind) if one.compare and one.name not in derived]
    forms = {one.name: _form(hints[one.name], one.name) for one in stored}
    return _Record(kind, forms, frozenset(one.name for one in stored if one.init))


# Exact values, and arrays.


def unsure_noise(noise: Lomax, scale: float, log_scale: float) -> UnsureScale:
    """Return the mechanism of smooth noise at a released scale; `log_scale` is that of the scale's logarithm."""
    return UnsureScale(noise.distribution(Fraction(1)), scale, log_scale, json.dumps(noise.to_dict()))


def noise_to_dict(mechanism: Any) -> dict[str, str]:
    """Return a mechanism as JSON-ready facts, none for no noise."""
    if mechanism is None:
        return {}
    if isinstance(mechanism, UnsureScale):
        scales = {"scale": repr(mechanism.scale), "log_scale": repr(mechanism.log_scale)}
        return {"mechanism": _UNSURE, "of": mechanism.origin} | scales
    if isinstance(mechanism, WeightedSum):
        terms = [[repr(weight), noise_to_dict(one)] for weight, one in mechanism.terms]
        return {"mechanism": _SUM, "of": json.dumps(terms)}
    facts: dict[str, str] = mechanism.to_dict()
    return facts


def noise_from_dict(facts: dict[str, str]) -> Any:
    """Return the mechanism written by `noise_to_dict`."""
    if facts.get("mechanism") == _UNSURE:
        noise: Any = mechanism_from_dict(json.loads(facts["of"]))
        return unsure_noise(noise, float(facts["scale"]), float(facts["log_scale"]))
    if facts.get("mechanism") == _SUM:
        terms: Any = tuple(
            (float(weight), mechanism_from_dict(one)) for weight, one in json.loads(facts["of"])
        )
        _hold(0 < len(terms) <= _MOST_TERMS and all(0 < weight < inf for weight, _ in terms))
        return WeightedSum(terms)
    return mechanism_from_dict(facts)


def _guarantee(facts: dict[str, Any]) -> Guarantee:
    # Read as a budget first, which bounds the digits.
    Budget(facts["epsilon"], facts["delta"])
    found = Guarantee.from_dict(facts)
    if not all(isinstance(text, str) for text in (*found.public, *found.pages, *found.remarks)):
        raise _misfit("guarantee")
    return found


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
    if isinstance(value, list) and all(_whole(one) or isinstance(one, float) for one in value):
        return np.array(value, dtype=np.float64)
    if not isinstance(value, str):
        raise _misfit(name)
    power, _, body = value.rpartition(":")
    upper = np.frombuffer(b64decode(body), dtype="<f4").astype(np.float64)
    size = (isqrt(8 * len(upper) + 1) - 1) // 2
    found = np.zeros((size, size))
    found[np.triu_indices(size)] = np.ldexp(upper, int(power or 0))
    return np.asarray(found + np.triu(found, 1).T)


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


# Numbers that fit together.


def _hold(*conditions: bool) -> None:
    if not all(conditions):
        raise UnreadableError("numbers that do not fit together")


def _check_error(known: Uncertainty) -> None:
    """Raise ValueError for an error that no release has; a noisy variance needs a cap."""
    _hold(isfinite(known.variance), 0 <= known.variance_cap < inf)
    _hold(known.variance_noise is None or known.variance_cap > 0)
    ball = known.ball_variance, known.ball_dimensions
    _hold(ball == (0, 0) or (0 < ball[0] < inf and ball[1] in (2, 3)))
    if isinstance(known, ClusterUncertainty):
        _hold(isfinite(known.freedom), known.freedom >= 1)
        capped = known.noise is not None and known.variance_cap > 0 and known.variance >= 0
        _hold(known.sd_noise is None or capped)


def _check_weights(known: PooledUncertainty | PooledMeans) -> None:
    _hold(len(known.sites) == len(known.weights) > 0)
    _hold(min(known.weights) >= 0, abs(sum(known.weights) - 1) <= _WEIGHTS_ADD_UP)


def _check_pooled(known: PooledUncertainty) -> None:
    _check_weights(known)
    _hold(known.steadied is None or len(known.steadied) == len(known.sites))


def _check_means(means: PooledMeans) -> None:
    _check_weights(means)
    _hold(len(means.names) == len(means.sites))


_CHECKS: dict[Any, Callable[[Any], None]] = {
    Uncertainty: _check_error,
    ClusterUncertainty: _check_error,
    PooledUncertainty: _check_pooled,
    PooledMeans: _check_means,
    ApartMeans: lambda means: _hold(min(means.sizes) > 0, means.range[0] < means.range[1]),
    JointMeans: lambda means: _hold(0 < means.share < 1, means.rows >= 1, means.range[0] < means.range[1]),
    NoisyTables: NoisyTables.check,
    NoisyHistograms: NoisyHistograms.check,
}

"""What a setting may be: its range in words and as a test, kept with the field and checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from math import inf
from typing import Any, ClassVar, Self

from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Number, exact

# Beyond it a setting means nothing, and what is computed from it is not finite.
LARGEST = 1e300
_ALLOWED = "allowed"


def is_whole(value: Any, least: int, most: float = inf) -> bool:
    """Return whether a value is a whole number from `least` to `most`; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: Any, least: float = -inf, most: float = inf) -> bool:
    """Return whether a value is a finite number from `least` to `most`; True and False are none."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared rather than converted: a whole number beyond the largest double has no float.
    return real and -LARGEST <= value <= LARGEST and least <= value <= most


def is_one_of(value: Any, *known: object) -> bool:
    """Return whether a value is one of those known, and of its type: an array is equal to nothing as a whole."""
    return any(type(value) is type(each) and value == each for each in known)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a setting may take, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(f"{self.words}, or {other.words}", lambda value: self.fits(value) or other.fits(value))


NONE = Allowed("None", lambda value: value is None)
FLAG = Allowed("True or False", lambda value: isinstance(value, bool))
POSITIVE = Allowed("a number above 0", lambda value: is_number(value) and value > 0)


def one_of(*known: object) -> Allowed:
    """Return the range of a few values."""
    words = [repr(each) for each in known]
    return Allowed(" or ".join([", ".join(words[:-1]), words[-1]]), lambda value: is_one_of(value, *known))


def whole(least: int, most: int | None = None) -> Allowed:
    """Return the range of whole numbers from `least` to `most`."""
    words = f"of at least {least}" if most is None else f"from {least} to {most}"
    return Allowed(
        f"a whole number {words}", lambda value: is_whole(value, least, inf if most is None else most)
    )


def within(low: float, high: float) -> Allowed:
    """Return the range of numbers from `low` to `high`."""
    return Allowed(f"a number from {low:g} to {high:g}", lambda value: is_number(value, low, high))


def between(low: float, high: float) -> Allowed:
    """Return the range of numbers above `low` and below `high`."""
    words = f"a number above {low:g} and below {high:g}"
    return Allowed(words, lambda value: is_number(value) and low < value < high)


def exactly(words: str, fits: Callable[[Any], bool]) -> Allowed:
    """Return the range of numbers that are read exactly, of which `fits` tells whether they are inside."""

    def inside(value: Number | None) -> bool:
        try:
            return value is not None and fits(exact(value, "the setting"))
        except CounterveilError:
            return False

    return Allowed(words, inside)


def setting(default: Any, allowed: Allowed) -> Any:
    """Return the field of a settings class, with its default and its range."""
    return field(default=default, metadata={_ALLOWED: allowed})


def range_of(each: Field[Any]) -> str:
    """Return the range of a setting in words; empty where everything of its type is allowed."""
    allowed = each.metadata.get(_ALLOWED)
    return "" if allowed is None else allowed.words


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a method: every field is compared with its range when an object is made.

    `_published` are names that ask for a paper's method, with what it is called in `cv.published`.
    """

    _published: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *_: object, **named: object) -> Self:
        """Refuse names that are no settings of the method, as CV-P020, or CV-P027 where a paper's method has them."""
        known = [each.name for each in fields(cls)]
        for name in named.keys() - known:
            got, expected = f"{name}={shown(named[name])}", f"settings of {cls.__name__}: {', '.join(known)}"
            if name in cls._published:
                raise refusal("CV-P027", expected=expected, got=got, form=cls._published[name])
            raise refusal("CV-P020", expected=expected, got=got)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for each in fields(self):
            allowed = each.metadata.get(_ALLOWED)
            if allowed is not None and not allowed.fits(getattr(self, each.name)):
                raise self._refusal(each.name, allowed.words)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse values that do not go together; None is returned."""

    def _refusal(self, name: str, expected: str) -> CounterveilError:
        """Return the refusal of one setting."""
        return out_of_range(type(self).__name__, name, expected, getattr(self, name))

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def out_of_range(of: str, name: str, expected: str, value: object) -> CounterveilError:
    """Return the refusal of one setting of `of`."""
    return refusal("CV-P025", name=name, of=of, expected=expected, value=value)

"""Settings in TOML: every key is known, every value has its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.errors import ParameterError


def read_settings(path: Path, what: str) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise CV-P600."""
    try:
        return read_tables(path)
    except UnreadableError as error:
        raise wrong_setting(what, "a TOML file in UTF-8", f"{path.name!r}: {error}") from None


def wrong_setting(what: str, expected: str, got: str) -> ParameterError:
    """Return CV-P600."""
    return ParameterError(
        "CV-P600",
        f"{what} is not understood",
        expected=expected,
        got=got,
        fix="correct the file; the guide docs/how-to/federation.md shows the form",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """One table of a TOML file, read key by key; `what` names it in messages."""

    what: str
    values: Mapping[str, Any]

    def known(self, *names: str) -> None:
        """Raise CV-P600 for a key that nobody reads."""
        for name in self.values:
            if name not in names:
                raise wrong_setting(self.what, f"one of {', '.join(names)}", f"the key {name!r}")

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a value of the kind wanted; without a default the key is required."""
        value = self.values.get(name, default)
        wrong = isinstance(value, bool) and kind is not bool
        if value is None or wrong or not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            names = " or ".join(each.__name__ for each in kinds)
            got = "no such key" if value is None else f"{name} = {value!r}"
            raise wrong_setting(self.what, f"{name}: a {names}", got)
        return value

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.get(name, (list, tuple), default)
        if not all(isinstance(value, str) for value in values):
            raise wrong_setting(self.what, f"{name}: a list of texts", f"{name} = {values!r}")
        return tuple(values)

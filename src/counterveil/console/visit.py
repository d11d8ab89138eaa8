"""One request to the console and its answer, free of any web framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from counterveil.bounded_reading import written_float
from counterveil.errors import refusal

if TYPE_CHECKING:
    from counterveil.console.sessions import Sessions
    from counterveil.console.workspace import Workspace

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who visits: a name as the ledger records it, and whether it is the data steward."""

    name: str
    steward: bool

    @property
    def role(self) -> str:
        """The role in one word."""
        return "steward" if self.steward else "analyst"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that passed the guard."""

    workspace: Workspace
    person: SignedIn
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    # None in another process, which has none.
    people: Sessions | None = None

    def word(self, name: str, default: str = "", longest: int = _LONGEST) -> str:
        """Return a short field of the form, or of the address where there is no form."""
        given = self.form if self.form else self.query
        text = given.get(name, default).strip()
        if len(text) > longest:
            raise refusal(
                "CV-W004", expected=f"{name}: at most {longest} characters", got=f"{len(text)} characters"
            )
        return text

    def number(self, name: str, default: float) -> float:
        """Return a field as a number."""
        text = self.word(name) or str(default)
        try:
            return written_float(text)
        except ValueError:
            raise refusal("CV-W004", expected=f"{name}: a number", got=repr(text)) from None

    def whole(self, name: str, default: int, most: int) -> int:
        """Return a field as a whole number from 0 to `most`."""
        text = self.word(name) or str(default)
        if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > most:
            raise refusal("CV-W004", expected=f"{name}: a whole number up to {most:,}", got=repr(text))
        return int(text)

    def require_steward(self, what: str) -> None:
        """Raise CV-W005 for an analyst; `what` says what to ask the steward for."""
        if not self.person.steward:
            raise refusal("CV-W005", what=what)


@dataclass(frozen=True, slots=True)
class Page:
    """A page to render: its template and what it shows."""

    template: str
    facts: dict[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where to go after a form was accepted; a path below the console's own."""

    to: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the visitor."""

    name: str
    kind: str
    content: str


Reply = Page | Redirect | Download

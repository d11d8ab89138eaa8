"""What a coordinator and a site say to each other: versioned JSON, and nothing that is not listed here."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from counterveil.errors import FederationError
from counterveil.federation.refusals import MEANINGS

VERSION = 1
# A request has a few kilobytes, a reply some hundred with balance tables.
_LONGEST = 10_000_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Ask:
    """The question put to every site: the public arguments of `ate`, as plain values.

    Published forms without a proof cannot be asked for: `variant` and `accept` do not travel.
    """

    method: str
    protects: str
    epsilon: str
    delta: str = "0"
    estimand: str = "ATE"
    level: float = 0.95
    law: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Ask:
        """Return the question in a table of a study file or a message; budgets may be written as numbers."""
        exact = {
            name: repr(value)
            for name, value in document.items()
            if name in ("epsilon", "delta") and isinstance(value, int | float) and not isinstance(value, bool)
        }
        return _made(cls, dict(document) | exact, "a question")

    def to_document(self) -> dict[str, Any]:
        """Return the question as JSON-ready facts, leaving out what was not said."""
        facts = asdict(self)
        return {name: value for name, value in facts.items() if value is not None and value != {}}


@dataclass(frozen=True, slots=True)
class Request:
    """One question to one site; `deadline` is in seconds since 1970 and is no part of the question."""

    study_id: str
    request_id: str
    declaration: dict[str, Any]
    ask: Ask
    deadline: float = 0.0

    def __post_init__(self) -> None:
        check_id("study id", self.study_id)
        check_id("request id", self.request_id)

    def fingerprint(self) -> str:
        """Return a hash of everything but the deadline; the same request always has the same one."""
        facts = asdict(replace(self, deadline=0.0))
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def to_text(self) -> str:
        """Return the request as it travels."""
        return json.dumps({"version": VERSION} | asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Request:
        """Return the request in a text, or raise CV-F001."""
        facts = _read(text)
        ask = facts.get("ask")
        if not isinstance(ask, Mapping) or not isinstance(facts.get("declaration"), Mapping):
            raise not_understood("a request with a question and a declaration", "one without them")
        return _made(cls, facts | {"ask": Ask.from_document(ask)}, "a request")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a site answers: the document of a released result, or the code of a refusal."""

    study_id: str
    request_id: str
    result: dict[str, Any] | None = None
    refusal: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    def to_text(self) -> str:
        """Return the reply as it travels."""
        return json.dumps({"version": VERSION} | asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Reply:
        """Return the reply in a text, or raise CV-F001; refusals that are not in the list are not passed on."""
        reply = _made(cls, _read(text), "a reply")
        if (reply.result is None) == (reply.refusal is None):
            raise not_understood("a result or a refusal", "both or neither")
        if reply.refusal is not None and reply.refusal not in MEANINGS:
            raise not_understood("one of the listed codes", "another refusal")
        return reply


def check_id(name: str, value: object) -> str:
    """Return an id that can be part of a file name, or raise CV-F001."""
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise not_understood(f"{name}: 1 to 64 letters, digits, dots, dashes or underscores", f"{value!r:.80}")


def not_understood(expected: str, got: str) -> FederationError:
    """Return CV-F001."""
    return FederationError(
        "CV-F001",
        "a message is not understood",
        expected=expected,
        got=got,
        fix="use the same version of counterveil at the coordinator and at the sites",
    )


def _read(text: str) -> dict[str, Any]:
    try:
        if len(text) > _LONGEST:
            raise ValueError
        facts = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise not_understood("JSON", "a text that is not JSON, or far too long") from None
    if not isinstance(facts, dict) or facts.pop("version", None) != VERSION:
        raise not_understood(f"a message of version {VERSION}", "something else")
    return facts


# The types that JSON and TOML give for each annotation that is used above.
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "float": (int, float),
    "str | None": (str, type(None)),
    "dict[str, Any]": (dict,),
    "dict[str, Any] | None": (dict, type(None)),
    "Ask": (Ask,),
}


Kind = TypeVar("Kind", Ask, Request, Reply)


def _made(kind: type[Kind], facts: Mapping[str, Any], what: str) -> Kind:
    """Return the dataclass with these facts; unknown names and values of other types are refused."""
    known = {each.name: each for each in fields(kind)}
    for name, value in facts.items():
        if name not in known:
            raise not_understood(f"{what} with {', '.join(known)}", f"{name!r:.80}")
        kinds = _KINDS[str(known[name].type)]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise not_understood(f"{what} whose {name} is a {known[name].type}", type(value).__name__)
    try:
        return kind(**facts)
    except TypeError:
        raise not_understood(f"{what} with all of {', '.join(known)}", "one that lacks some") from None

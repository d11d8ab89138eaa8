"""Who may enter (one-time tokens, sessions, tokens of forms), and what every request must pass: host, origin and size.

Sessions are kept in memory and gone with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from counterveil.console.refusals import bad_form, foreign, no_session, wrong_form
from counterveil.console.visit import Person

# Seconds: a link that nobody opened, and a session that nobody used, end after these.
LINK_LIFE, IDLE_LIFE = 15 * 60, 8 * 3600
_BYTES, _PLACE_BYTES = 32, 12


def random_place() -> str:
    """Return a path that nobody guesses, for all pages of one console."""
    return "/" + secrets.token_urlsafe(_PLACE_BYTES)


@dataclass(slots=True)
class Session:
    """An open session; its secret makes the tokens of its forms."""

    person: Person
    seen: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_BYTES))

    def form_token(self, action: str) -> str:
        """Return the token of the form that is sent to `action`; no other form and no other session has it."""
        return hmac.new(self.secret, action.encode(), hashlib.sha256).hexdigest()

    def check_form(self, action: str, token: str) -> None:
        """Raise CV-W003 unless the token is that of this form in this session."""
        if not hmac.compare_digest(self.form_token(action).encode(), token.encode("utf-8", "replace")):
            raise wrong_form("no token of this form" if not token else "the token of another form or session")


class Sessions:
    """One-time tokens and the sessions they were exchanged for; only hashes of either are kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._links: dict[str, tuple[Person, float]] = {}
        self._open: dict[str, Session] = {}

    def invite(self, person: Person) -> str:
        """Return a token that opens one session for a person."""
        token = secrets.token_urlsafe(_BYTES)
        with self._turn:
            self._links[_hash(token)] = (person, self._clock() + LINK_LIFE)
        return token

    def enter(self, token: str) -> str:
        """Return the cookie of a new session in exchange for a token, which is then used up, or raise CV-W001."""
        with self._turn:
            person, until = self._links.pop(_hash(token), (None, 0.0))
            if person is None or self._clock() > until:
                raise no_session("a link that was used before or is too old")
            cookie = secrets.token_urlsafe(_BYTES)
            self._open[_hash(cookie)] = Session(person, self._clock())
        return cookie

    def find(self, cookie: str | None) -> Session:
        """Return the session of a cookie, or raise CV-W001."""
        if not cookie:
            raise no_session("no cookie")
        with self._turn:
            found = self._open.get(_hash(cookie))
            if found is None or self._clock() > found.seen + IDLE_LIFE:
                self._open.pop(_hash(cookie), None)
                raise no_session("the cookie of a session that is not open")
            found.seen = self._clock()
        return found

    def leave(self, cookie: str | None) -> None:
        """End the session of a cookie."""
        with self._turn:
            self._open.pop(_hash(cookie or ""), None)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


COOKIE = "counterveil"
# A study may have a megabyte of TOML; its form is a little longer, and three times as long where all is escaped.
LONGEST_FORM = 4_000_000
_MOST_FIELDS = 200
_LONGEST_QUERY = 8_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FORM = "application/x-www-form-urlencoded"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers would send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}


def check_origin(method: str, headers: Mapping[str, str]) -> None:
    """Raise CV-W002 for another host's name, a page of another origin, or a form without an origin."""
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    # Another name that leads to this machine is how a page elsewhere would reach it (DNS rebinding).
    if name not in _LOOPBACK:
        raise foreign("a request to another host name")
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise foreign("a request from a page of another origin")
    if method != "GET":
        origin = headers.get("origin")
        if origin != f"http://{host}":
            raise foreign("a form without an origin" if origin is None else "a form of another origin")


async def read_form(request: Any) -> dict[str, str]:
    """Return the fields of a form, or raise CV-W004; one that is too large is not read to its end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise bad_form(f"a form of type {_FORM}", "another type")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise bad_form(f"a form of at most {LONGEST_FORM:,} bytes", "a larger one")
    return fields(body)


def fields(body: bytes | str) -> dict[str, str]:
    """Return the fields of an encoded form or address, each once, or raise CV-W004."""
    try:
        text = body.decode("ascii") if isinstance(body, bytes) else body
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise bad_form(f"at most {_MOST_FIELDS} fields in UTF-8", "something else") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise bad_form("every field once", "a field twice")
    if any("\0" in value for value in found.values()):
        raise bad_form("texts without NUL characters", "one with them")
    # Browsers send line ends of their own.
    return {name: value.replace("\r\n", "\n") for name, value in found.items()}


def read_query(text: str) -> dict[str, str]:
    """Return the fields of an address, or raise CV-W004."""
    if len(text) > _LONGEST_QUERY:
        raise bad_form(f"an address of at most {_LONGEST_QUERY:,} characters", "a longer one")
    return fields(text)

"""Who may enter: one-time tokens, sessions, and the tokens of their forms. Kept in memory, gone with the process."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from counterveil.console.refusals import no_session, wrong_form
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

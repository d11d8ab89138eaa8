"""Visits to the console: refusals, people and their links, sessions."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from anyio import fail_after
from starlette.requests import ClientDisconnect

from counterveil.accounting.accounts import check_name
from counterveil.bounded_reading import written_float
from counterveil.errors import (
    BudgetError,
    ClaimError,
    CounterveilError,
    DataError,
    LedgerError,
    MissingExtraError,
    ParameterError,
    StudyError,
    refusal,
    unforeseen,
)

if TYPE_CHECKING:
    from counterveil.console.workspace import Workspace

# One text for all of them: whoever wrote the study could learn about cells from the differences.
_STATUS = {"CV-W001": 401, "CV-W004": 400, "CV-W007": 404, "CV-W002": 403, "CV-W003": 403, "CV-W005": 403}
_KINDS: tuple[tuple[type[CounterveilError], int], ...] = (
    (ParameterError, 400),
    (StudyError, 400),
    (ClaimError, 400),
    (BudgetError, 409),
    (LedgerError, 409),
    (DataError, 409),
    (MissingExtraError, 501),
)
# What refusals of these kinds depend on: parameters, access policies and budgets, never rows.
_PUBLIC = (ParameterError, ClaimError, BudgetError, LedgerError, MissingExtraError)


def status_of(error: CounterveilError) -> int:
    """Return the HTTP status of a refusal."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    if error.code.startswith("CV-W"):
        return 409
    return next((status for kind, status in _KINDS if isinstance(error, kind)), 500)


def coded(fault: Exception) -> CounterveilError:
    """Return a refusal, or what is said of a fault that nobody foresaw: one bad file is not one of a whole list."""
    return fault if isinstance(fault, CounterveilError) else unforeseen(fault)


def for_analysts(error: CounterveilError) -> CounterveilError:
    """Return what an analyst may see of a refusal that was raised while rows were at hand."""
    return error if isinstance(error, _PUBLIC) else refusal("CV-W006")


# What a visitor corrects in the form; other refusals have a page of their own.
_CORRECTED = (ParameterError, StudyError, BudgetError, LedgerError)
_CORRECTED_CODES = ("CV-W004", "CV-W010", "CV-W013")


@dataclass(frozen=True, slots=True)
class FormFault:
    """A refusal of what was typed, and the field that it is about; no name where it is about several."""

    error: CounterveilError
    field: str = ""


def fault_of_form(error: CounterveilError, checks: Mapping[str, Callable[[], object]]) -> FormFault:
    """Return the refusal with the field that it is about, or raise what no field of the form mends.

    `checks` reads single fields; the first that is refused is the one.
    """
    if not isinstance(error, _CORRECTED) and error.code not in _CORRECTED_CODES:
        raise error
    for name, check in checks.items():
        try:
            check()
        except CounterveilError as found:
            return FormFault(found, name)
    return FormFault(error)


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
            raise wrong(f"{name}: at most {longest} characters", f"{len(text)} characters")
        return text

    def number(self, name: str, default: float) -> float:
        """Return a field as a number."""
        text = self.word(name) or str(default)
        try:
            return written_float(text)
        except ValueError:
            raise wrong(f"{name}: a number", repr(text)) from None

    def whole(self, name: str, default: int, most: int) -> int:
        """Return a field as a whole number from 0 to `most`."""
        text = self.word(name) or str(default)
        if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > most:
            raise wrong(f"{name}: a whole number up to {most:,}", repr(text))
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


# Who may enter (one-time tokens, sessions, tokens of forms), and what every request must pass: host, origin and size.
#
# Sessions are kept in memory and gone with the process.


# Seconds: a link that nobody opened, and a session that nobody used, end after these.
LINK_LIFE, IDLE_LIFE = 15 * 60, 8 * 3600
_BYTES, _PLACE_BYTES = 32, 12
# A form must have arrived whole after so many seconds.
FORM_LIFE = 60.0
# Pages on other ports of this machine can set cookies here: each session has a name that they cannot guess.
_COOKIE = "counterveil-"


def random_place() -> str:
    """Return a path that nobody guesses, for all pages of one console."""
    return "/" + secrets.token_urlsafe(_PLACE_BYTES)


@dataclass(frozen=True, slots=True)
class Link:
    """What a one-time token opens: whose session, until when, and what is done once it was used.

    A link `from_file` is followed from a file that the console wrote, which to a browser is another origin.
    """

    person: SignedIn
    until: float
    from_file: bool = False
    used: Callable[[], None] = lambda: None


@dataclass(slots=True)
class BrowserSession:
    """An open session; its secret makes the tokens of its forms."""

    person: SignedIn
    cookie: str
    seen: float
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_BYTES))

    def form_token(self, action: str) -> str:
        """Return the token of the form that is sent to `action`; no other form and no other session has it."""
        return hmac.new(self.secret, action.encode(), hashlib.sha256).hexdigest()

    def check_form(self, action: str, token: str) -> None:
        """Raise CV-W003 unless the token is that of this form in this session."""
        if not hmac.compare_digest(self.form_token(action).encode(), token.encode("utf-8", "replace")):
            raise refusal(
                "CV-W003",
                got="no token of this form" if not token else "the token of another form or session",
            )


@dataclass(frozen=True, slots=True)
class Opened:
    """How many links wait to be used by a person, and how many sessions are open."""

    links: int
    sessions: int


class Sessions:
    """One-time tokens and the sessions they were exchanged for; only hashes of either are kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._links: dict[str, Link] = {}
        self._open: dict[str, BrowserSession] = {}
        self._invited: dict[SignedIn, None] = {}

    def invite(self, person: SignedIn, used: Callable[[], None] | None = None) -> str:
        """Return a token that opens one session for a person; `used` removes the file that it was written to."""
        token = secrets.token_urlsafe(_BYTES)
        link = Link(person, self._clock() + LINK_LIFE)
        with self._turn:
            older = self._drop_links(person)
            self._invited[person] = None
            self._links[_hash(token)] = link if used is None else replace(link, from_file=True, used=used)
        for each in older:
            each.used()
        return token

    def _drop_links(self, person: SignedIn) -> list[Link]:
        """Forget the links of a person and return them."""
        found = {key: link for key, link in self._links.items() if link.person == person}
        return [self._links.pop(key) for key in found]

    def people(self) -> dict[SignedIn, Opened]:
        """Return everybody who was invited, with what they have open."""
        with self._turn:
            now = self._clock()
            links = [link.person for link in self._links.values() if now <= link.until]
            seen = [each.person for each in self._open.values() if now <= each.seen + IDLE_LIFE]
            return {person: Opened(links.count(person), seen.count(person)) for person in self._invited}

    def revoke(self, person: SignedIn) -> None:
        """End the sessions of a person and forget their links."""
        with self._turn:
            self._drop_links(person)
            self._open = {key: each for key, each in self._open.items() if each.person != person}

    def from_file(self, token: str) -> bool:
        """Return whether a token was written to a file, from which a browser follows it as from another origin."""
        with self._turn:
            link = self._links.get(_hash(token))
        return link is not None and link.from_file

    def enter(self, token: str) -> tuple[str, str]:
        """Return name and value of the cookie of a new session for a token, which is then used up, or raise CV-W001."""
        name, value = _COOKIE + secrets.token_urlsafe(_PLACE_BYTES), secrets.token_urlsafe(_BYTES)
        with self._turn:
            link = self._links.pop(_hash(token), None)
            if link is None or self._clock() > link.until:
                raise refusal("CV-W001", got="a link that was used before or is too old")
            self._open[_hash(f"{name}={value}")] = BrowserSession(link.person, name, self._clock())
        link.used()
        return name, value

    def find(self, cookies: Mapping[str, str]) -> BrowserSession:
        """Return the session of one of the cookies, or raise CV-W001.

        A page on another port can add cookies, also those of a session of its own: what it added is passed over, and
        the steward's session goes before an analyst's.
        """
        ours = [_hash(f"{name}={value}") for name, value in cookies.items() if name.startswith(_COOKIE)]
        if not ours:
            raise refusal("CV-W001", got="no cookie")
        with self._turn:
            now = self._clock()
            found = [self._open[key] for key in ours if key in self._open]
            fresh = sorted(
                (each for each in found if now <= each.seen + IDLE_LIFE), key=lambda each: each.person.steward
            )
            if not fresh:
                for key in ours:
                    self._open.pop(key, None)
                raise refusal("CV-W001", got="the cookie of a session that is not open")
            fresh[-1].seen = now
        return fresh[-1]

    def leave(self, session: BrowserSession) -> None:
        """End a session."""
        with self._turn:
            self._open = {key: each for key, each in self._open.items() if each is not session}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


# A study may have a megabyte of TOML; its form is a little longer, and three times as long where all is escaped.
LONGEST_FORM = 4_000_000
# A table of a thousand columns has eight fields for each.
_MOST_FIELDS = 8_100
_LONGEST_QUERY = 8_000
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
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


def check_origin(method: str, headers: Mapping[str, str], *, from_file: bool = False) -> None:
    """Raise CV-W002 for another host's name, a page of another origin, or a form without an origin.

    With `from_file` a page of the console is opened from a file, which has no origin.
    """
    host = headers.get("host", "")
    # Another name that leads to this machine is how a page elsewhere would reach it (DNS rebinding).
    if _LOOPBACK.fullmatch(host) is None:
        raise refusal("CV-W002", got="a request to another host name")
    if not from_file and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise refusal("CV-W002", got="a request from a page of another origin")
    if method != "GET":
        origin = headers.get("origin")
        if origin != f"http://{host}":
            raise refusal(
                "CV-W002", got="a form without an origin" if origin is None else "a form of another origin"
            )


async def read_form(request: Any) -> dict[str, str]:
    """Return the fields of a form, or raise CV-W004; one that is too large or too slow is not read to its end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise wrong(f"a form of type {_FORM}", "another type")
    body = bytearray()
    try:
        with fail_after(FORM_LIFE):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LONGEST_FORM:
                    raise wrong(f"a form of at most {LONGEST_FORM:,} bytes", "a larger one")
    except TimeoutError:
        raise wrong(f"a form that arrives within {FORM_LIFE:g} seconds", "a slower one") from None
    except ClientDisconnect:
        raise wrong("a form that arrives whole", "a visitor who left") from None
    return fields(bytes(body))


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
        raise wrong(f"at most {_MOST_FIELDS} fields in UTF-8", "something else") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise wrong("every field once", "a field twice")
    if any("\0" in value for value in found.values()):
        raise wrong("texts without NUL characters", "one with them")
    # Browsers send line ends of their own.
    return {name: value.replace("\r\n", "\n") for name, value in found.items()}


def read_query(text: str) -> dict[str, str]:
    """Return the fields of an address, or raise CV-W004."""
    if len(text) > _LONGEST_QUERY:
        raise wrong(f"an address of at most {_LONGEST_QUERY:,} characters", "a longer one")
    return fields(text)


def everybody(visit: Visit, person: SignedIn | None = None, link: str = "", revoked: str = "") -> Page:
    """Return who was invited, with what they have open, and a new link of a person."""
    visit.require_steward("for a new link")
    assert visit.people is not None
    facts = {"people": visit.people.people().items(), "invited": person, "link": link, "revoked": revoked}
    return Page("people.html", facts | {"minutes": LINK_LIFE // 60})


def change(visit: Visit) -> Page:
    """Make a new link for a person, which this page shows once, or end all that an analyst has open."""
    visit.require_steward("for a new link")
    assert visit.people is not None
    name, role = visit.word("name"), visit.word("role")
    # The role is that of the form: a name that is typed never makes a steward.
    if role == "steward" and name == visit.person.name and visit.word("do") == "renew":
        person = visit.person
    elif role == "analyst":
        person = new_analyst(name, visit.person)
    else:
        raise wrong("role: analyst, or a new link of your own", repr(role))
    if visit.word("do") != "revoke":
        return everybody(visit, person, f"{visit.address}/enter?token={visit.people.invite(person)}")
    if person not in visit.people.people():
        raise wrong("name: an analyst of this console", repr(name))
    visit.people.revoke(person)
    return everybody(visit, revoked=name)


def new_analyst(name: str, steward: SignedIn) -> SignedIn:
    """Return an analyst of this name, or raise CV-W013 for the steward's: a name is one person in the ledger."""
    check_name("analyst", name)
    if _alike(name) == _alike(steward.name):
        raise refusal("CV-W013", got=repr(name))
    return SignedIn(name, steward=False)


def _alike(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def wrong(expected: str, got: str) -> CounterveilError:
    """Return CV-W004."""
    return refusal("CV-W004", expected=expected, got=got)

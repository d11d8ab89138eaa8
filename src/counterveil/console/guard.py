"""What every request must pass before a page is made: host, origin and size; and the headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from counterveil.console.refusals import bad_form, foreign

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

"""Forms and addresses of the console with fields changed, left out, doubled or made enormous, and odd headers."""

from __future__ import annotations

import random
import re
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

from tools.fuzzing import nasty
from tools.fuzzing.judging import SECRET, TEXT_CANARY, Answer, Attempt, BrokenRuleError

import counterveil as cv
from counterveil.accounting import open_ledger
from counterveil.errors import ConsoleError
from counterveil.privacy import Budget

_PLACE, _HOST = "/place", "http://127.0.0.1:8000"
_STUDY = """\
treatment = "t"
assignment = "trial"
[outcome]
column = "y"
range = [0, 1]
[covariates]
site = { categories = ["a", "b"] }
"""
_FIELDS = ("study", "question", "protects", "epsilon", "delta", "method", "estimand", "level", "mechanism", "by",
           "trim", "settings", "policy", "cost", "request", "before", "text", "name", "rows", "epsilons", "draws",
           "sd", "half_width", "effect", "data",
           "access_policy", "record_epsilon", "note", "head", "full", "decision", "proposed", "token")  # fmt: skip
_USUAL = {"study": "primary", "question": "ate", "protects": "outcome", "epsilon": "1/100", "method": "auto",
          "draws": "1", "rows": "20", "epsilons": "1", "name": "new", "request": "r"}  # fmt: skip
_REFUSED = re.compile(r"CV-[A-Z]\d{3}")
# The application and what lets visitors in, made once.
_WORLD: dict[str, Any] = {}


def prepare(folder: Path) -> None:
    """Make a folder with rows, a study and an account, and a console over it."""
    from counterveil.console.application import PAGES, Console
    from counterveil.console.visit import Sessions
    from counterveil.console.workspace import Workspace

    home = folder / "console"
    (home / "studies").mkdir(parents=True)
    (home / "studies" / "primary.toml").write_text(_STUDY)
    lines = [f"{number % 2},{number % 3 / 2},{'ab'[number % 2]},{TEXT_CANARY}" for number in range(24)]
    (home / "people.csv").write_text("\n".join(["t,y,site,secret", *lines]) + "\n")
    with open_ledger(home / "ledger.db", create=True) as book:
        book.register("people", Budget(10**6), access_policy=cv.drafting.AccessPolicy(public=["t", "site"]))
    sessions = Sessions()
    _WORLD.update(
        pages=PAGES,
        sessions=sessions,
        application=Console(Workspace(home), sessions, _PLACE).application(),
    )


def make(rng: random.Random, _folder: Path) -> Attempt:
    """Return one visit with something odd about it."""
    method, pattern, _ = rng.choice(_WORLD["pages"])
    steward = rng.random() < 0.6
    fields = _fields(rng)
    headers = {"origin": _HOST}
    if rng.random() < 0.1:
        headers[rng.choice(("origin", "host", "cookie", "content-type", "sec-fetch-site"))] = _header(rng)

    def attempt() -> Answer:
        found = _visit(method, pattern, steward, fields, headers, rng)
        # What the console cannot foresee is a page with CV-X060: no traceback, but a fault all the same.
        if found.status_code >= 500:
            raise BrokenRuleError(f"{method} {pattern}: {found.status_code}")
        if "Traceback" in found.text:
            raise BrokenRuleError(f"{method} {pattern}: a traceback")
        refusal = _REFUSED.search(found.text)
        if found.status_code >= 400 and refusal is not None:
            page = found.text.partition("<main")[2]
            raise ConsoleError(refusal.group(), "a page of a refusal", expected="", got=page, fix="")
        return Answer([found.text])

    return attempt


def _visit(
    method: str, pattern: str, steward: bool, fields: dict[str, str], headers: dict[str, str], rng: Any
) -> Any:
    from counterveil.console.visit import SignedIn

    sessions = _WORLD["sessions"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # starlette announces a successor of httpx
        from starlette.testclient import TestClient

        client = TestClient(_WORLD["application"], base_url=_HOST, follow_redirects=False)
    cookie = sessions.enter(sessions.invite(SignedIn("ada", steward)))
    key = _key(client, cookie)
    path = pattern
    for name, value in {"key": key, "seq": "2", "name": "primary", "code": "CV-B001"}.items():
        path = path.replace("{" + name + "}", value if rng.random() < 0.8 else _quoted(rng))
    path = path.replace("{site}", _quoted(rng)).replace("{file}", rng.choice(("report.html", _quoted(rng))))
    headers = {"cookie": "=".join(cookie)} | headers
    if method == "GET":
        return client.get(f"{_PLACE}{path}?{_encoded(fields, rng)}", headers=headers)
    if rng.random() < 0.9:
        fields = fields | {"token": sessions.find(dict([cookie])).form_token(path)}
    headers = {"content-type": "application/x-www-form-urlencoded"} | headers
    return client.post(f"{_PLACE}{path}", content=_encoded(fields, rng), headers=headers)


def _key(client: Any, cookie: tuple[str, str]) -> str:
    text = client.get(f"{_PLACE}/", headers={"cookie": "=".join(cookie)}).text
    return str(text.partition("/data/")[2][:12])


def _fields(rng: random.Random) -> dict[str, str]:
    """Return the fields of a form: usual ones, of which some are odd."""
    fields = dict(_USUAL)
    for name in rng.sample(_FIELDS, rng.randrange(1, 6)):
        # A form gives back what was typed into it, so no password is typed.
        fields[name] = nasty.text(rng).replace(SECRET, "x")
    if rng.random() < 0.3:
        fields.pop(rng.choice(list(fields)))
    return fields


def _encoded(fields: dict[str, str], rng: random.Random) -> str:
    text = urlencode({name: value.encode("utf-8", "replace") for name, value in fields.items()})
    return f"{_quoted(rng)}&&=" if rng.random() < 0.05 else text[:60_000]


def _quoted(rng: random.Random) -> str:
    return quote_plus(nasty.text(rng)[:300].encode("utf-8", "replace")) or "x"


def _header(rng: random.Random) -> str:
    found = "".join(sign for sign in nasty.text(rng)[:300] if sign.isascii() and sign.isprintable())
    return found.strip() or "x"

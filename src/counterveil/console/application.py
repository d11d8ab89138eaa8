"""The web application: which function makes which page, behind the guard, and how replies become HTML."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from counterveil.console import answers, asking, datasets, ledgers, planning, studies
from counterveil.console.refusals import not_answered, status_of, unknown
from counterveil.console.sessions import (
    COOKIE,
    HEADERS,
    Session,
    Sessions,
    check_origin,
    read_form,
    read_query,
)
from counterveil.console.visit import Download, Page, Redirect, Reply, Visit
from counterveil.console.workspace import Workspace
from counterveil.errors import CounterveilError, DataError, unforeseen
from counterveil.report.page import style

_CODE = re.compile(r"CV-[A-Z]\d{3}")
_BOLD, _WORD = re.compile(r"\*\*([^*]+)\*\*"), re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def environment() -> Any:
    """Return the templates; every value in them is escaped, and a name that is missing is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("counterveil.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Values and words of the options of a choice.
    found.filters["pair"] = lambda name: (name, name)
    found.filters["keyed"] = lambda data: (data.key, data.account.dataset)
    return found


def error_page(code: str) -> str | None:
    """Return the page of an error code as HTML, None where there is none."""
    place = files("counterveil") / "error_pages" / f"{code}.md"
    if not _CODE.fullmatch(code) or not place.is_file():
        return None
    return "".join(_blocks(place.read_text(encoding="utf-8")))


def _blocks(text: str) -> Iterator[str]:
    """Yield headings, lists, code and paragraphs: what our own pages are made of."""
    for number, part in enumerate(re.split(r"^```.*$", text, flags=re.M)):
        if number % 2:
            yield f"<pre><code>{escape(part.strip())}</code></pre>"
            continue
        for block in filter(None, map(str.strip, part.split("\n\n"))):
            marks = len(block) - len(block.lstrip("#"))
            if marks:
                yield f"<h{marks}>{_inline(block[marks:].strip())}</h{marks}>"
            elif block.startswith(("- ", "1. ")):
                items = re.split(r"^(?:-|\d+\.) ", block, flags=re.M)[1:]
                yield "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
            else:
                yield f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    plain = _LINK.sub(r"\1", escape(text))
    return _WORD.sub(r"<code>\1</code>", _BOLD.sub(r"<strong>\1</strong>", plain))


Handler = Callable[[Visit], Reply]
_LOG = logging.getLogger(__name__)
_STATIC = {
    "console.css": "text/css",
    "pictures.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
# The style of pictures is that of reports.
_PICTURES = "pictures.css"


def _explain(visit: Visit) -> Page:
    """Return the page of an error code."""
    code = visit.path["code"].upper()
    found = error_page(code)
    if found is None:
        raise unknown("the page of an error code", "another name")
    return Page("explain.html", {"code": code, "text": found})


PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", datasets.all_datasets),
    ("GET", "/register", datasets.new_dataset),
    ("POST", "/register", datasets.register),
    ("GET", "/data/{key}", datasets.one_dataset),
    ("GET", "/data/{key}/ask", asking.form),
    ("POST", "/data/{key}/confirm", asking.confirm),
    ("POST", "/data/{key}/spend", asking.spend),
    ("GET", "/data/{key}/requests/{seq}", answers.request),
    ("GET", "/data/{key}/requests/{seq}/{file}", answers.download),
    ("GET", "/studies", studies.all_studies),
    ("GET", "/studies/new", studies.new_study),
    ("POST", "/studies/new", studies.make_study),
    ("GET", "/studies/{name}", studies.edit),
    ("POST", "/studies/{name}", studies.save),
    ("POST", "/studies/{name}/accept", studies.accept),
    ("GET", "/studies/{name}/check", studies.check),
    ("GET", "/studies/{name}/plan", planning.plan_form),
    ("POST", "/studies/{name}/plan", planning.plan),
    ("GET", "/ledgers", ledgers.all_ledgers),
    ("GET", "/ledgers/{key}", ledgers.one_ledger),
    ("POST", "/ledgers/{key}/verify", ledgers.verify),
    ("GET", "/federation", ledgers.overview),
    ("POST", "/federation/{site}", ledgers.decide),
    ("GET", "/explain/{code}", _explain),
)


# What reads rows, simulates studies or reads a whole ledger.
_COMPUTING = (asking.spend, planning.plan, studies.check, ledgers.verify)
_AT_ONCE = 2


class Console:
    """The application over one folder; `place` is the path that all its pages lie under."""

    def __init__(self, workspace: Workspace, sessions: Sessions, place: str) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._place = place
        self._templates = environment()
        self._computing: CapacityLimiter | None = None

    def application(self) -> Any:
        """Return the ASGI application."""
        routes = [
            Route(self._place + pattern, self._endpoint(handler), methods=[method])
            for method, pattern, handler in PAGES
        ]
        routes += [
            Route(self._place + "/enter", self._guarded(self._enter), methods=["GET"]),
            Route(self._place + "/leave", self._guarded(self._leave), methods=["POST"]),
            Route(self._place + "/static/{name}", self._guarded(self._static), methods=["GET"]),
        ]
        return Starlette(
            routes=routes,
            exception_handlers={404: self._no_page, 405: self._no_page, Exception: self._fault},
        )

    def _guarded(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return an endpoint whose refusals become pages, with the same headers on every answer."""

        async def endpoint(request: Request) -> Response:
            try:
                # A HEAD request would use up a link or run a page that nobody sees.
                if request.method == "HEAD":
                    raise unknown("a page or a form", "a HEAD request")
                check_origin(request.method, request.headers)
                found: Response = await answer(request)
            except CounterveilError as error:
                found = self._refusal(error, self._session(request))
            except Exception as fault:
                found = self._broken(fault, self._session(request))
            return _sealed(found)

        return endpoint

    def _endpoint(self, handler: Handler) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            session = self._sessions.find(request.cookies.get(COOKIE))
            form: dict[str, str] = {}
            if request.method == "POST":
                form = await read_form(request)
                session.check_form(self._below(request), form.pop("token", ""))
            visit = Visit(
                self._workspace,
                session.person,
                dict(request.path_params),
                read_query(request.url.query),
                form,
            )
            try:
                reply = await to_thread.run_sync(handler, visit, limiter=self._limiter(handler))
            except DataError as error:
                # What is said about rows is for their steward, whichever page would say it.
                raise (error if session.person.steward else not_answered()) from None
            return await to_thread.run_sync(self._response, reply, session)

        return self._guarded(answer)

    def _limiter(self, handler: Handler) -> CapacityLimiter | None:
        """Return what lets few requests compute at a time, so that those that wait take no thread from other pages."""
        if handler not in _COMPUTING:
            return None
        if self._computing is None:
            self._computing = CapacityLimiter(_AT_ONCE)
        return self._computing

    def _below(self, request: Request) -> str:
        """Return the path of a request below the console's own: the action of its form."""
        return str(request.url.path).removeprefix(self._place)

    def _session(self, request: Request) -> Session | None:
        try:
            return self._sessions.find(request.cookies.get(COOKIE))
        except CounterveilError:
            return None

    # Replies as responses.

    def _response(self, reply: Reply, session: Session | None) -> Response:
        if isinstance(reply, Redirect):
            return RedirectResponse(self._place + quote(reply.to, safe="/?=&"), status_code=303)
        if isinstance(reply, Download):
            disposition = {"Content-Disposition": f'attachment; filename="{reply.name}"'}
            return Response(reply.content, media_type=reply.kind, headers=disposition)
        person = None if session is None else session.person
        text = self._templates.get_template(reply.template).render(
            reply.facts,
            base=self._place,
            person=person,
            token=(lambda _: "") if session is None else session.form_token,
        )
        return Response(text, status_code=reply.status, media_type="text/html")

    def _refusal(self, error: CounterveilError, session: Session | None) -> Response:
        page = Page("refusal.html", {"error": error}, status_of(error))
        return self._response(page, session)

    def _broken(self, fault: BaseException, session: Session | None) -> Response:
        """Return a page without a traceback; the place in our code goes to the log and to the steward."""
        error = unforeseen(fault)
        _LOG.error("%s: %s", error.code, error.got)
        if session is None or not session.person.steward:
            error = type(error)(
                error.code,
                error.problem,
                expected=error.expected,
                got="a fault of the console",
                fix=error.fix,
            )
        return self._refusal(error, session)

    async def _no_page(self, request: Request, _: Exception) -> Response:
        error = unknown("a page of the console", "another address or method")
        return _sealed(self._refusal(error, self._session(request)))

    async def _fault(self, request: Request, fault: Exception) -> Response:
        return _sealed(self._broken(fault, self._session(request)))

    # Entering and leaving.

    async def _enter(self, request: Request) -> Response:
        cookie = self._sessions.enter(read_query(request.url.query).get("token", ""))
        response = RedirectResponse(self._place + "/", status_code=303)
        # Cookies are shared by all ports of a host: the path keeps this one from other programs on this machine.
        response.set_cookie(COOKIE, cookie, path=self._place + "/", httponly=True, samesite="strict")
        return response

    async def _leave(self, request: Request) -> Response:
        session = self._sessions.find(request.cookies.get(COOKIE))
        session.check_form("/leave", (await read_form(request)).get("token", ""))
        self._sessions.leave(request.cookies.get(COOKIE))
        response = self._response(Page("left.html", {}), None)
        response.delete_cookie(COOKIE, path=self._place + "/")
        return response

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise unknown("a file of the console", "another name")
        own = files("counterveil.console") / "static"
        content = style(name).encode() if name == _PICTURES else (own / name).read_bytes()
        # The path is new with every start, so an old file is never shown.
        return Response(content, media_type=_STATIC[name], headers={"Cache-Control": "private, max-age=3600"})


def _sealed(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response

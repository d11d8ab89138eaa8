"""The web application: which function makes which page, behind the guard, and how replies become HTML."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from anyio import CancelScope, CapacityLimiter, create_task_group, fail_after, to_process, to_thread
from starlette.applications import Starlette
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from counterveil.console import answers, asking, datasets, ledgers, studies
from counterveil.console import asking as planning
from counterveil.console import visit as people
from counterveil.console.visit import (
    HEADERS,
    BrowserSession,
    Download,
    Page,
    Redirect,
    Reply,
    Sessions,
    SignedIn,
    Visit,
    check_origin,
    coded,
    read_form,
    read_query,
    status_of,
)
from counterveil.console.workspace import Workspace
from counterveil.errors import CounterveilError, DataError, explanation, refusal, unforeseen
from counterveil.privacy import show
from counterveil.report.page import style

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
    found.globals["show"] = show
    found.filters["keyed"] = lambda data: (data.key, data.account.dataset)
    return found


def error_page(code: str) -> str | None:
    """Return the page of an error code as HTML, None where there is none."""
    text = explanation(code)
    return None if text is None else "".join(_blocks(text))


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
        raise refusal("CV-W007", expected="the page of an error code", got="another name")
    return Page("explain.html", {"code": code, "text": found})


PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", datasets.all_datasets),
    ("GET", "/register", datasets.new_dataset),
    ("POST", "/register/confirm", datasets.confirm_register),
    ("POST", "/register/change", datasets.change_register),
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
    ("POST", "/federation/studies/{study}", ledgers.aggregate),
    ("GET", "/people", people.everybody),
    ("POST", "/people", people.change),
    ("GET", "/explain/{code}", _explain),
)


# What reads rows, simulates studies or reads a whole ledger.
_COMPUTING = (asking.spend, planning.plan, studies.check, ledgers.verify)
# What takes long and leaves nothing behind: it has a process of its own, which is killed when nobody waits for it.
_STOPPED = (planning.plan,)
# Seconds that such a computation may take.
LONGEST_COMPUTATION = 120.0
_PAGES_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class _Turns:
    """What one person may have done at a time: nobody waits for what others ask for."""

    pages: CapacityLimiter
    computing: CapacityLimiter


class Console:
    """The application over one folder; `place` is the path that all its pages lie under."""

    def __init__(self, workspace: Workspace, sessions: Sessions, place: str) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._place = place
        self._templates = environment()
        self._turns: dict[SignedIn, _Turns] = {}
        self._stoppable: set[CancelScope] = set()

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
        guarded = self._guarded(_no_page)

        async def missing(request: Request, _: Exception) -> Response:
            found: Response = await guarded(request)
            return found

        found = Starlette(
            routes=routes, exception_handlers={404: missing, 405: missing, Exception: self._fault}
        )
        # Redirections of its own would pass neither the guard nor get its headers.
        found.router.redirect_slashes = False
        return found

    def whose(self, headers: list[tuple[bytes, bytes]]) -> SignedIn | None:
        """Return whom the headers of a request belong to, None for a stranger."""
        texts = [value.decode("latin-1") for name, value in headers if name == b"cookie"]
        try:
            return self._sessions.find(cookie_parser("; ".join(texts))).person
        except CounterveilError:
            return None

    def stop(self) -> None:
        """Stop what leaves nothing behind, so that the console can end."""
        for scope in self._stoppable:
            scope.cancel()

    def _guarded(self, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return an endpoint whose refusals become pages, with the same headers on every answer."""

        async def endpoint(request: Request) -> Response:
            try:
                # A HEAD request would use up a link or run a page that nobody sees.
                if request.method == "HEAD":
                    raise refusal("CV-W007", expected="a page or a form", got="a HEAD request")
                check_origin(request.method, request.headers, from_file=self._from_file(request))
                found: Response = await answer(request)
            except CounterveilError as error:
                found = self._refusal(error, self._session(request))
            except Exception as fault:
                found = self._broken(fault, self._session(request))
            return _sealed(found)

        return endpoint

    def _endpoint(self, handler: Handler) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            session = self._sessions.find(request.cookies)
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
                f"{request.url.scheme}://{request.url.netloc}{self._place}",
                None if handler in _STOPPED else self._sessions,
            )
            turns = self._turns_of(session.person)
            try:
                if handler in _STOPPED:
                    reply = await self._stopped(handler, visit, request, turns.computing)
                else:
                    limiter = turns.computing if handler in _COMPUTING else turns.pages
                    reply = await to_thread.run_sync(handler, visit, limiter=limiter)
            except DataError as error:
                # What is said about rows is for their steward, whichever page would say it.
                raise (error if session.person.steward else refusal("CV-W006")) from None
            return await to_thread.run_sync(self._response, reply, session, limiter=turns.pages)

        return self._guarded(answer)

    def _turns_of(self, person: SignedIn) -> _Turns:
        """Return what lets a person's requests run; those that wait take no thread."""
        if person not in self._turns:
            self._turns[person] = _Turns(CapacityLimiter(_PAGES_AT_ONCE), CapacityLimiter(1))
        return self._turns[person]

    async def _stopped(
        self, handler: Handler, visit: Visit, request: Request, turn: CapacityLimiter
    ) -> Reply:
        """Return the reply of a process that ends with its time, its visitor or the console, or raise CV-W012."""
        found: Reply | CounterveilError = refusal("CV-W012", got="a console that ends, or a visitor who left")

        async def compute() -> None:
            nonlocal found
            async with turn:
                try:
                    with fail_after(LONGEST_COMPUTATION):
                        found = await to_process.run_sync(
                            in_process, handler, visit, cancellable=True, limiter=CapacityLimiter(1)
                        )
                except TimeoutError:
                    found = refusal("CV-W012", got=f"more than {LONGEST_COMPUTATION:g} seconds")
            group.cancel_scope.cancel()

        async with create_task_group() as group:
            self._stoppable.add(group.cancel_scope)
            group.start_soon(compute)
            while (await request.receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()
        self._stoppable.discard(group.cancel_scope)
        if isinstance(found, CounterveilError):
            raise found
        return found

    def _from_file(self, request: Request) -> bool:
        """Return whether a request enters with a link that was written to a file."""
        if self._below(request) != "/enter":
            return False
        return self._sessions.from_file(read_query(request.url.query).get("token", ""))

    def _below(self, request: Request) -> str:
        """Return the path of a request below the console's own: the action of its form."""
        return str(request.url.path).removeprefix(self._place)

    def _session(self, request: Request) -> BrowserSession | None:
        try:
            return self._sessions.find(request.cookies)
        except CounterveilError:
            return None

    # Replies as responses.

    def _response(self, reply: Reply, session: BrowserSession | None) -> Response:
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

    def _refusal(self, error: CounterveilError, session: BrowserSession | None) -> Response:
        page = Page("refusal.html", {"error": error}, status_of(error))
        return self._response(page, session)

    def _broken(self, fault: BaseException, session: BrowserSession | None) -> Response:
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

    async def _fault(self, request: Request, fault: Exception) -> Response:
        return _sealed(self._broken(fault, self._session(request)))

    # Entering and leaving.

    async def _enter(self, request: Request) -> Response:
        before, from_file = self._session(request), self._from_file(request)
        name, value = self._sessions.enter(read_query(request.url.query).get("token", ""))
        response: Response = RedirectResponse(self._place + "/", status_code=303)
        if from_file:
            # Along a redirection that began at a file browsers hold back a strict cookie; a page sends on afresh.
            response = self._response(Page("entered.html", {}), None)
        # Cookies are shared by all ports of a host: the path keeps this one from other programs on this machine.
        response.set_cookie(name, value, path=self._place + "/", httponly=True, samesite="strict")
        if before is not None:
            # One browser has one session.
            self._end(before, response)
        return response

    async def _leave(self, request: Request) -> Response:
        session = self._sessions.find(request.cookies)
        session.check_form("/leave", (await read_form(request)).get("token", ""))
        response = self._response(Page("left.html", {}), None)
        self._end(session, response)
        return response

    def _end(self, session: BrowserSession, response: Response) -> None:
        self._sessions.leave(session)
        response.delete_cookie(session.cookie, path=self._place + "/", httponly=True, samesite="strict")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise refusal("CV-W007", expected="a file of the console", got="another name")
        own = files("counterveil.console") / "static"
        content = style(name).encode() if name == _PICTURES else (own / name).read_bytes()
        # The path is new with every start, so an old file is never shown.
        return Response(content, media_type=_STATIC[name], headers={"Cache-Control": "private, max-age=3600"})


def in_process(handler: Handler, visit: Visit) -> Reply | CounterveilError:
    """Return the reply or the refusal of a handler; a process whose parent was killed ends soon after its time."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(2 * LONGEST_COMPUTATION))
    try:
        return handler(visit)
    except Exception as fault:
        # Here, where the place of the fault is known.
        return coded(fault)
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)


async def _no_page(_: Request) -> Response:
    raise refusal("CV-W007", expected="a page of the console", got="another address or method")


def _sealed(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response

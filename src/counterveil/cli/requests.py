"""Commands that spend a budget: the options they share, the ledger they charge, and how they show the answer."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from counterveil.bounded_reading import UnreadableError, checked_path, written_float
from counterveil.cli.options import Given, shared
from counterveil.errors import CounterveilError, refusal

if TYPE_CHECKING:
    from counterveil.accounting import Account, Ledger
    from counterveil.data import Study
    from counterveil.data.progress import Waiting


_QUESTION = ("data", "study", "protects", "epsilon", "delta", "method", "level", "where")
_CHARGED = ("ledger", "dataset", "request_id", "anchor", "analyst")
STOPPED = "Ctrl-C stops it, but gives no budget back"
_NO_LEDGER = (
    "none, so the cost of several calls is not added up; create one with `counterveil ledger create` and "
    "pass it with --ledger"
)


class Printable(Protocol):
    """A result that can be printed."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts."""
        ...


@dataclass(frozen=True, slots=True)
class Charging:
    """The ledger and the name of one request; without a ledger nothing lasts."""

    place: str | None
    ledger: Ledger | None
    dataset: str | None
    request_id: str | None
    answered_before: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """What a question takes: its ledger, its account and its name."""
        return {"ledger": self.ledger, "dataset": self.dataset, "request_id": self.request_id}

    def lines(self) -> list[str]:
        """Return the name of the request, whether it cost anything, and what remains."""
        from counterveil.report.text import wrapped

        if self.ledger is None:
            return wrapped(_NO_LEDGER, "Ledger:      ")
        account = self.ledger.account(self.dataset or self.ledger.datasets()[0].dataset)
        # The address of a server may hold a password.
        place = "on a server" if self.place is None or "://" in self.place else self.place
        cost = "stored answer, nothing spent" if self.answered_before else "charged"
        return wrapped(
            f"{place}, data set {account.dataset!r}, request {self.request_id!r}: {cost}; "
            f"remaining: {_remaining(account)}",
            "Ledger:      ",
        )


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """One question from the command line: what the shared options said, and what it is charged to."""

    given: Given
    charged: Charging
    waiting: Waiting

    @property
    def study(self) -> Study:
        """The study file, read."""
        from counterveil.data import Study

        return Study.from_toml(self.given["study"]).narrowed(self.given["where"])

    @property
    def arguments(self) -> dict[str, Any]:
        """What the question takes beside data, study and options of its own."""
        return parameters(self.given) | self.charged.arguments

    def show(self, answer: Printable) -> None:
        """Print the answer and what it was charged to, and write the report if one is wanted."""
        self.waiting.close()
        show(answer, self.given.get("report"), self.given["as_json"], self.charged)


def question(
    *more: str, without: tuple[str, ...] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands that spend: it adds their shared options and opens the ledger.

    The command gets a `CommandRequest` as its first argument. `more` names further shared options.
    """
    names = [name for name in (*_QUESTION, *more, *_CHARGED, "report", "as_json") if name not in without]

    def decorate(ask: Callable[..., None]) -> Callable[..., None]:
        @shared(*names, **defaults)
        @wraps(ask)
        def command(given: Given, **own: Any) -> None:
            from counterveil.data.progress import Waiting

            for name in ("report", "out"):
                check_target((given | own).get(name))
            charges = charging(*(given.get(name) for name in _CHARGED))
            with charges as charged, Waiting(ask.__name__.replace("_", "-"), STOPPED) as waiting:
                ask(CommandRequest(given, charged, waiting), **own)

        return command

    return decorate


def parameters(given: Given) -> dict[str, Any]:
    """Return the arguments of a question that the shared options stand for."""
    from counterveil.questions.typed_settings import settings_from_text

    names = ("protects", "epsilon", "delta", "method", "estimand", "level", "mechanism", "measure")
    found = {name: given[name] for name in names if name in given}
    if given.get("trim") is not None:
        found["trim"] = _limit(given["trim"])
    if "setting" in given:
        found["settings"] = settings_from_text(given["method"], given["setting"] or [])
    return found


def _limit(text: str) -> float | str:
    """Return a limit on propensity scores: a number, or the word for the one of least variance."""
    try:
        return written_float(text)
    except ValueError:
        return text


@contextmanager
def charging(
    place: str | None,
    dataset: str | None,
    request_id: str | None,
    anchor: str | None = None,
    analyst: str | None = None,
) -> Iterator[Charging]:
    """Yield what to charge; a request without a name gets one, so that its answer can be asked for again."""
    if place is None:
        yield Charging(None, None, dataset, request_id)
        return
    from counterveil.accounting import open_ledger

    with open_ledger(place, anchor=anchor) as ledger:
        if analyst is not None:
            ledger.analyst = analyst
        names = [dataset] if dataset is not None else [account.dataset for account in ledger.datasets()]
        before = request_id is not None and any(
            ledger.state_of(name, request_id) == "answered" for name in names
        )
        yield Charging(place, ledger, dataset, request_id or uuid.uuid4().hex, before)


def check_target(path: Path | None) -> None:
    """Raise CV-P021 if a file could not be written; called before anything is spent."""
    if path is None:
        return
    try:
        checked_path(path)
    except UnreadableError as error:
        raise _unwritable(path, str(error)) from None
    if path.is_dir():
        raise _unwritable(path, "a folder")
    if not path.absolute().parent.is_dir():
        raise _unwritable(path, "a file in a folder that does not exist")


def show(
    answer: Any,
    report: Path | None,
    as_json: bool,
    charged: Charging | None = None,
    more: dict[str, Any] | None = None,
) -> None:
    """Print the answer and what it was charged to, and write its report if wanted; `more` is added to the JSON."""
    say(answer.to_dict() | (more or {}), str(answer), as_json, charged)
    if report is not None:
        from counterveil.data.progress import Waiting

        try:
            with Waiting("report"):
                _write(answer, report)
        except OSError as error:
            raise _unwritable(report, str(error)) from None
        if not as_json:
            print(f"Report:      {report}")


def _write(answer: Any, report: Path) -> None:
    """Write a report in the form that the name of its file asks for."""
    kind = report.suffix.lower()
    if kind in (".md", ".markdown"):
        answer.to_markdown(report)
    elif kind == ".tex":
        answer.to_latex(report)
    else:
        answer.to_html(report)


def say(facts: dict[str, Any], text: str, as_json: bool, charged: Charging | None = None) -> None:
    """Print facts as JSON or text; what was charged follows the text, or goes to standard error beside JSON."""
    print(json.dumps(facts, indent=2) if as_json else text)
    if charged is not None and not (as_json and charged.ledger is None):
        print("\n".join(charged.lines()), file=sys.stderr if as_json else sys.stdout)


def _remaining(account: Account) -> str:
    """Return what remains; for records apart, if they have less."""
    text = f"{account.remaining} of {account.budget}"
    if account.record_remaining == account.remaining:
        return text
    return f"{text}; for record-level requests {account.record_remaining} of {account.record_budget}"


def _unwritable(path: Path, got: str) -> CounterveilError:
    return refusal("CV-P021", path=path, got=got)

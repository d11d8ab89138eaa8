"""Options that several commands share, and how a command's question is asked."""

from __future__ import annotations

import errno
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from counterveil.bounded_reading import UnreadableError, checked_path, written_float
from counterveil.cli.program import LEDGER, OUTPUT, argument, option
from counterveil.errors import CounterveilError, refusal

if TYPE_CHECKING:
    from counterveil.accounting import Account, Ledger
    from counterveil.data import Study
    from counterveil.data.progress import Waiting


def values_of(name: str) -> Callable[[typer.Context, str], list[str]]:
    """Return what offers the values of an option to the shell: those that editors offer for the question."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        import counterveil as cv
        from counterveil.questions.choices import COMMANDS, Spending
        from counterveil.results.decisions import TestKind

        known = {words[0]: question for question, words in COMMANDS.items()}
        # Some options of `plan` are parts of its arguments.
        hints = {"test": TestKind, "spending": Spending}
        command = str(ctx.info_name)
        hints |= get_type_hints(getattr(cv, known.get(command, command)))
        words = [
            word for part in get_args(hints.get(name)) for word in get_args(part) if isinstance(word, str)
        ]
        # A shell takes a space for the end of a word.
        return [word.replace(" ", "\\ ") for word in words if word.startswith(incomplete)]

    return offered


Level = Annotated[float, option("NUMBER", "Confidence level of the intervals.", reads=float)]
Checkpoint = Annotated[
    str | None,
    option(
        "PLACE",
        "Second copy of the ledger's head hash, which must agree: a file, a folder or a PostgreSQL URL.",
        section=LEDGER,
    ),
]
Analyst = Annotated[
    str | None,
    option(
        "NAME", "Who asks, as the ledger records it; the operating system's user if omitted.", section=LEDGER
    ),
]
Report = Annotated[
    Path | None,
    option("FILE", "Also write a report; its name ends in .html, .md, .tex, .csv or .json.", section=OUTPUT),
]
Out = Annotated[Path | None, option("FILE", "Write the model as JSON; it holds no data.", section=OUTPUT)]
AsJson = Annotated[bool, option("", "Print JSON.", "--json", section=OUTPUT)]

Given = dict[str, Any]


def options(
    kind: Any, metavar: str, default: Any = None, section: str | None = None, **said: str | tuple[str, str]
) -> list[Parameter]:
    """Return options of one kind by name, with their help or with the words that are typed and their help.

    `...` as a default means that an option is required.
    """
    found = []
    kinds = (kind, *get_args(kind))
    reads = next((number for number in (float, int) if number in kinds or list[number] in kinds), None)  # type: ignore[valid-type]
    repeated = any(get_origin(each) is list for each in kinds)
    for name, text in said.items():
        typed = (f"--{name.replace('_', '-')}",) if kind is bool else ()
        names, told = (typed, text) if isinstance(text, str) else (text[:1], text[1])
        values = values_of(name) if metavar in ("LEVEL", "NAME") else None
        told += " May be repeated." if repeated else ""
        made = option(metavar, told, *names, section=section, values=values, reads=reads)
        found.append(_parameter(name, Annotated[kind, made], default))
    return found


def _parameter(name: str, annotation: Any, default: Any = None) -> Parameter:
    usual = Parameter.empty if default is ... else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=usual, annotation=annotation)


_PROTECTS = (
    'What is private: "outcome", "treatment and outcome" (covariates are public), or "record" (everything).'
)
_ESTIMAND = '"ATE" (the default), "ATT" (the default for changes), "ATC" or "ATO".'
_MECHANISM = (
    'Noise distribution: "staircase", "laplace", or "gaussian" if delta is positive; automatic if omitted.'
)
_TRIM = 'Keep people with propensity scores in [NUMBER, 1 - NUMBER], or "optimal"; protects="outcome" only.'
_REQUEST = "Name of this request. Repeating a named request returns the stored answer and costs nothing."
_DELTA = "0 for pure differential privacy; a small positive number allows Gaussian noise."
_STUDY = "Study file (TOML): column roles, public bounds and categories; FILE#NAME for one of several in it."
_DATA = argument("DATA", "A CSV or Parquet file, or a pattern that names several.")
_PUBLISH = (
    "Let the columns that an account's first request needs become public, for good, without being asked."
)
# The options that several commands share, in their order.
_SHARED = {
    each.name: each
    for each in (
        _parameter("data", Annotated[str, _DATA], ...),
        *options(Path, "FILE", ..., study=_STUDY),
        *options(str, "LEVEL", ..., protects=_PROTECTS),
        *options(str, "NUMBER", ..., epsilon="Privacy loss to spend, read exactly: 0.1 or 1/10."),
        *options(str | None, "NUMBER", "0", delta=_DELTA),
        *options(
            str, "NAME", "auto", method='Estimator of the question; "auto" chooses from public numbers alone.'
        ),
        *options(str | None, "NAME", estimand=_ESTIMAND),
        _parameter("level", Level, 0.95),
        *options(str | None, "NAME", mechanism=_MECHANISM),
        *options(list[str] | None, "NAME=VALUE", setting=("--set", "A setting of the method.")),
        *options(str | None, "NUMBER", trim=_TRIM),
        *options(
            str,
            "NAME",
            "difference",
            measure='"difference", "ratio", "odds_ratio", "lift" or "nnt" (number needed to treat).',
        ),
        *options(
            str | None,
            "CONDITION",
            where="Rows that belong to the study: \"age >= 18 and site in ['A', 'B']\".",
        ),
        *options(
            str | None,
            "NAME",
            table="Table to read if the data are a DuckDB file, a database URL or spark://.",
        ),
        *options(str | None, "PLACE", None, LEDGER, ledger="Ledger to charge: a file or a PostgreSQL URL."),
        _parameter("checkpoint", Checkpoint),
        *options(
            str | None,
            "NAME",
            section=LEDGER,
            dataset="Account in the ledger; may be omitted if the ledger has only one.",
            request_id=_REQUEST,
        ),
        *options(bool, "", False, LEDGER, publish=_PUBLISH),
        _parameter("analyst", Analyst),
        _parameter("report", Report),
        _parameter("as_json", AsJson, False),
    )
}


# The methods of each question, as its function types them.
_ADJUSTED = ("auto", "difference_in_means", "weighting", "matching")
_AVERAGE = (
    "auto",
    "difference_in_means",
    "trial",
    "matching",
    "doubly_robust",
    "stratified",
    "weighting",
    "sample_and_aggregate",
)
METHODS = {
    "estimate": _AVERAGE,
    "look": _AVERAGE,
    "arms": (*_ADJUSTED, "doubly_robust"),
    "event_study": _ADJUSTED,
    "outcomes": (*_ADJUSTED, "trial", "doubly_robust"),
    "groups": (*_ADJUSTED, "adjusted", "arms"),
    "cate": ("auto", "t_learner", "r_learner", "series"),
    "policy_value": ("auto", "scores", "adjusted", "difference_in_means", "weighting", "matching"),
    "survival": ("auto", "kaplan_meier", "stratified", "weighting"),
    "quantiles": ("auto", "trial", "weighting"),
}


def _with_methods(each: Parameter, command: str) -> Parameter:
    """Return the option `--method` of a command with its methods in its help; others as they are."""
    if each.name != "method" or command not in METHODS:
        return each
    names = ", ".join(f'"{name}"' for name in METHODS[command][1:])
    text = f'"auto" (from public numbers alone), {names}.'
    return each.replace(annotation=Annotated[str, option("NAME", text, values=values_of("method"))])


def shared(
    *names: str, more: Sequence[Parameter] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds shared options, and `more`, to a command, which gets their values first.

    Required options come first, ledger and output last, the others in between.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(function, eval_str=True).parameters.values())[1:]
        added = [
            _with_methods(each.replace(default=defaults.get(name, each.default)), function.__name__)
            for name, each in _SHARED.items()
            if name in names
        ]
        added += more

        @wraps(function)
        def command(**values: Any) -> None:
            given = {each.name: values.pop(each.name) for each in added}
            function(given, **values)

        merged = sorted(
            (each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*own, *added)),
            key=lambda each: _place(each, each.name in names),
        )
        command.__signature__ = Signature(merged)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in merged}
        # The signature of the function inside is not the command's.
        del command.__wrapped__
        return command

    return decorate


def _place(parameter: Parameter, is_shared: bool) -> int:
    """Return the place of an option: data and study, required ones, shared ones, own ones, then ledger and output."""
    if parameter.name in ("data", "study"):
        return 0
    if parameter.default is Parameter.empty:
        return 1 if is_shared else 2
    if not is_shared:
        return 4
    return 5 if parameter.annotation.__metadata__[0].rich_help_panel else 3


_QUESTION = ("data", "study", "protects", "epsilon", "delta", "method", "level", "where")
_CHARGED = ("ledger", "dataset", "request_id", "checkpoint", "analyst")
STOPPED = "Ctrl-C stops it, but gives no budget back"
_NO_LEDGER = (
    "none, so the cost of several calls is not added up; create one with `counterveil ledger create` and "
    "pass it with --ledger"
)


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

    def ask(self, question: str, out: Path | None = None, **own: Any) -> None:
        """Ask a question of the package by its name, with options of its own, and show the answer."""
        import counterveil as cv
        from counterveil.data import open_table

        data = self.given["data"]
        data = open_table(data, self.given["table"]) if "table" in self.given else data
        self.publish(self.study)
        found = getattr(cv, question)(data, self.study, **self.arguments | own)
        # Printed first: what was paid for is not lost if the file cannot be written.
        self.show(found)
        if out is not None:
            found.save(out)

    def publish(self, study: Study) -> None:
        """Make public what a first request on the account needs, if somebody says so here or with --publish.

        Otherwise the request is refused with the list of columns, before anything is spent.
        """
        from counterveil.privacy import Unit
        from counterveil.session import columns_to_publish

        ledger, dataset = self.charged.ledger, self.charged.dataset
        if ledger is None or self.given["protects"] is None:
            return
        known = [account.dataset for account in ledger.datasets()]
        name = dataset if dataset is not None else known[0] if len(known) == 1 else None
        if name not in known:
            return  # refused where the session is opened
        columns = columns_to_publish(ledger, name, study, Unit.parse(self.given["protects"]))
        if not columns:
            return
        if not self.given["publish"]:
            if not somebody_is_there():
                return
            self.waiting.close()
            lines = [f"This is the first request of the account {name!r}. It makes public, for good:"]
            lines += [f"  {column.words()}" for column in columns]
            lines += [
                "Answers may show each person's values of them; no further column can become public later."
            ]
            print("\n".join(lines), file=sys.stderr)
            if not _agreed("Make them public?"):
                return  # refused where the session is opened, with the list
        ledger.publish(name, [column.name for column in columns])

    def show(self, answer: Any) -> None:
        """Print the answer and what it was charged to, and write the report if one is wanted."""
        self.waiting.close()
        show(answer, self.given.get("report"), self.given["as_json"], self.charged)


def question(
    *more: str, without: tuple[str, ...] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands that spend: it adds their shared options and opens the ledger.

    The command gets a `CommandRequest` as its first argument. `more` names further shared options.
    """
    listed = (*_QUESTION, *more, *_CHARGED, "publish", "report", "as_json")
    names = [name for name in listed if name not in without]

    def decorate(ask: Callable[..., None]) -> Callable[..., None]:
        @shared(*names, **defaults)
        @wraps(ask)
        def command(given: Given, **own: Any) -> None:
            from counterveil.data.progress import Waiting

            check_report(given.get("report"))
            check_target(own.get("out"))
            charges = charging(*(given.get(name) for name in _CHARGED))
            with charges as charged, Waiting(ask.__name__.replace("_", "-"), STOPPED) as waiting:
                ask(CommandRequest(given, charged, waiting), **own)

        return command

    return decorate


def somebody_is_there() -> bool:
    """Return whether a question in the terminal can be answered."""
    return sys.stdin.isatty()


def _agreed(asked: str) -> bool:
    """Return whether somebody says yes on the terminal; Ctrl-C stops the command."""
    try:
        return typer.confirm(asked, err=True)
    except typer.Abort:
        raise KeyboardInterrupt from None


def parameters(given: Given) -> dict[str, Any]:
    """Return the arguments of a question that the shared options stand for."""
    from counterveil.questions.ate import settings_from_text

    names = ("protects", "epsilon", "delta", "method", "estimand", "level", "mechanism", "measure")
    found = {name: given[name] for name in names if name in given}
    if given.get("trim") is not None:
        found["trim"] = number_or_word(given["trim"])
    if "setting" in given:
        found["settings"] = settings_from_text(given["method"], given["setting"] or [])
    return found


def number_or_word(text: str) -> float | str:
    """Return a number that is written, or the text where it is none."""
    try:
        return written_float(text)
    except ValueError:
        return text


@contextmanager
def charging(
    place: str | None,
    dataset: str | None,
    request_id: str | None,
    checkpoint: str | None = None,
    analyst: str | None = None,
) -> Iterator[Charging]:
    """Yield what to charge; a request without a name gets one, so that its answer can be asked for again."""
    if place is None:
        yield Charging(None, None, dataset, request_id)
        return
    from counterveil.accounting import open_ledger

    with open_ledger(place, checkpoint=checkpoint) as ledger:
        if analyst is not None:
            ledger.analyst = analyst
        names = [dataset] if dataset is not None else [account.dataset for account in ledger.datasets()]
        before = request_id is not None and any(
            ledger.state_of(name, request_id) == "answered" for name in names
        )
        yield Charging(place, ledger, dataset, request_id or uuid.uuid4().hex, before)


# What a report is written as, by the end of its name.
_FORMS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
}


def check_report(path: Path | None) -> None:
    """Raise CV-P021 if a report could not be written, or its name says no form; called before anything is spent."""
    check_target(path)
    if path is not None and path.suffix.lower() not in _FORMS:
        raise refusal("CV-P021b", known=", ".join(_FORMS), path=path)


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
    facts = answer.to_dict() | (more or {})
    say(facts, str(answer), as_json, charged)
    if report is not None:
        from counterveil.data.progress import Waiting

        try:
            with Waiting("report"):
                _write(answer, report, facts)
        except OSError as error:
            raise _unwritable(report, str(error)) from None
        if not as_json:
            print(f"Report:      {report}")


def _write(answer: Any, report: Path, facts: dict[str, Any]) -> None:
    """Write a report in the form that the name of its file asks for."""
    form = _FORMS[report.suffix.lower()]
    if form == "csv":
        from counterveil.report.airlock import csv_of

        report.write_text(csv_of(answer.tidy()), encoding="utf-8", newline="")
    elif form == "json":
        report.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    else:
        getattr(answer, f"to_{form}")(report)


def say(facts: dict[str, Any], text: str, as_json: bool, charged: Charging | None = None) -> None:
    """Print facts as JSON or text; what was charged follows the text, or goes to standard error beside JSON.

    Raises CV-P310 where a charged answer cannot be written.
    """
    lines = [] if charged is None or (as_json and charged.ledger is None) else charged.lines()
    try:
        print(json.dumps(facts, indent=2) if as_json else text)
        if not as_json and lines:
            print("\n".join(lines))
        # A disk that is full says so only now.
        flush_output()
    except OSError as error:
        if charged is None or charged.ledger is None:
            raise
        if isinstance(error, BrokenPipeError):
            # Whoever read has read enough; the name of the request may have been on the part that was not.
            print("\n".join(lines), file=sys.stderr)
            raise
        raise refusal("CV-P310", got=os.strerror(error.errno or 0), request=charged.request_id) from None
    if as_json and lines:
        print("\n".join(lines), file=sys.stderr)


def flush_output() -> None:
    """Write what was printed, or raise OSError; also where a program was started without a standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "no standard output")
    sys.stdout.flush()


def _remaining(account: Account) -> str:
    """Return what remains; for records apart, if they have less."""
    text = f"{account.remaining} of {account.budget}"
    if account.record_remaining == account.remaining:
        return text
    return f"{text}; for record-level requests {account.record_remaining} of {account.record_budget}"


def _unwritable(path: Path, got: str) -> CounterveilError:
    return refusal("CV-P021", path=path, got=got)

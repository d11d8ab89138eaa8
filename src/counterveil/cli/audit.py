"""The commands that check claims, export answers, and serve the console."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.cli.program import argument, option
from counterveil.cli.requests import Given, options, shared
from counterveil.errors import refusal

if TYPE_CHECKING:
    from counterveil.accounting import Ledger
    from counterveil.report.airlock import Holdings, StoredAnswer

_AUDIT = [
    *options(
        str | None,
        "NUMBER",
        epsilon="Claim to audit; that of the list if omitted.",
        delta="Its delta; that of the list if omitted.",
    ),
    *options(
        int | None,
        "INTEGER",
        samples=("--trials", "Samples from each data set; as listed if omitted, 0 for none."),
    ),
    *options(int, "INTEGER", 1, seed="Seed of data, search and noise."),
    *options(int, "INTEGER", 1, jobs="Audits that run at the same time, each on a core of its own."),
    *options(
        bool,
        "",
        False,
        everything=("--all", "Audit everything: about 4 minutes of CPU."),
        gallery="Run published claims that fail, each on its counterexample.",
    ),
    *options(Path | None, "FILE", page="Write what was found as a page."),
    *options(bool, "", False, listed=("--list", "Show what can be audited, and stop.")),
]


@shared("as_json", more=_AUDIT)
def audit(
    given: Given,
    names: Annotated[
        list[str] | None, argument("METHOD", "Methods, questions, or names that --list shows.")
    ] = None,
) -> None:
    """Attack releases of this library, and show the power of each attack; needs the package counterveil-lab.

    Every form is asked of the worst neighbouring data sets that a search finds. Three attacks follow: the
    largest loss of any output, a bet on the likelihood ratio of samples, and a replay in which everything
    visible must be equal. Each must catch a third of the noise. The exit
    code is 1 if a claim is broken or an attack has no power.
    """
    given["jobs"] = max(given["jobs"], 1)
    raise SystemExit(laboratory().audit(names=names or [], **given))


def reproduce(
    paper: Annotated[str | None, argument("PAPER", "Short name of a paper; --list shows them.")] = None,
    quick: Annotated[
        bool, option("", "Few repetitions: minutes instead of a quarter of an hour.", "--quick")
    ] = False,
    figures: Annotated[
        list[str] | None,
        option("NAME", "A figure or table; all of the paper if omitted. May be repeated.", "--figure"),
    ] = None,
    out: Annotated[
        Path, option("FOLDER", "Where tables, pictures and the page go, in a folder for the paper.")
    ] = Path("reproduced"),
    jobs: Annotated[
        int, option("INTEGER", "Cells that run at the same time, each on a core of its own.", reads=int)
    ] = 1,
    listed: Annotated[
        bool, option("", "Show the papers, or the figures of a paper, and stop.", "--list")
    ] = False,
) -> None:
    """Run the tables and figures of a paper again, and judge its claims; needs the package counterveil-lab.

    Every finished piece is kept at once: after Ctrl-C the same command goes on where it stopped. A table is a CSV file,
    a figure SVG and PNG. claims.csv has the verdict on every claim; page.md links all of them and lists the claims that
    fail. Data sets are looked for below COUNTERVEIL_DATA.
    """
    raise SystemExit(laboratory().reproduce(paper, quick, figures or [], out, max(jobs, 1), listed))


def laboratory() -> Any:
    """Return the commands of `counterveil-lab`, a distribution of its own that nothing here imports otherwise."""
    if find_spec("counterveil_lab") is None:
        raise refusal("CV-E100")
    return import_module("counterveil_lab.commands")


# Files of an answer that a checker looks at; the console offers more.
_SHOWN = ("effects.csv", "report.html", "result.json")


def export(
    ledger: Annotated[str, argument("LEDGER", "A file or a PostgreSQL URL.")],
    folder: Annotated[Path, argument("FOLDER", "A folder that does not exist yet, or is empty.")],
    format: Annotated[
        str,
        option(
            "NAME",
            "sacro (a folder for the SACRO viewer), registry (an entry of OpenDP's registry of deployments), "
            "dpia (a summary for a data-protection file) or csv.",
        ),
    ] = "sacro",
    dataset: Annotated[str | None, option("NAME", "The account; its only one if omitted.")] = None,
) -> None:
    """Write all answers of an account with their guarantee, for people who clear releases.

    The ledger is read, nothing is spent and no rows are needed. Every answer about the same people is in it.
    """
    from counterveil.accounting import open_ledger
    from counterveil.report.airlock import FORMATS

    if format not in FORMATS:
        raise refusal("CV-P030", known=" or ".join(FORMATS), format=format)
    _check_folder(folder)
    with open_ledger(ledger, inspect=True) as book:
        held = _holdings(book, dataset)
    files = FORMATS[format](held)
    try:
        for name, text in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")
    except OSError as fault:
        raise refusal("CV-P021", path=str(folder), got=type(fault).__name__) from None
    print(f"{len(files)} files in {folder}; answers of {held.dataset!r}: {len(held.answers)}")


def _check_folder(folder: Path) -> None:
    try:
        checked_path(folder)
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except (UnreadableError, OSError) as fault:
        raise refusal("CV-P021", path=folder.name, got=type(fault).__name__) from None
    if used:
        raise refusal("CV-P021", path=str(folder), got="a file, or a folder that is not empty")


def _holdings(book: Ledger, dataset: str | None) -> Holdings:
    """Return an account with all that was answered from it."""
    from counterveil.privacy import Budget
    from counterveil.report.airlock import Holdings

    names = [account.dataset for account in book.datasets()]
    if dataset is None and len(names) > 1:
        raise refusal("CV-P013b", known=", ".join(map(repr, names)))
    account = book.account(next(iter(names), "data") if dataset is None else dataset)
    requests = [entry for entry in book.entries(account.dataset) if entry.kind == "reserve"]
    policy = account.access_policy
    digits = None if policy is None else policy.digits
    answers = [_answer(book.of_request(account.dataset, entry.request_id), digits) for entry in requests]
    found = tuple(answer for answer in answers if answer is not None)
    return Holdings(
        dataset=account.dataset,
        note=account.note,
        guarantee=str(account.to_dict()["guarantee"]),
        total=account.budget,
        spent=Budget(account.spent.epsilon, account.spent.delta),
        remaining=str(account.remaining),
        head_hash=book.head_hash(),
        answers=found,
        unanswered=len(requests) - len(found),
    )


def _answer(entries: list[Any], digits: int | None) -> StoredAnswer | None:
    """Return an answered request, None where it has no answer, or one that only its own program reads.

    Where numbers are rounded, its table of effects is all that shows them.
    """
    from counterveil.privacy import Budget
    from counterveil.report import one_line
    from counterveil.report.airlock import StoredAnswer, csv_of, rounded
    from counterveil.results.kept import answer_of, files_of

    if len(entries) < 2:
        return None
    asked = entries[0].facts["description"]
    result = answer_of(entries[0].facts, str(entries[1].facts["answer"]))
    if result is None:
        return None
    files = files_of(result)
    line = one_line(result.report_facts()) if hasattr(result, "report_facts") else repr(result)
    written = {name: files[name][1]() for name in _SHOWN}
    if digits is not None:
        line = " ".join(str(asked[key]) for key in ("question", "method", "outcome") if key in asked)
        written = {"effects.csv": csv_of([rounded(row, digits) for row in result.tidy()])}
    return StoredAnswer(
        name=entries[0].request_id,
        asked=asked,
        by=entries[0].by,
        at=str(entries[0].facts["at"]),
        spent=Budget.from_dict(entries[0].facts["charge"]["face"]),
        guarantee=result.guarantee,
        line=line,
        mechanisms=str(asked.get("mechanism", "")),
        files=written,
    )


_NEEDED = ("starlette", "jinja2", "uvicorn")


def console(
    folder: Annotated[
        Path, argument("FOLDER", "A folder with ledgers, data and studies; console.toml in it may name them.")
    ],
    port: Annotated[int, option("INTEGER", "Port on this machine; 0 for a free one.", reads=int)] = 0,
    analyst: Annotated[
        list[str] | None,
        option("NAME", "Also print a link for an analyst, who sees no message about rows. May be repeated."),
    ] = None,
    browser: Annotated[bool, option("", "Open the steward's link in a browser.", "--browser")] = False,
) -> None:
    """Work in the browser: data sets, studies, plans, requests, results and ledgers.

    Listens on 127.0.0.1 only. Each printed link opens one session, once, within 15 minutes. Nothing is kept but what
    the other commands keep: ledgers, study files, decisions of a site. Needs the extra `console`.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise refusal("CV-E080", missing=", ".join(missing))
    from counterveil.console.server import serve

    def tell(who: str, link: str) -> None:
        print(f"{who}: {link}", flush=True)

    print("Listening on this machine only; interrupt to stop.", flush=True)
    serve(folder, port, analyst or [], tell, browser)

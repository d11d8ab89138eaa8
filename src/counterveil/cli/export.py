"""`counterveil export`: the answers of an account as a folder for an output check, a registry or a steward's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.cli.options import argument, option
from counterveil.errors import refusal

if TYPE_CHECKING:
    from counterveil.accounting import Ledger
    from counterveil.report.airlock import Holdings, StoredAnswer

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
    """Write all answers of an account with their guarantee, for people who decide what may leave.

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
    print(f"{len(files)} files in {folder}: {len(held.answers)} answers of {held.dataset!r}")


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
    answers = [_answer(book.of_request(account.dataset, entry.request_id)) for entry in requests]
    found = tuple(answer for answer in answers if answer is not None)
    return Holdings(
        dataset=account.dataset,
        note=account.note,
        guarantee=str(account.to_dict()["guarantee"]),
        total=account.budget,
        spent=Budget(account.spent.epsilon, account.spent.delta),
        remaining=str(account.remaining),
        head=book.head(),
        answers=found,
        unanswered=len(requests) - len(found),
    )


def _answer(entries: list[Any]) -> StoredAnswer | None:
    """Return an answered request, None where it has no answer, or one that only its own program reads."""
    from counterveil.privacy import Budget
    from counterveil.report import one_line
    from counterveil.report.airlock import StoredAnswer
    from counterveil.results.kept import answer_of, files_of

    if len(entries) < 2:
        return None
    asked = entries[0].facts["description"]
    result = answer_of(asked, str(entries[1].facts["answer"]))
    if result is None:
        return None
    files = files_of(result)
    return StoredAnswer(
        name=entries[0].request_id,
        asked=asked,
        by=str(entries[0].facts["asked_by"]),
        at=str(entries[0].facts["at"]),
        spent=Budget.from_dict(entries[0].facts["charge"]["face"]),
        guarantee=result.guarantee,
        line=one_line(result.report_facts()) if hasattr(result, "report_facts") else repr(result),
        mechanisms=str(asked.get("mechanism", "")),
        files={name: files[name][1]() for name in _SHOWN},
    )

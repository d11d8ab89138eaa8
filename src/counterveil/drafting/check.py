"""The function behind `counterveil check`: all findings about a study file and the data at once."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from counterveil.accounting import Ledger, open_ledger
from counterveil.data import Study
from counterveil.data.checking import Checked, Finding, check_data, declarations
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Unit


def check(
    source: Any,
    study: Study | str | PathLike[str],
    *,
    show_labels: bool = False,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
) -> tuple[Finding, ...]:
    """Return everything that does not fit between data and a study; nothing is spent.

    What is found depends on private rows and is for the holder of the data alone.

    Args:
        source: data as for `counterveil.ate`.
        study: a `Study`, or the path of a study file; "study.toml#NAME" names one of several in a file.
        show_labels: list undeclared labels and how many rows have each; refused with a ledger, through which analysts
            ask.
        ledger: compare the study with the access policy of an account of this ledger. Rows are looked at only if the
            access policy allows the study.
        dataset: account in the ledger; may be omitted if the ledger has only one.
    """
    return checked(source, study, show_labels=show_labels, ledger=ledger, dataset=dataset).findings


def checked(
    source: Any,
    study: Study | str | PathLike[str],
    *,
    show_labels: bool = False,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
) -> Checked:
    """Return the same, with the study and the number of its rows."""
    if show_labels and ledger is not None:
        raise refusal("CV-P720")
    document, declared, found = declarations(study)
    if declared is None:
        return Checked(tuple(found), None)
    refused = [] if ledger is None else _refused_by_access_policy(declared, ledger, dataset)
    if refused:
        return Checked((*found, *refused), declared)
    seen = check_data(source, document, declared, show_labels)
    findings = (*found, *seen.findings)
    return replace(seen, findings=findings, rows=None if found else seen.rows)


def _refused_by_access_policy(study: Study, place: str | Path | Ledger, dataset: str | None) -> list[Finding]:
    """Return why an account takes no question about this study, at whatever level; none where it does."""
    ledger = place if isinstance(place, Ledger) else open_ledger(place)
    try:
        names = [account.dataset for account in ledger.datasets()]
        name = dataset or (names[0] if len(names) == 1 else "")
        if name not in names:
            raise refusal("CV-P013", dataset=dataset, names=len(names))
        refusals = [_refusal(ledger, name, study, unit) for unit in Unit]
        return [] if None in refusals else [Finding.of(error) for error in refusals[:1] if error is not None]
    finally:
        if ledger is not place:
            ledger.close()


def _refusal(ledger: Ledger, dataset: str, study: Study, unit: Unit) -> CounterveilError | None:
    from counterveil.results.question import uses_of  # with a ledger alone: it loads all results

    try:
        ledger.check_study(
            dataset, uses_of(study, unit, "ate" if study.event is None else "survival", "auto")
        )
    except CounterveilError as error:
        return error
    return None

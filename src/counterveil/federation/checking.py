"""A steward's check of a site before it runs; what it finds stays at the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.accounting import open_ledger
from counterveil.data import Study, Table, check_columns, open_table, source_in_database
from counterveil.errors import ParameterError
from counterveil.federation import keys
from counterveil.federation.site import Site
from counterveil.federation.site_file import SiteFile
from counterveil.federation.writing import check_private


def check_site(folder: Path) -> dict[str, Any]:
    """Return what a steward should know, or raise the first thing that is wrong."""
    file = SiteFile.read(folder)
    study = Study.from_toml(file.declaration)
    source = open_table(file.data, file.table)
    rows: int | str = "in a database, counted when asked"
    if source_in_database(source):
        check_columns(source, study)
    else:
        rows = Table.attach(source, study).rows
    for name in (keys.AUTHORITY, keys.NODE_KEY, keys.AUTHORITY_OF_NODE, keys.CERTIFICATE, keys.SECRET):
        if not (file.keys / name).is_file():
            raise _no_key(name)
        check_private(file.keys / name)
    keys.read_public_key(file.keys / keys.NODE_PUBLIC)
    Site(file).check_ledger()
    with open_ledger(file.ledger) as ledger:
        account = ledger.account(file.dataset)
    return {
        "site": file.name,
        "coordinator": file.coordinator,
        "declaration": study.fingerprint(),
        "rows": rows,
        "granted": str(account.budget),
        "left": str(account.remaining),
        "ledger": "sound",
        "policy": file.policy.to_document(),
    }


def _no_key(name: str) -> ParameterError:
    return ParameterError(
        "CV-P607",
        "a key of the site is missing",
        expected=f"keys/{name} in the site's folder",
        got="no such file",
        fix="restore it from a copy, or make the site anew with the same ledger",
    )

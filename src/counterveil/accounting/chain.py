"""The hash chain: each entry's hash covers its content and the hash before it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from counterveil.accounting.store import Row
from counterveil.errors import LedgerError

# The hash before the first entry; it names the format, so another format cannot be mistaken for it.
GENESIS = hashlib.sha256(b"counterveil ledger 2").hexdigest()


def canonical(facts: dict[str, object]) -> str:
    """Return `facts` as JSON with sorted keys, no spaces, ASCII only: same facts, same text."""
    try:
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LedgerError(
            "CV-L014",
            "a description cannot be written as JSON",
            expected="texts, finite numbers, true, false, null, lists and dictionaries of these",
            got=str(error),
            fix="turn other values into text, for instance str(Fraction(1, 3))",
        ) from None


def digest(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash, a line feed and the entry's canonical JSON."""
    return hashlib.sha256(f"{previous}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()


def seal(seq: int, previous: str, kind: str, dataset: str, request_id: str, facts: dict[str, object]) -> Row:
    """Return the entry that follows the one whose hash is `previous`."""
    body = canonical({**facts, "seq": seq, "kind": kind, "dataset": dataset, "request": request_id})
    return Row(seq, kind, dataset, request_id, body, previous, digest(previous, body))


def unseal(row: Row) -> dict[str, Any]:
    """Return the content of an entry after checking its own hash, or raise CV-L016."""
    facts = _read(row)
    if isinstance(facts, str):
        raise LedgerError(
            "CV-L016",
            f"entry {row.seq} of the ledger is damaged",
            expected="an entry as it was written",
            got=facts,
            fix="stop spending, run `counterveil ledger verify`, and restore the ledger from a copy",
        )
    return facts


def fault(row: Row) -> str | None:
    """Return what is wrong with one entry taken by itself, None if nothing is."""
    found = _read(row)
    return found if isinstance(found, str) else None


def _read(row: Row) -> dict[str, Any] | str:
    """Return the content of an entry, or what is wrong with it."""
    if digest(row.previous, row.body) != row.hash:
        return "its hash does not match its content"
    try:
        facts = json.loads(row.body)
    except ValueError:
        return "its content is not JSON"
    if not isinstance(facts, dict) or canonical(facts) != row.body:
        return "its content is not in canonical form"
    columns = (row.seq, row.kind, row.dataset, row.request_id)
    if columns != tuple(facts.get(name) for name in ("seq", "kind", "dataset", "request")):
        return "its columns do not match its content"
    return facts

"""The hash chain: each entry's hash covers its content and the hash before it."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from counterveil.accounting.records import Row
from counterveil.accounting.refusals import too_large
from counterveil.errors import CounterveilError, LedgerError, refusal

# The hash before the first entry; it names the format, so another format cannot be mistaken for it.
GENESIS = hashlib.sha256(b"counterveil ledger 3").hexdigest()
# What one entry may hold, in characters. Releases and answers are bounded by what databases and readers can hold;
# everything else is known before a budget is reserved and has no reason to be long.
LONGEST_ANSWER = 64 * 2**20
LONGEST_ENTRY = 4 * 2**20
_LONGEST = {"release": 512 * 2**20, "settle": LONGEST_ANSWER}
# Levels of lists and dictionaries within each other that every reader can follow.
DEEPEST = 100


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
# What has nothing inside.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def canonical(facts: dict[str, object]) -> str:
    """Return `facts` as JSON with sorted keys, no spaces, ASCII only: same facts, same text."""
    try:
        return _CANONICAL.encode(facts)
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(str(error)) from None


def _unwritable(got: str) -> CounterveilError:
    return refusal("CV-L014b", deepest=DEEPEST, got=got)


def digest(previous: str, body: str) -> str:
    """Return the SHA-256 of the previous hash, a line feed and the entry's canonical JSON."""
    return hashlib.sha256(f"{previous}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()


def seal(
    seq: int,
    previous: str,
    kind: str,
    dataset: str,
    request_id: str,
    facts: dict[str, object],
    name: str = "",
) -> Row:
    """Return the entry that follows the one whose hash is `previous`."""
    whole = {**facts, "seq": seq, "kind": kind, "dataset": dataset, "request": request_id, "name": name}
    _check_names(whole)
    body = canonical(whole)
    longest = _LONGEST.get(kind, LONGEST_ENTRY)
    if len(body) > longest:
        raise too_large(kind, len(body), longest)
    row = Row(seq, kind, dataset, request_id, name, body, previous, digest(previous, body))
    if kind not in _LONGEST:
        _keep(row, whole)
    return row


def unseal(row: Row) -> dict[str, Any]:
    """Return the content of an entry after checking its own hash, or raise CV-L016."""
    facts = _read(row)
    if isinstance(facts, str):
        raise refusal("CV-L016", problem=f"entry {row.seq} of the ledger is damaged", got=facts)
    return facts


# The content of the newest entries that were written or checked, which a request looks at several times.
_KNOWN: dict[Row, Mapping[str, Any]] = {}
_MOST_KNOWN = 16
_TURN = threading.Lock()


def read_entry(row: Row) -> Mapping[str, Any]:
    """Return the same, not to be written to; an entry that equals one written or checked here is not checked again."""
    known = _KNOWN.get(row)
    if known is None:
        known = unseal(row)
        _keep(row, known)
    return known


def _keep(row: Row, facts: Mapping[str, Any]) -> None:
    with _TURN:
        _KNOWN[row] = facts
        if len(_KNOWN) > _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]


def opening_entry(anchor: str | None) -> Row:
    """Return entry 0 of a new ledger: a random id, and where its head is kept besides; nothing is registered yet."""
    return seal(0, GENESIS, "open", "", "", {"ledger": uuid.uuid4().hex, "anchor": anchor})


def study_of(request_id: str) -> str:
    """Return what stands before the "@" of a request id; requests of one study have one running total."""
    study, sign, _ = request_id.partition("@")
    return study if sign else ""


def fault(row: Row) -> str | None:
    """Return what is wrong with one entry taken by itself, None if nothing is."""
    found = _read(row)
    return found if isinstance(found, str) else None


def _read(row: Row) -> dict[str, Any] | str:
    """Return the content of an entry, or what is wrong with it."""
    if digest(row.previous, row.body) != row.hash:
        return "its hash does not match its content"
    try:
        facts: dict[str, Any] = json.loads(row.body)
        written = canonical(facts) if isinstance(facts, dict) else ""
    except (ValueError, RecursionError):
        return "its content is not JSON"
    except LedgerError:
        return "its content is not in canonical form"
    if written != row.body:
        return "its content is not in canonical form"
    columns = (row.seq, row.kind, row.dataset, row.request_id, row.name)
    if columns != tuple(facts.get(name) for name in ("seq", "kind", "dataset", "request", "name")):
        return "its columns do not match its content"
    return facts


def _check_names(value: object, depth: int = 0) -> None:
    """Refuse names that JSON would turn into texts, and depths that a reader may not follow."""
    if depth > DEEPEST:
        raise _unwritable(f"more than {DEEPEST} levels")
    inside: Iterable[object] = ()
    if isinstance(value, dict):
        strange = next((name for name in value if type(name) is not str), None)
        if strange is not None:
            raise _unwritable(f"a dictionary with a name of type {type(strange).__name__}")
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    for each in inside:
        if type(each) not in _PLAIN:
            _check_names(each, depth + 1)

"""Whether a site's ledger still holds what its answers and its coordinator saw of it.

A ledger cannot notice alone that it was put back to an older copy. Each kept answer therefore names the end of
the ledger after it was settled, and the coordinator keeps the last end that it was told.
"""

from __future__ import annotations

from collections.abc import Iterable

from counterveil.accounting import Ledger
from counterveil.errors import LedgerError
from counterveil.federation.messages import Head


def head_of(ledger: Ledger) -> Head:
    """Return where a ledger ends now."""
    return Head(*ledger.head_at())


def check_anchors(ledger: Ledger, heads: Iterable[Head]) -> None:
    """Raise CV-F043 where the ledger is damaged, or an entry that was seen before is not in it any more."""
    report = ledger.verify()
    if not report.ok:
        raise not_sound("a ledger whose entries do not follow from each other")
    check_heads(ledger, heads)


def check_heads(ledger: Ledger, heads: Iterable[Head]) -> None:
    """Raise CV-F043 where an entry that was seen before is not in the ledger any more."""
    for head in set(heads):
        try:
            ledger.check_contains(head.seq, head.hash)
        except LedgerError:
            raise not_sound(f"a ledger without the entry {head.seq} that an answer was given after") from None


def not_sound(got: str) -> LedgerError:
    """Return CV-F043."""
    return LedgerError(
        "CV-F043",
        "the site's ledger is damaged or was put back, so it answers nothing",
        expected="a ledger that verifies and holds every entry that an answer was given after",
        got=got,
        fix="find out what happened to the ledger (`counterveil ledger verify`), and restore its newest copy; budget "
        "that was spent stays spent",
    )

"""What a ledger refuses when it is opened: lost entries, another ledger, a missing anchor, changed guards."""

from __future__ import annotations

from counterveil.errors import LedgerError


def cut_off(seq: int, expected: str) -> LedgerError:
    """Return the refusal for a ledger that lacks an entry which it had before."""
    return LedgerError(
        "CV-L060",
        "the ledger lost entries, or was put back to an older state",
        expected=f"entry {seq} with hash {expected[:16]}..., which it had before",
        got="a ledger without this entry",
        fix="find the newest file, with the file that ends in -wal if there is one; if it is lost, grant a new ledger "
        "at most what is left for certain (`counterveil explain CV-L060`)",
    )


def other_ledger(found: str, expected: str) -> LedgerError:
    """Return the refusal for a ledger that stands in the place of another."""
    return LedgerError(
        "CV-L061",
        "this is another ledger than the one whose head is kept",
        expected=f"the ledger with id {expected}",
        got=f"the ledger with id {found}",
        fix="put the right file back, or name the right anchor; each ledger has an anchor of its own",
    )


def no_anchor(place: str) -> LedgerError:
    """Return the refusal for a ledger whose anchor is not where it should be."""
    return LedgerError(
        "CV-L062",
        "the anchor of the ledger is missing",
        expected="the head of this ledger, kept in a second place since it was made",
        got=f"nothing for this ledger at {place}",
        fix="put the anchor back, or mount the disk it lies on; a place that is to be an anchor from now on is added "
        "with `counterveil ledger anchor`",
    )


def anchor_failed(place: str, problem: str) -> LedgerError:
    """Return the refusal for an anchor that cannot be read or moved forward."""
    return LedgerError(
        "CV-L063",
        "the anchor of the ledger cannot be read or written",
        expected="an anchor that is whole and can be written",
        got=f"{problem} ({place})",
        fix="mend the place, then ask again with the same request id; if it is answered with CV-L006, the charge was "
        "kept before the failure, and only a new request id can be answered",
    )


def was_deleted(place: str) -> LedgerError:
    """Return the refusal to make a ledger where there was one."""
    return LedgerError(
        "CV-L064",
        "a ledger was here and is gone",
        expected="a place where no ledger has been",
        got=f"its anchor is still there: {place}",
        fix="put the ledger back; a new one would forget what was spent. New people need a new place",
    )


def guards_changed(problem: str) -> LedgerError:
    """Return the refusal for a ledger whose database would let entries be changed."""
    return LedgerError(
        "CV-L067",
        problem,
        expected="the tables, indexes and triggers that the ledger was made with",
        got="others",
        fix="find out who changed them; run `counterveil ledger verify --full` with a head that you noted",
    )


def wrong_anchor(got: str) -> LedgerError:
    """Return the refusal for an anchor whose place cannot be written down."""
    return LedgerError(
        "CV-L068",
        "this cannot be an anchor",
        expected="a file, a folder, or a PostgreSQL URL without a password",
        got=got,
        fix="the place is written into the ledger, so keep the password in PostgreSQL's password file",
    )

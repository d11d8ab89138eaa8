"""Damage, tampering and failing disks: what `verify` finds and what every operation refuses."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from counterveil.accounting import Uses, open_ledger
from counterveil.accounting.accounts import GENESIS, canonical, digest
from counterveil.accounting.checkpoint import FileCheckpoint
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))


def spend(ledger, request_id, charge=TENTH):
    ledger.settle(
        ledger.reserve("trial", request_id, charge, uses=USES, fingerprint="f", description={}), "1"
    )


@pytest.fixture
def path(tmp_path):
    """A ledger with 1 register, 4 reserve and 4 settle entries."""
    place = tmp_path / "ledger.db"
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(1))
        for number in range(4):
            spend(ledger, f"r{number}")
    return place


def without_guards(path, *statements, put_back=True):
    """Do what somebody with access to the file could do."""
    with sqlite3.connect(path) as database:
        guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            database.execute(f"DROP TRIGGER {name}")
        for statement, *values in statements:
            database.execute(statement, values)
        for _, guard in guards if put_back else []:
            database.execute(guard)
    database.close()


def rewrite(path, change, *, rehash):
    """Change entries and, if told, recompute the chain as a careful forger would."""
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT seq, body FROM entries ORDER BY seq").fetchall()
    database.close()
    statements, previous, registered = [], GENESIS, ""
    if rehash:
        path.with_name(path.name + ".checkpoint").unlink()  # a forger of every place at once
    for seq, body in found:
        facts = json.loads(body)
        facts = change(seq, facts) or facts
        if rehash and "registered" in facts:
            facts["registered"] = registered
        changed = canonical(facts)
        new_hash = digest(previous, changed)
        registered = new_hash if seq == 1 else registered
        if rehash:
            statements.append(
                (
                    "UPDATE entries SET body = ?, previous = ?, hash = ? WHERE seq = ?",
                    changed,
                    previous,
                    new_hash,
                    seq,
                )
            )
        elif changed != body:
            statements.append(("UPDATE entries SET body = ? WHERE seq = ?", changed, seq))
        previous = new_hash
    without_guards(path, *statements)


def report(path, **options):
    with open_ledger(path, inspect=True) as ledger:
        return ledger.verify(**options)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}' WHERE seq = 2",
        "DELETE FROM entries WHERE seq = 9",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT seq, kind, dataset, request_id, name, '{}', previous, hash "
        "FROM entries WHERE seq = 2",
        "INSERT OR REPLACE INTO entries SELECT 10, kind, dataset, request_id, name, '{}', previous, hash "
        "FROM entries WHERE seq = 2",
        "INSERT INTO entries SELECT 12, kind, dataset, 'new', name, body, previous, hash "
        "FROM entries WHERE seq = 2",
    ],
)
def test_the_database_itself_refuses_changes(path, statement):
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(statement)
    database.close()
    assert report(path).ok


@pytest.mark.parametrize("seq", range(1, 10))
def test_any_edited_entry_is_named(path, seq):
    rewrite(path, lambda at, facts: facts | {"at": "2000-01-01"} if at == seq else None, rehash=False)
    found = report(path)
    assert found.problem == f"entry {seq}: its hash does not match its content"
    assert (found.problem_seq, found.entries) == (seq, seq - 1)


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_removed_entry_is_noticed(path, seq):
    without_guards(path, ("DELETE FROM entries WHERE seq = ?", seq))
    assert report(path).problem == f"entry {seq + 1}: entry {seq} is missing before it"


def test_removed_guards_are_noticed(path):
    without_guards(path, put_back=False)
    assert "triggers were removed" in report(path).problem
    with pytest.raises(LedgerError, match="CV-L067"):
        open_ledger(path)


def test_a_changed_column_is_noticed(path):
    without_guards(path, ("UPDATE entries SET request_id = 'other' WHERE seq = 4",))
    assert report(path).problem == "entry 4: its columns do not match its content"


def forged(name):
    """A careful forger recomputes the hashes; totals and order still have to make sense."""

    def change(seq, facts):
        if name == "cheaper" and seq == 4:
            return facts | {"cost": facts["cost"] | {"epsilon": "1/100"}}
        if name == "total" and seq == 4:
            return facts | {"total": facts["total"] | {"epsilon": "1/100"}}
        if name == "count" and seq == 4:
            return facts | {"requests": 1}
        if name == "budget" and seq == 1:
            return facts | {"budget": {"epsilon": "1/4", "delta": "0"}}
        if name == "fingerprint" and seq == 5:
            return facts | {"fingerprint": "g"}
        if name == "nonsense" and seq == 4:
            return facts | {"charge": {"face": {"epsilon": "1/0", "delta": "0"}, "events": []}}
        if name == "missing" and seq == 4:
            return {key: value for key, value in facts.items() if key != "charge"}
        if name == "event" and seq == 4:
            events = {"face": facts["charge"]["face"], "events": [{"kind": "magic"}]}
            return facts | {"charge": events}
        return None

    return change


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("cheaper", "entry 4: its cost is not that of its charge"),
        ("total", "entry 4: its running total is wrong"),
        ("count", "entry 4: its running total is wrong"),
        ("budget", "entry 6: it overspends the budget"),
        ("fingerprint", "entry 5: its fingerprint is not that of its reservation"),
        ("nonsense", "entry 4: its content is invalid"),
        ("missing", "entry 4: its content is invalid (KeyError)"),
        ("event", "entry 4: its content is invalid"),
    ],
)
def test_recomputed_hashes_do_not_hide_wrong_sums(path, name, problem):
    rewrite(path, forged(name), rehash=True)
    assert problem in report(path).problem


def test_a_forged_gaussian_limit_is_noticed(tmp_path):
    place = tmp_path / "signals.db"
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(1, 1e-6), rule="gaussian")
    rewrite(place, lambda _, facts: facts | {"limit": "7"}, rehash=True)
    assert report(place).problem == "entry 1: its mu is worth more than its budget"


def test_a_cut_tail_without_an_checkpoint_shows_only_against_a_noted_head(path):
    with open_ledger(path) as ledger:
        noted, checkpoint = ledger.head_hash(), Path(ledger.checkpoints[0])
        ledger.check_contains(*ledger.last_entry())
    kept = checkpoint.read_bytes()
    without_guards(path, ("DELETE FROM entries WHERE seq > 7",))
    assert "lost entries" in report(path).problem
    with pytest.raises(LedgerError, match="CV-L060"):
        open_ledger(path)
    with sqlite3.connect(path) as database:
        (head_hash,) = database.execute("SELECT hash FROM entries WHERE seq = 7").fetchone()
    database.close()
    mark = FileCheckpoint(checkpoint).read()
    checkpoint.unlink()
    FileCheckpoint(checkpoint).create(replace(mark, seq=7, hash=head_hash))
    assert report(path).ok  # whoever puts back both places shows nothing from inside
    checkpoint.write_bytes(kept)
    assert "noted head hash is missing" in report(path, head_hash=noted).problem


def test_a_noted_head_stays_in_the_chain_as_it_grows(path):
    with open_ledger(path) as ledger:
        noted = ledger.head_hash()
        spend(ledger, "later")
        assert ledger.verify(head_hash=noted).ok
        assert ledger.verify(head_hash=GENESIS).ok


def test_spending_on_a_damaged_entry_stops(path):
    rewrite(path, lambda at, facts: facts | {"requests": 0} if at == 8 else None, rehash=False)
    with pytest.raises(LedgerError, match="CV-L016"):
        open_ledger(path)


def test_a_full_disk_spends_nothing_and_says_so(path):
    with open_ledger(path) as ledger:
        pages = ledger._store._run("PRAGMA page_count")[0][0]
        ledger._store._run(f"PRAGMA max_page_count = {pages}")
        large = {"note": "x" * 100_000}
        with pytest.raises(LedgerError, match="CV-L009"):
            ledger.reserve("trial", "r9", TENTH, uses=USES, fingerprint="f", description=large)
        assert ledger.account("trial").requests == 4
        ledger._store._run("PRAGMA max_page_count = 1000000")
        spend(ledger, "r9")
        assert ledger.verify().ok


def test_a_ledger_of_the_future_is_not_touched(path):
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LedgerError, match="CV-L003"):
        open_ledger(path)


def test_a_busy_ledger_says_so(path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with open_ledger(path) as ledger:
        ledger._store._run("PRAGMA busy_timeout = 20")
        with pytest.raises(LedgerError, match="CV-L010"):
            spend(ledger, "r9")
        assert ledger.account("trial").requests == 4  # reading needs no turn
        holder.execute("ROLLBACK")
        spend(ledger, "r9")
    holder.close()


def test_a_replaced_file_is_not_written(path, tmp_path):
    with open_ledger(path) as ledger:
        copy = tmp_path / "copy.db"
        copy.write_bytes(path.read_bytes())
        copy.replace(path)
        with pytest.raises(LedgerError, match="CV-L019"):
            spend(ledger, "r9")

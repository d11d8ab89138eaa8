"""Finding C10: an older copy, a cut tail, a swapped file or a missing log brought spent budget back, unseen."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction

import pytest
from tests.command_line import asked

import counterveil as cv
from counterveil.accounting import Uses, open_ledger
from counterveil.errors import CounterveilError, LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

THIRD = Charge(Budget("1/3"), (PureEvent(Fraction(1, 3)),))


def spend(place, request_id, **options):
    with open_ledger(place, **options) as ledger:
        kept = ledger.reserve("trial", request_id, THIRD, uses=USES, fingerprint="f", description={})
        ledger.settle(kept, "1")


@pytest.fixture
def book(tmp_path):
    place = tmp_path / "ledger.db"
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(1))
    spend(place, "first")
    return place


def refused(place, code, **options):
    with pytest.raises(LedgerError, match=code):
        spend(place, "stolen", **options)


def test_an_older_copy(book, tmp_path):
    shutil.copy(book, tmp_path / "old.db")
    for name in ("second", "third"):
        spend(book, name)
    shutil.copy(tmp_path / "old.db", book)
    refused(book, "CV-L060")
    # Shown for what it is, not as an account with budget left.
    shown = asked("ledger", "show", book)
    assert shown.output.startswith("THIS LEDGER CANNOT BE CHARGED: CV-L060")
    assert shown.exit_code == LedgerError.exit_code


def test_a_cut_tail(book):
    spend(book, "second")
    with sqlite3.connect(book) as database:
        guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            database.execute(f"DROP TRIGGER {name}")
        database.execute("DELETE FROM entries WHERE seq > 3")
        for _, guard in guards:
            database.execute(guard)
    database.close()
    refused(book, "CV-L060")


def test_a_swapped_file(book, tmp_path):
    other = tmp_path / "other.db"
    with open_ledger(other, create=True) as ledger:
        ledger.register("trial", Budget(1))
    shutil.copy(other, book)
    refused(book, "CV-L061")


def test_a_log_that_was_left_behind_after_a_kill(book, tmp_path):
    program = (
        "import os, signal, sys\n"
        "from fractions import Fraction\n"
        "from counterveil.accounting import Uses, open_ledger\n"
        "from counterveil.privacy import Budget, Charge, PureEvent, Unit\n"
        "USES = Uses(Unit.OUTCOME, 'ate', 'mean', 'treated', 'relapse')\n"
        "ledger = open_ledger(sys.argv[1])\n"
        "price = Charge(Budget('1/3'), (PureEvent(Fraction(1, 3)),))\n"
        "kept = ledger.reserve('trial', 'second', price, uses=USES, fingerprint='f', description={})\n"
        "ledger.settle(kept, '1')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(book)], check=False)
    assert done.returncode == -signal.SIGKILL
    log = book.with_name("ledger.db-wal")
    assert log.stat().st_size > 0
    for each in (log, book.with_name("ledger.db-shm")):
        each.rename(tmp_path / f"away-{each.name}")
    refused(book, "CV-L060")
    for each in tmp_path.glob("away-*"):
        each.replace(book.with_name(each.name.removeprefix("away-")))
    spend(book, "third")
    with open_ledger(book) as ledger:
        assert ledger.account("trial").remaining.epsilon == 0


def test_a_file_is_whole_without_its_log_after_it_was_closed(book, tmp_path):
    with open_ledger(book) as other:
        spend(book, "second")
        copy = tmp_path / "copied" / "ledger.db"
        copy.parent.mkdir()
        for name in ("ledger.db", "ledger.db.head"):
            shutil.copy(book.with_name(name), copy.with_name(name))
        assert other.account("trial").requests == 2
    with open_ledger(copy) as ledger:
        assert ledger.account("trial").requests == 2
        assert ledger.verify().ok


def test_a_deleted_ledger_is_not_made_anew(book):
    book.unlink()
    with pytest.raises(LedgerError, match="CV-L064"):
        open_ledger(book, create=True)


def test_a_session_makes_no_ledger_by_the_way(tmp_path):
    trial = {"t": [0, 1] * 20, "y": [0, 1] * 20}
    study = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    with pytest.raises(LedgerError, match="CV-L001"):
        cv.Session(trial, study, budget=Budget(1), ledger=tmp_path / "ledger.db")
    assert list(tmp_path.iterdir()) == []


def test_a_removed_anchor_does_not_help(book):
    book.with_name("ledger.db.head").unlink()
    refused(book, "CV-L062")


def test_both_files_put_back_are_noticed_by_an_anchor_elsewhere(tmp_path):
    place, safe, old = tmp_path / "ledger.db", tmp_path / "safe", tmp_path / "old"
    safe.mkdir()
    with open_ledger(place, create=True, anchor=safe) as ledger:
        ledger.register("trial", Budget(1))
    old.mkdir()
    for name in ("ledger.db", "ledger.db.head"):
        shutil.copy(tmp_path / name, old / name)
    spend(place, "first")
    for name in ("ledger.db", "ledger.db.head"):
        shutil.copy(old / name, tmp_path / name)
    refused(place, "CV-L060")
    (safe_file,) = safe.iterdir()
    safe_file.unlink()
    refused(place, "CV-L062")


def test_a_swapped_pair_is_noticed_by_an_anchor_that_the_caller_names(tmp_path, book, monkeypatch):
    named = tmp_path / "named"
    named.mkdir()
    with open_ledger(book) as ledger:
        ledger.add_anchor(str(named))
    spend(book, "second", anchor=named)
    other = tmp_path / "other.db"
    with open_ledger(other, create=True) as ledger:
        ledger.register("trial", Budget(1))
    for suffix in ("", ".head"):
        shutil.copy(f"{other}{suffix}", f"{book}{suffix}")
    refused(book, "CV-L062", anchor=named)
    monkeypatch.setenv("COUNTERVEIL_ANCHOR", str(named))
    refused(book, "CV-L062")


def test_a_copy_made_by_the_backup_command_takes_no_spends(book, tmp_path):
    with open_ledger(book) as ledger:
        ledger.backup(tmp_path / "copy.db")
        with pytest.raises(CounterveilError):
            ledger.backup(tmp_path / "copy.db")
    refused(tmp_path / "copy.db", "CV-L062")
    with open_ledger(tmp_path / "copy.db", inspect=True) as copy:
        assert copy.account("trial").requests == 1
        assert copy.verify().entries == 3

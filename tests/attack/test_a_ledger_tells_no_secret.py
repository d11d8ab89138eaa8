"""A ledger prints no password (C12), tells no time (B7), names who asked (B5), and costs the same when long (C11)."""

import json
import os
import pwd
import re
import shutil
import tempfile
import traceback
from fractions import Fraction
from pathlib import Path

import pytest
from tests.command_line import said

import counterveil as cv
from counterveil.accounting import Answered, Uses, open_ledger
from counterveil.accounting import accounts as accounts_module
from counterveil.accounting.sql_store import Store
from counterveil.cli.requests import charging
from counterveil.data import Range, Study
from counterveil.errors import CounterveilError, LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")
TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))
ADDRESSES = [
    "postgresql://steward:s3cret!pw@127.0.0.1:notaport/ledger",
    "postgresql://steward:s3cret!pw@127.0.0.1:1/ledger?nonsense=1",
    "postgresql://steward:x@s3cret!pw@127.0.0.1:1/ledger",
    "postgresql://steward:s3cret!pw@[127.0.0.1:1/ledger",
    "postgresql://127.0.0.1:1/ledger?password=s3cret!pw&port=x",
    "postgresql:/steward:s3cret!pw@127.0.0.1/ledger",
    "POSTGRESQL://steward:s3cret!pw@127.0.0.1:1/ledger",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("as_checkpoint", [False, True])
def test_no_part_of_a_password_is_printed(address, as_checkpoint, tmp_path):
    pytest.importorskip("psycopg")
    place, options = (tmp_path / "new.db", {"checkpoint": address}) if as_checkpoint else (address, {})
    try:
        open_ledger(place, create=as_checkpoint, **options).close()
        text = ""
    except CounterveilError as error:
        text = str(error) + repr(error.to_dict()) + "".join(traceback.format_exception(error))
    # The lines of this test that a traceback quotes do not hold the address.
    assert "s3cret" not in text


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(tmp_path / "ledger.db", create=True) as book:
        book.register("trial", Budget(1))
        yield book


def ask(ledger):
    return ledger.reserve("trial", "r", TENTH, uses=USES, fingerprint="f", description={})


def test_an_answer_that_could_not_be_kept_is_asked_for_again(ledger):
    kept = ask(ledger)
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError) as caught:
        ledger.settle(kept, '{"estimate": 1}')
    assert caught.value.code == "CV-L065"
    assert "same request id" in caught.value.fix
    ledger._store._run("PRAGMA query_only = 0")
    # What the advice says: the same request goes on, at no further charge.
    assert ask(ledger) == kept
    assert ledger.settle(kept, '{"estimate": 1}') == {"estimate": 1}
    assert ledger.account("trial").spent.epsilon == Fraction(1, 10)
    assert ledger.verify().ok


def test_settling_again_with_the_same_answer_is_a_way_too(ledger):
    kept = ask(ledger)
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="CV-L065"):
        ledger.settle(kept, "1")
    ledger._store._run("PRAGMA query_only = 0")
    assert ledger.settle(kept, "1") == 1
    assert ask(ledger) == Answered("1")


def test_a_failed_reservation_can_be_asked_again(ledger):
    ledger._store._run("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="CV-L009") as caught:
        ask(ledger)
    assert "same request id" in caught.value.fix
    ledger._store._run("PRAGMA query_only = 0")
    ask(ledger)
    assert ledger.account("trial").spent.epsilon == Fraction(1, 10)


def test_an_answer_leaves_only_after_the_checkpoint_has_moved(tmp_path, monkeypatch):
    from counterveil.accounting.accounts import checkpoint_failed
    from counterveil.accounting.checkpoint import FileCheckpoint

    def full(checkpoint, mark):
        raise checkpoint_failed(checkpoint.place, "No space left on device")

    with open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("trial", Budget(1))
        kept = ask(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(FileCheckpoint, "advance", full)
            with pytest.raises(LedgerError, match="CV-L065"):
                ledger.settle(kept, "1")
            with pytest.raises(LedgerError, match="CV-L063"):
                ask(ledger)
        assert ask(ledger) == Answered("1")
        seq, head = ledger.last_entry()
    mark = FileCheckpoint(tmp_path / "ledger.db.checkpoint").read()
    assert (mark.seq, mark.hash) == (seq, head)


DATA = {"treated": [0, 1] * 20, "relapse": [0, 1, 1, 0] * 10}
STUDY = cv.Study("treated", cv.Outcome("relapse", (0, 1)), assignment=cv.Trial())


@pytest.fixture
def stepping_clock(monkeypatch):
    """A clock that goes on by 40 ms whenever it is read."""
    real = accounts_module.datetime

    class Clock(real):
        steps = 0

        @classmethod
        def now(cls, zone=None):
            cls.steps += 1
            return real(2026, 5, 1, 12, 0, 0, 40_000 * cls.steps, tzinfo=zone)

    monkeypatch.setattr(accounts_module, "datetime", Clock)


def test_entries_carry_a_day_and_settling_the_day_of_reserving(tmp_path, stepping_clock):
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(3), access_policy=cv.drafting.AccessPolicy(public=["treated"]))
        cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=book)
        times = [entry.facts["at"] for entry in book.entries()]
    # The account, the request, its two releases and its answer.
    assert len(times) == 5
    assert all(re.fullmatch(r"2026-05-01", time) for time in times)


def test_an_answer_after_midnight_carries_the_day_of_its_reservation(tmp_path, monkeypatch):
    real = accounts_module.datetime
    days = iter([1, 1, 2, 2, 2, 2])

    class Clock(real):
        @classmethod
        def now(cls, zone=None):
            return real(2026, 5, next(days), tzinfo=zone)

    monkeypatch.setattr(accounts_module, "datetime", Clock)
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(3), access_policy=cv.drafting.AccessPolicy(public=["treated"]))
        cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=book)
        reserved, *later = (entry.facts["at"] for entry in book.entries()[1:])
    assert later == [reserved] * 3


def askers(place):
    with cv.open_ledger(place) as book:
        return [entry.facts["asked_by"] for entry in book.entries()]


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "book.db"
    with cv.open_ledger(path, create=True) as book:
        book.register("people", cv.Budget(3), access_policy=cv.drafting.AccessPolicy(public=["treated"]))
    return path


def test_the_user_of_the_operating_system_unless_a_name_is_given(place, monkeypatch):
    monkeypatch.setenv("USER", "somebody else")
    monkeypatch.setenv("LOGNAME", "somebody else")
    user = pwd.getpwuid(os.getuid()).pw_name
    cv.ate(DATA, STUDY, protects="outcome", epsilon=1, ledger=place)
    with cv.Session(DATA, STUDY, ledger=place, analyst="Ada") as session:
        session.ate(protects="outcome", epsilon=1)
    # The account; of each request its reservation, two releases and its answer.
    assert askers(place) == [user] * 5 + ["Ada"] * 4


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31mred", "x" * 201, " Ada"])
def test_a_name_is_printable_and_short(place, name):
    session = cv.Session(DATA, STUDY, ledger=place, analyst=name)
    with session, pytest.raises(cv.CounterveilError, match="CV-L011"):
        session.ate(protects="outcome", epsilon=1)


def test_the_command_line_passes_a_name_on(place, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    (tmp_path / "trial.csv").write_text("treated,relapse\n" + "0,0\n1,1\n0,1\n1,0\n" * 10)
    words = ["estimate", tmp_path / "trial.csv", "--study", tmp_path / "study.toml", "--epsilon", 1]
    said(*words, "--protects", "outcome", "--ledger", place, "--analyst", "Ada")
    assert askers(place)[1:] == ["Ada"] * 4


PRICE = Charge(Budget("1e-6"), (PureEvent(Fraction(1, 10**6)),))
# Entries that an opening looks at however long the ledger is: links, hashes, and the moving stretch.
SHORT, LONG = 800, 2400


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """Two ledgers, one three times as long as the other; all requests belong to one study."""
    folder, made = tmp_path_factory.mktemp("books"), {}
    for entries in (SHORT, LONG):
        made[entries] = folder / f"{entries}.db"
        with open_ledger(made[entries], create=True) as ledger:
            ledger.register("records", Budget(3))
            ledger._store._run("PRAGMA synchronous = OFF")
            for number in range(entries // 2):
                kept = ledger.reserve(
                    "records", f"study@{number}", PRICE, uses=USES, fingerprint="f", description={}
                )
                ledger.settle(kept, "1")
    return made


def rows_read(monkeypatch, action):
    """Return how many entries an action takes from the database."""
    count, real = 0, Store._rows

    def counting(self, where, *values):
        nonlocal count
        found = real(self, where, *values)
        count += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_rows", counting)
        action()
    return count


def charge_by_name(place):
    with charging(str(place), "records", "study@7") as charged:
        assert charged.answered_before


def spend(place):
    with open_ledger(place) as ledger:
        ledger.settle(
            ledger.reserve("records", "study@new", PRICE, uses=USES, fingerprint="f", description={}), "1"
        )


@pytest.mark.parametrize("action", [charge_by_name, spend])
def test_a_command_reads_as_many_entries_in_a_long_ledger_as_in_a_short_one(monkeypatch, books, action):
    short, long = (rows_read(monkeypatch, lambda size=size: action(books[size])) for size in (SHORT, LONG))
    assert long <= short + 2
    assert long < LONG // 2


def test_a_site_looks_a_study_up_and_reads_no_list(monkeypatch, books):
    from counterveil.federation.site import Site

    site = object.__new__(Site)
    site.file = type("File", (), {"dataset": "records"})()
    read = {}
    for size in (SHORT, LONG):
        site.file.ledger = str(books[size])
        spent = []
        read[size] = rows_read(monkeypatch, lambda spent=spent: spent.append(site._spent("study")))
        assert spent[0] >= Fraction(size // 2, 10**6)
    assert read[LONG] <= read[SHORT] + 2


class Name(str):
    """A column name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_declaration_of_many_covariates_is_checked_in_linear_time():
    count = 3000
    covariates = {Name(f"column {number}"): Range(0, 1) for number in range(count)}
    Name.compared = 0
    Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), covariates=covariates)
    assert Name.compared < 20 * count


READ_ONLY_STUDY = cv.Study(treatment="arm", outcome=cv.Outcome("score", (0, 10)), assignment=cv.Trial())
PEOPLE = {
    "arm": [read_only_place % 2 for read_only_place in range(40)],
    "score": [read_only_place % 11 for read_only_place in range(40)],
}
NOBODY = 65534


@pytest.fixture
def read_only_place():
    # Not in pytest's folder, into which others may not look.
    folder = Path(tempfile.mkdtemp(prefix="read-only-"))
    with cv.open_ledger(folder / "ledger.db", create=True) as ledger:
        ledger.register("people", cv.Budget(10), access_policy=cv.drafting.AccessPolicy(public=["arm"]))
        cv.ate(PEOPLE, READ_ONLY_STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people")
    yield folder / "ledger.db"
    folder.chmod(0o700)
    shutil.rmtree(folder)


def without_rights(read_only_place, work):
    """Return what a function says to somebody who may read the ledger's folder and not write to it."""
    for file in read_only_place.parent.iterdir():
        file.chmod(0o444)
    read_only_place.parent.chmod(0o555)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = ["failed"]
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            said = work()
        except CounterveilError as error:
            said = [error.code]
        finally:
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said


def inspected(read_only_place):
    with cv.open_ledger(read_only_place, inspect=True) as ledger:
        report = ledger.verify(full=True)
        return [
            report.ok,
            report.entries,
            str(ledger.datasets()[0].spent.epsilon),
            len(list(ledger.entries())),
        ]


def test_it_can_be_shown_and_verified(read_only_place):
    expected = inspected(read_only_place)
    assert expected[0] is True
    assert without_rights(read_only_place, lambda: inspected(read_only_place)) == expected


def test_spending_from_it_is_refused(read_only_place):
    def spend():
        with cv.open_ledger(read_only_place) as ledger:
            cv.ate(PEOPLE, READ_ONLY_STUDY, protects="outcome", epsilon=1, ledger=ledger, dataset="people")
        return ["answered"]

    before = read_only_place.read_bytes()
    assert without_rights(read_only_place, spend) == ["CV-L009"]
    assert read_only_place.read_bytes() == before


def test_entries_that_lie_in_a_log_are_not_overlooked(read_only_place):
    # The file alone would show less than was spent.
    read_only_place.with_name("ledger.db-wal").write_bytes(b"x" * 32)
    assert without_rights(read_only_place, lambda: inspected(read_only_place)) == ["CV-L009"]

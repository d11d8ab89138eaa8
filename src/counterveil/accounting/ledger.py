"""The ledger: opening, spending, verification, and the checkpoints that hold the hash of its newest entry."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import urlsplit

from counterveil.accounting import accounts as refusals
from counterveil.accounting.access_policy import AccessPolicy, Uses, names, quoted
from counterveil.accounting.accounts import (
    GENESIS,
    ChainEnd,
    Standing,
    account_of,
    account_remarks,
    canonical,
    check_arm,
    check_missing,
    check_offer,
    check_order,
    check_request,
    check_rows,
    check_same,
    check_study,
    cut_off,
    damaged,
    differences,
    digest,
    entry_of,
    fault,
    newest_requests,
    opening_entry,
    other_ledger,
    read_access_policy,
    read_entry,
    read_total,
    registration_of,
    study_after,
    study_of,
    study_spent,
    study_total,
    system_user,
    totals_after,
    unseal,
)
from counterveil.accounting.checkpoint import FileCheckpoint, Mark
from counterveil.accounting.composition import GaussianRule, Levels, Totals, check_charge, limit_holds
from counterveil.accounting.records import Account, Answered, Posting, Reservation, Row, VerifyReport
from counterveil.accounting.sql_store import MemoryStore, SqliteStore, Store, create_file
from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.errors import CounterveilError, LedgerError, refusal
from counterveil.privacy import Budget, Charge, Unit

if TYPE_CHECKING:
    from counterveil.accounting.postgres_store import ServerCheckpoint

    Checkpoint: TypeAlias = FileCheckpoint | ServerCheckpoint

SERVER = ("postgresql://", "postgres://")
# Names a second place for every ledger that a process opens, where no other is named.
VARIABLE = "COUNTERVEIL_CHECKPOINT"
_SUFFIX = ".checkpoint"


class Checkpoints:
    """All checkpoints of a ledger; each of them must agree before anything is spent."""

    def __init__(self, ledger: str, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self.ledger = ledger
        self._checkpoints = list(checkpoints)
        self._behind = False

    def add(self, checkpoint: Checkpoint) -> None:
        """Take one more checkpoint."""
        self._checkpoints.append(checkpoint)

    def create(self, mark: Mark) -> None:
        """Put down the mark wherever there is none yet, beside the file last."""
        for checkpoint in reversed(self._checkpoints):
            checkpoint.create(mark)

    def marks(self) -> list[Mark]:
        """Return what all checkpoints hold; read it before a view of the ledger is opened, which may be older."""
        return [self._mark(checkpoint) for checkpoint in self._checkpoints]

    def check(self, store: Store, marks: list[Mark], last: Row | None) -> None:
        """Raise unless the ledger, whose newest entry is `last`, holds the entries that the checkpoints hold."""
        self._behind = any(last is None or mark.seq < last.seq for mark in marks)
        for mark in marks:
            check_contains(store, mark.seq, mark.hash)
            if mark.checked_seq:
                check_contains(store, mark.checked_seq, mark.checked_hash)

    def advance(self, seq: int, head_hash: str, *, appended: bool) -> None:
        """Move all checkpoints to the ledger's newest entry, those too that a crash left behind."""
        if appended or self._behind:
            for checkpoint in self._checkpoints:
                checkpoint.advance(Mark(self.ledger, seq, head_hash))
            self._behind = False

    def note_checked(self, seq: int, head_hash: str) -> None:
        """Write down that the ledger was verified up to an entry."""
        for checkpoint in self._checkpoints:
            checkpoint.advance(Mark(self.ledger, seq, head_hash, checked_seq=seq, checked_hash=head_hash))

    def places(self) -> list[str]:
        """Return where the checkpoints are, for people."""
        return [checkpoint.place for checkpoint in self._checkpoints]

    def close(self) -> None:
        """Close connections."""
        for checkpoint in self._checkpoints:
            checkpoint.close()

    def _mark(self, checkpoint: Checkpoint) -> Mark:
        mark = checkpoint.read()
        if mark is None:
            raise refusal("CV-L062", place=checkpoint.place)
        if mark.ledger != self.ledger:
            raise other_ledger(self.ledger, mark.ledger)
        return mark


def checked(marks: list[Mark]) -> tuple[int, str] | None:
    """Return the entry up to which the ledger was verified, None unless every checkpoint knows one."""
    known = [(mark.checked_seq, mark.checked_hash) for mark in marks if mark.checked_seq]
    return min(known) if known and len(known) == len(marks) else None


def check_contains(store: Store, seq: int, head_hash: str) -> None:
    """Raise CV-L060 unless entry `seq` of the ledger is whole and has this hash."""
    row = store.at(seq)
    if row is None or row.hash != head_hash:
        raise cut_off(seq, head_hash)
    unseal(row)


def beside(path: Path) -> FileCheckpoint:
    """Return the checkpoint that every ledger in a file has beside it."""
    whole = path.resolve()
    return FileCheckpoint(whole.with_name(whole.name + _SUFFIX))


def checkpoint_at(place: str, ledger: str) -> Checkpoint:
    """Return the checkpoint at a place: a PostgreSQL URL, a file, or a folder that holds one file a ledger."""
    if place.startswith(SERVER):
        if importlib.util.find_spec("psycopg") is None:
            raise refusal("CV-E010")
        from counterveil.accounting.postgres_store import ServerCheckpoint

        return ServerCheckpoint(place, ledger)
    path = Path(place)
    return FileCheckpoint(path / f"{ledger}{_SUFFIX}" if path.is_dir() else path)


def recorded(place: str) -> str:
    """Return a place as it is written into the ledger, so that it is found from everywhere; secrets are refused."""
    if not place or "\0" in place:
        raise refusal("CV-L068", got="an empty path, or one with a NUL character")
    # A mistyped address would become a file name, with its password in it.
    if not place.startswith(SERVER) and re.match(r"[A-Za-z][A-Za-z0-9+.]+:/", place):
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL")
    if not place.startswith(SERVER):
        return str(Path(place).resolve())
    try:
        secret = urlsplit(place).password is not None or "password=" in place.lower()
    except ValueError:
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL") from None
    if secret:
        raise refusal("CV-L068", got="an address with a password in it")
    return place


def check_never_used(path: Path, checkpoint: str | None) -> None:
    """Raise CV-L064 where a checkpoint shows that a ledger was here which is gone."""
    files = [beside(path)]
    if checkpoint is not None and not checkpoint.startswith(SERVER) and not Path(checkpoint).is_dir():
        files.append(FileCheckpoint(Path(checkpoint)))
    for each in files:
        # A file is made before its checkpoint, so one that another process makes just now is there by this time.
        if os.path.lexists(each.place) and not path.exists():
            raise refusal("CV-L064", place=each.place)


# Checking a ledger from its first entry to its last: hashes, order, totals and budgets.
#
# Everything is recomputed from the charges; nothing that an entry says about itself is trusted.


@dataclass(slots=True)
class _Book:
    """What is known of one data set after the entries read so far."""

    levels: Levels
    totals: Totals
    access_policy: AccessPolicy | None
    # Whether the access policy is that of the registration; else the first request fixes it.
    policy_registered: bool
    # The hash of the entry that registered it.
    registered: str
    # What was published before the first request, and by how many entries.
    published: tuple[str, ...] = ()
    publications: int = 0
    # The number of its newest reserve entry among those that were read.
    newest: int | None = None
    # Request id -> (fingerprint, whether it is settled).
    seen: dict[str, tuple[str, bool]] = field(default_factory=dict)
    # Request id and name of what was released.
    released: set[tuple[str, str]] = field(default_factory=set)
    # Study -> what its requests cost together.
    studies: dict[str, tuple[Fraction, Fraction]] = field(default_factory=dict)


class Past:
    """What the entries up to `start` say, looked up where it is needed; each of them is checked against its hash."""

    def __init__(self, store: Store | None = None, start: int = 0) -> None:
        self._store = store
        self._start = start
        self.books: dict[str, _Book] = {}

    def book(self, dataset: str) -> _Book | None:
        """Return the book of a data set, read from the past where no entry since has touched it."""
        if dataset not in self.books and self._store is not None:
            row = self._store.registration(dataset)
            if row is not None and row.seq <= self._start:
                self.books[dataset] = _registered(row, unseal(row))
                self._continue(dataset, self.books[dataset], self._store)
        return self.books.get(dataset)

    def seen(self, dataset: str, request_id: str, book: _Book) -> tuple[str, bool] | None:
        """Return the fingerprint of a request that was reserved and whether it is settled, None for a new one."""
        if request_id not in book.seen and self._store is not None:
            found = [self._store.of_request(dataset, request_id, kind) for kind in ("reserve", "settle")]
            reserved, settled = (row if row is not None and row.seq <= self._start else None for row in found)
            if reserved is not None:
                book.seen[request_id] = (str(unseal(reserved)["fingerprint"]), settled is not None)
        return book.seen.get(request_id)

    def released(self, row: Row, book: _Book) -> bool:
        """Return whether an earlier entry released something under the same name of the same request."""
        if (row.request_id, row.name) in book.released or self._store is None:
            return (row.request_id, row.name) in book.released
        old = self._store.of_request(row.dataset, row.request_id, "release", row.name)
        return old is not None and old.seq <= self._start

    def study(self, dataset: str, study: str, book: _Book) -> tuple[Fraction, Fraction]:
        """Return what a study was charged so far."""
        if study not in book.studies and self._store is not None:
            book.studies[study] = study_spent(self._store, dataset, study, self._start + 1)
        return book.studies.get(study, (Fraction(0), Fraction(0)))

    def lookups_differ(self) -> str | None:
        """Return which newest entry is not the one that an index finds, None if all are."""
        for dataset, book in self.books.items():
            row = None if self._store is None else self._store.latest_reserve(dataset)
            if book.newest is not None and (row is None or row.seq != book.newest):
                return f"the newest reservation of {dataset!r} is not found"
        return None

    def _continue(self, dataset: str, book: _Book, store: Store) -> None:
        for entry in store.published(dataset):
            if entry.seq <= self._start:
                _add_published(book, unseal(entry))
        row = store.latest_reserve(dataset, self._start + 1)
        if row is not None:
            facts = unseal(row)
            book.totals = Totals.from_dict(facts)
            if not book.policy_registered:
                book.access_policy = AccessPolicy.from_dict(facts["access_policy"])


def verify_rows(
    rows: Iterable[Row],
    damage: str | None,
    head_hash: str | None,
    *,
    start: tuple[int, str] = (0, GENESIS),
    past: Past | None = None,
) -> VerifyReport:
    """Return the report on `rows`; `damage` is the database's own finding, `head_hash` one noted before.

    Rows that begin later than the first need `start`, the number and hash of the entry before them, and their `past`.
    """
    past = Past() if past is None else past
    seq, previous = start
    found_head = head_hash in (None, GENESIS, previous)
    for row in rows:
        problem = _problem(row, seq + 1, previous, past)
        if problem is not None:
            return VerifyReport(seq, previous, f"entry {row.seq}: {problem}", row.seq)
        seq, previous = row.seq, row.hash
        found_head = found_head or row.hash == head_hash
    if not found_head:
        return VerifyReport(seq, previous, "the noted head hash is missing: entries were deleted or replaced")
    return VerifyReport(seq, previous, damage)


def _problem(row: Row, seq: int, previous: str, past: Past) -> str | None:
    """Return what is wrong with one entry in its place, None if nothing is; update the books."""
    if row.seq != seq:
        return f"entry {seq} is missing before it"
    problem = fault(row)
    if problem is not None:
        return problem
    if row.previous != previous:
        return "it does not follow the entry before it"
    facts = unseal(row)
    try:
        if row.kind == "register":
            return _register(row, facts, past)
        book = past.book(row.dataset)
        if book is None:
            return f"data set {row.dataset!r} was not registered before"
        if row.kind == "publish":
            return _publish(row, facts, book)
        if row.kind == "reserve":
            return _reserve(row, facts, book, past)
        if row.kind in ("release", "settle"):
            return _follow(row, facts, book, past)
    except (CounterveilError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"its content is invalid ({type(error).__name__})"
    return f"its kind {row.kind!r} is unknown"


def _register(row: Row, facts: dict[str, Any], past: Past) -> str | None:
    if past.book(row.dataset) is not None:
        return f"data set {row.dataset!r} is registered a second time"
    book = _registered(row, facts)
    for rule in (book.levels.outcome, book.levels.record):
        if isinstance(rule, GaussianRule) and not limit_holds(rule):
            return "its mu is worth more than its budget"
    past.books[row.dataset] = book
    return None


def _registered(row: Row, facts: dict[str, Any]) -> _Book:
    levels = Levels.from_dict(facts)
    access_policy = None if facts["access_policy"] is None else AccessPolicy.from_dict(facts["access_policy"])
    return _Book(levels, levels.nothing(), access_policy, access_policy is not None, row.hash)


def _publish(row: Row, facts: dict[str, Any], book: _Book) -> str | None:
    if facts["registered"] != book.registered:
        return "it names another registration of its data set"
    if book.access_policy is not None:
        return "what is public was fixed before"
    if row.request_id or row.name != str(book.publications + 1):
        return "it is not the next that makes columns public"
    if list(names(facts["public"], "public")) != facts["public"]:
        return "its columns are not in order"
    _add_published(book, facts)
    return None


def _add_published(book: _Book, facts: dict[str, Any]) -> None:
    book.published = tuple(sorted({*book.published, *facts["public"]}))
    book.publications += 1


def _reserve(row: Row, facts: dict[str, Any], book: _Book, past: Past) -> str | None:
    if past.seen(row.dataset, row.request_id, book) is not None:
        return f"request {row.request_id!r} is reserved a second time"
    if facts["registered"] != book.registered:
        return "it names another registration of its data set"
    charge = Charge.from_dict(facts["charge"])
    uses = Uses.from_dict(facts["uses"])
    access_policy = book.access_policy or AccessPolicy.of_study(
        uses, unproved=bool(facts["access_policy"]["unproved"]), published=book.published
    )
    if facts["access_policy"] != (None if book.policy_registered else access_policy.to_dict()):
        return "its access policy is not that of its account"
    try:
        check_request(access_policy, uses, charge.face, row.request_id)
    except LedgerError as refusal:
        return f"the access policy of its account does not allow it ({refusal.code})"
    cost = book.levels.cost(charge)
    totals = book.totals.after(uses.unit, cost, uses.unproved)
    if facts["cost"] != cost.to_dict():
        return "its cost is not that of its charge"
    if any(facts[name] != value for name, value in totals.to_dict().items()):
        return "its running total is wrong"
    if book.levels.exceeded(totals) is not None:
        return "it overspends the budget"
    study = study_of(row.request_id)
    if facts["study"] != study_total(past.study(row.dataset, study, book), row.request_id, charge):
        return "the running total of its study is wrong"
    if study:
        book.studies[study] = read_total(facts["study"])
    book.totals, book.access_policy, book.newest = totals, access_policy, row.seq
    book.seen[row.request_id] = (str(facts["fingerprint"]), False)
    return None


def _follow(row: Row, facts: dict[str, Any], book: _Book, past: Past) -> str | None:
    """Check a release or an answer, which follow a reservation."""
    fingerprint, settled = past.seen(row.dataset, row.request_id, book) or (None, False)
    if fingerprint is None:
        return f"request {row.request_id!r} was not reserved before"
    if settled:
        again = "settled a second time" if row.kind == "settle" else "answered before it releases this"
        return f"request {row.request_id!r} is {again}"
    if facts["fingerprint"] != fingerprint:
        return "its fingerprint is not that of its reservation"
    if row.kind == "settle":
        book.seen[row.request_id] = (fingerprint, True)
    elif past.released(row, book):
        return f"request {row.request_id!r} releases {row.name!r} a second time"
    else:
        book.released.add((row.request_id, row.name))
    return None


# What is checked whenever a ledger is opened: first entry, guards, newest entries, checkpoints; and all of it.
#
# The cost of opening does not depend on the number of entries. Older entries are left to `verify`.


# How many of the newest entries are recomputed, how many more are compared with their hashes, and how many old ones:
# a stretch that moves on with each entry, so that all are looked at again and again.
LINKS = 64
HASHED = 512
STRETCH = 128
# What a check of the whole ledger reports rather than raises.
_FOUND = ("CV-L016", "CV-L060", "CV-L061", "CV-L062", "CV-L063")


def check_opened(store: Store, checkpoints: Checkpoints) -> None:
    """Raise if a persistent ledger is not the one that its checkpoints hold, or its newest entries are damaged."""
    if store.lasting:
        marks = checkpoints.marks()
        with store.reading():
            last = store.last()
            checkpoints.check(store, marks, last)
            check_last(store, last)


def verified(store: Store, checkpoints: Checkpoints, head_hash: str | None, *, full: bool) -> VerifyReport:
    """Return the outcome of recomputing all entries, or those after the last that the checkpoints call verified."""
    marks, missing = None, None
    try:
        marks = checkpoints.marks()
    except LedgerError as error:
        missing = _found(error)
    try:
        with store.reading():
            report = _chain(store, head_hash, None if full or marks is None else checked(marks), full=full)
            if report.ok and marks is not None:
                missing = _lost(store, checkpoints, marks)
    except LedgerError as error:
        return VerifyReport(0, "", _found(error))
    return replace(report, problem=missing) if report.ok else report


def _chain(store: Store, head_hash: str | None, start: tuple[int, str] | None, *, full: bool) -> VerifyReport:
    first, problem = store.at(0), first_problem(store)
    if first is None or problem is not None:
        return VerifyReport(0, "", problem)
    seq, previous = (0, first.hash) if start is None else start
    past = Past(store, seq) if seq else None
    damage = store.damage() if full else store.guards()
    return verify_rows(store.rows(after=seq), damage, head_hash, start=(seq, previous), past=past)


def _lost(store: Store, checkpoints: Checkpoints, marks: list[Mark]) -> str | None:
    """Return what the checkpoints have against the ledger, None if nothing."""
    try:
        checkpoints.check(store, marks, store.last())
        return None
    except LedgerError as error:
        return _found(error)


def _found(error: LedgerError) -> str:
    if error.code not in _FOUND:
        raise error
    return f"{error.problem} ({error.got})"


def check_first(store: Store) -> None:
    """Raise unless the guards and the entry that opened the ledger are as they were made."""
    problem = store.guards()
    if problem is not None:
        raise refusal("CV-L067", problem=problem)
    problem = first_problem(store) or store.quick_damage()
    if problem is not None:
        raise damaged("the ledger is damaged", problem)


def first_problem(store: Store) -> str | None:
    """Return what is wrong with the entry that opened the ledger and the one that follows it, None if nothing is."""
    first, second = store.at(0), store.at(1)
    if first is None or fault(first) is not None or (first.kind, first.previous) != ("open", GENESIS):
        return "the entry that opened the ledger is missing or changed"
    if second is not None and second.previous != first.hash:
        return "entry 1: it does not follow the entry before it"
    return None


def check_last(store: Store, last: Row | None) -> None:
    """Raise CV-L016 unless the newest entries, which end with `last`, follow each other and are what lookups find."""
    start = 0 if last is None else max(0, last.seq - LINKS)
    before = store.at(start)
    if last is None or before is None:
        raise damaged("the ledger is damaged", f"entry {start} is missing")
    _check_hashes(store, max(0, start - HASHED), start)
    oldest = start - HASHED - STRETCH
    if oldest > 0:
        turn = last.seq * (STRETCH // 2) % oldest
        _check_hashes(store, turn, turn + STRETCH)
    past = Past(store, start)
    report = verify_rows(store.rows(after=start), None, None, start=(start, before.hash), past=past)
    problem = report.problem or past.lookups_differ()
    if problem is None and report.entries != last.seq:
        problem = f"entry {report.entries + 1} is missing"
    hidden = store.not_found(start)
    if problem is None and hidden is not None:
        problem = f"entry {hidden}: a search for its request does not find it"
    if problem is not None:
        raise damaged("the newest entries of the ledger are damaged", problem)


def _check_hashes(store: Store, first: int, last: int) -> None:
    """Raise CV-L016 unless the entries from one number to another are all there and each follows the one before."""
    rows = store.between(first, last)
    previous = rows[0].previous if rows else ""
    for seq, row in enumerate(rows, first):
        if row.seq != seq or row.previous != previous or digest(previous, row.body) != row.hash:
            raise damaged(
                f"entry {seq} of the ledger is damaged", "it does not match its hash, or the entry before it"
            )
        previous = row.hash
    if len(rows) != last - first + 1:
        raise damaged("the ledger is damaged", f"entry {first + len(rows)} is missing")


# The ledger: what was granted, what is spent, and every answer that was released.
#
# A request reserves its cost, stores each release as it is drawn, and settles its answer. The cost is spent once
# reserved: no refunds. Proof: session/resuming.proof.md


# What stands in place of a release where a request may draw nothing more.
_FAILED = "(failed)"
# Failures of storage, its turn or its checkpoint, that may pass: the request can be asked again.
_PASSING = ("CV-L009", "CV-L010", "CV-L063")


class Ledger:
    """An append-only record of privacy budgets, requests, releases and answers.

    `open_ledger` makes one. An account holds the total budget of one data set; the cost of each request is
    spent before anything is drawn, and a request that is repeated under its name gets the stored answer, free
    of charge. Every entry holds the hash of the one before it. A ledger serves all threads of a process and
    may be shared by processes; use it as a context manager, or call `close`.

    Parameters
    ----------
    store : Store
        Where entries are kept: a file, a server or memory.
    checkpoints : Checkpoints, optional
        Second places of the newest hash. Default: none.
    inspect : bool, default False
        Open for reading and verifying only, even if the ledger is damaged.

    See Also
    --------
    counterveil.open_ledger : Opens or makes a ledger.

    Notes
    -----
    Questions of the package call `reserve`, `release` and `settle` themselves; a mechanism of your own calls
    them as the example shows. That a draw loses no more than its charge says is then for you to prove.

    Any method can fail with CV-L009 (storage), CV-L010 (another process is writing), CV-L015 (closed, or used
    after a fork) or CV-L019 (the file was moved); nothing is released then.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> with cv.open_ledger(":memory:") as ledger:
    ...     account = ledger.register("trial", cv.Budget(epsilon=3))
    ...     result = cv.ate(
    ...         data.frame, data.study, protects="outcome", epsilon=1, ledger=ledger, dataset="trial",
    ...         noise=cv.SeededNoise(1),
    ...     )
    ...     print(ledger.account("trial").remaining)
    epsilon 2

    A release of your own:

    >>> from counterveil.accounting import Answered, Uses
    >>> from counterveil.privacy import Charge, PureEvent, Unit
    >>> price = cv.Budget(epsilon="0.5")
    >>> uses = Uses(Unit.RECORD, question="mean", method="my own", treatment="treated", outcome="age")
    >>> with cv.open_ledger(":memory:") as ledger:
    ...     account = ledger.register("trial", cv.Budget(epsilon=3))
    ...     reserved = ledger.reserve(
    ...         "trial", "mean age", Charge(price, (PureEvent(price.epsilon),)), uses=uses,
    ...         fingerprint="mean of age, 18 to 90", description={"question": "mean", "low": 18, "high": 90},
    ...     )
    ...     if not isinstance(reserved, Answered):  # spent now; what is drawn is stored before it is seen
    ...         (mean,) = ledger.release(reserved, "mean", ["18", "90"], lambda: ["41.3"])  # your mechanism
    ...         answer = ledger.settle(reserved, f'{{"mean": {mean}}}')
    ...     print(answer, ledger.account("trial").remaining)
    {'mean': 41.3} epsilon 2.5
    """

    def __init__(
        self, store: Store, checkpoints: Checkpoints | None = None, *, inspect: bool = False
    ) -> None:
        self._store = store
        self._checkpoints = Checkpoints("") if checkpoints is None else checkpoints
        self._inspect = inspect
        self._analyst = system_user()
        self._process = os.getpid()
        self._open = True
        self._turn = threading.RLock()  # one connection serves all threads of the process
        # The account that was read last, the newest entry at the time, and where the account stands.
        self._read_last: tuple[str, Row, Standing] | None = None
        if not inspect:
            check_opened(store, self._checkpoints)

    @property
    def analyst(self) -> str:
        """Who asks through this object: the user of the operating system, unless another name is set."""
        return self._analyst

    @analyst.setter
    def analyst(self, name: str) -> None:
        refusals.check_name("analyst", name)
        self._analyst = name

    def register(
        self,
        dataset: str,
        budget: Budget,
        *,
        record_budget: Budget | None = None,
        access_policy: AccessPolicy | None = None,
        rule: str | None = None,
        note: str = "",
    ) -> Account:
        """Register the total budget and the access policy of a data set.

        Neither can be changed later. The same registration once more adds nothing and gives nothing back.

        Parameters
        ----------
        dataset : str
            Name of the account: up to 200 printable characters.
        budget : Budget
            Total for all answers together.
        record_budget : Budget, optional
            The part of `budget` that answers which protect whole records may spend. Default: all of it.
        access_policy : AccessPolicy, optional
            What is public and which requests are allowed. Default: none; `publish` says what is public, and
            the first request fixes the rest.
        rule : {"sum", "gaussian"}, optional
            How costs add up. "sum": epsilons and deltas; "gaussian": mu squared of every draw, for budgets
            with a delta. Default: "sum".
        note : str, default ""
            Stored with the registration and shown with the account.

        Returns
        -------
        Account
            The account as it stands.

        Raises
        ------
        CounterveilError
            Arguments (CV-P662, CV-L011, CV-L012, CV-L047), or a registration of this name with other terms
            (CV-L005).

        Examples
        --------
        >>> import counterveil as cv
        >>> policy = cv.drafting.AccessPolicy(public=["treated", "age"], outcomes=["relapse"])
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3), access_policy=policy)
        >>> print(account.budget)
        epsilon 3
        """
        refusals.check_name("dataset", dataset)
        for granted in (budget, budget if record_budget is None else record_budget):
            if not isinstance(granted, Budget):
                raise refusal("CV-P662", got=granted)
        levels = Levels.granted(budget, record_budget, rule)
        with self._writing() as end:
            before = self._store.registration(dataset)
            own = None if access_policy is None else access_policy.to_dict()
            facts = levels.to_dict() | {"access_policy": own, "note": note, "asked_by": self._analyst}
            if before is None:
                end.append("register", dataset, "", facts)
            elif differing := differences(unseal(before), facts):
                raise refusal("CV-L005", dataset=dataset, differing="; ".join(differing))
        return self.account(dataset)

    def publish(self, dataset: str, columns: Iterable[str]) -> None:
        """Make columns of a data set public, for good: answers may show every value of them from now on.

        Only before the first request of an account without a registered access policy, whose public columns
        are final. Columns that are public already change nothing.

        Parameters
        ----------
        dataset : str
            Name of the account.
        columns : iterable of str
            Names of the columns.

        Raises
        ------
        CounterveilError
            An unknown account (CV-L004), or public columns that are fixed already (CV-L091).

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     ledger.publish("trial", ["treated", "age"])
        ...     ledger.account("trial").published
        ('age', 'treated')
        """
        refusals.check_name("dataset", dataset)
        listed = names(columns, "public")
        with self._writing() as end:
            known = Standing(self._store, dataset)
            policy = known.access_policy
            new = set(listed).difference(known.published if policy is None else policy.public)
            if not new:
                return
            if policy is not None:
                raise refusal(
                    "CV-L091", dataset=dataset, new=quoted(sorted(new)), public=quoted(policy.public)
                )
            facts: dict[str, object] = {"public": sorted(new), "registered": known.row.hash}
            facts["asked_by"] = self._analyst
            place = str(len(self._store.published(dataset)) + 1)
            end.append("publish", dataset, "", facts, place)

    def unpublished(self, dataset: str, columns: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that must be published before the first request may make them public.

        Parameters
        ----------
        dataset : str
            Name of the account.
        columns : iterable of str
            Names of the columns that a request makes public.

        Returns
        -------
        tuple of str
            Those of them that are not published; empty where an access policy says what is public, and in
            memory.

        Raises
        ------
        CounterveilError
            An unknown account (CV-L004).
        """
        with self._reading():
            return self._standing(dataset).unpublished(columns)

    def reserve(
        self,
        dataset: str,
        request_id: str,
        charge: Charge,
        *,
        uses: Uses,
        fingerprint: str,
        description: dict[str, object],
        simulated: bool = False,
        asked_by: str | None = None,
    ) -> Reservation | Answered:
        """Spend the cost of a request, or return the stored answer of the same request.

        A request that was reserved before and has no answer gets the same reservation again, at no cost.

        Parameters
        ----------
        dataset : str
            Name of the account.
        request_id : str
            Name of the request. Asked again under it, the stored answer comes back, free of charge.
        charge : Charge
            The epsilon and delta asked for, and one event for each draw: ``PureEvent(epsilon)`` for any
            epsilon-DP release; ``LaplaceEvent(epsilon)`` and ``GaussianEvent(mu)`` add up more closely under
            ``rule="gaussian"``.
        uses : Uses
            What is protected, and every column that is read. The account's access policy must allow it; the
            first request fixes one where none was registered.
        fingerprint : str
            A text that only equal requests share: everything that the answer depends on. The same name with
            another fingerprint is refused (CV-L007).
        description : dict
            What was asked, as JSON can hold it: parameters, never rows. It is stored and shown.
        simulated : bool, default False
            Whether noise comes from a seed, which only a ledger in memory takes (CV-L008).
        asked_by : str, optional
            Who asks. Default: `analyst`.

        Returns
        -------
        Reservation or Answered
            What `release` and `settle` take, or the stored answer as JSON text.

        Raises
        ------
        OverBudgetError
            If less remains than the request costs (CV-B001); nothing is spent.
        CounterveilError
            If the charge is invalid (CV-B004), the account is unknown (CV-L004), another request has this
            name (CV-L006, CV-L007), the access policy does not allow it (CV-L041 to CV-L049, CV-L080 to
            CV-L083), or the ledger cannot be written (CV-L009, CV-L010); nothing is spent.
        """
        asker = self._analyst if asked_by is None else asked_by
        named = {"dataset": dataset, "request_id": request_id, "fingerprint": fingerprint, "analyst": asker}
        for name, value in named.items():
            refusals.check_name(name, value)
        if simulated and self._store.lasting:
            raise refusal("CV-L008")
        check_charge(charge)
        with self._writing() as end:
            known = Standing(self._store, dataset)
            seen = self._seen(dataset, request_id, fingerprint, (charge.to_dict(), description))
            if seen is not None:
                return seen
            looks = None if known.access_policy is None else known.access_policy.looks
            check_order(self._store, dataset, looks, uses, description)
            facts = self._charged(known, request_id, uses, charge) | {
                "fingerprint": fingerprint,
                "description": description,
                "simulated": simulated,
                "asked_by": asker,
                "registered": known.row.hash,
                "study": study_after(self._store, dataset, request_id, charge),
            }
            row = end.append("reserve", dataset, request_id, facts)
        return Reservation(dataset, request_id, fingerprint, row.seq)

    def _charged(self, known: Standing, request_id: str, uses: Uses, charge: Charge) -> dict[str, object]:
        """Return what a request costs and the totals after it, or raise what its account does not allow."""
        access_policy = known.access_policy
        if access_policy is None:
            # A ledger that dies with the process adds nothing up for others, so it may hold unproved forms.
            access_policy = AccessPolicy.of_study(
                uses, unproved=not self._store.lasting, published=known.published
            )
        check_request(access_policy, uses, charge.face, request_id)
        cost = known.levels.cost(charge)
        return totals_after(known, uses, cost, charge.face).to_dict() | {
            "charge": charge.to_dict(),
            "cost": cost.to_dict(),
            # Repeated by every request where the first one fixed it, so that one lookup finds it.
            "access_policy": access_policy.to_dict() if known.registration["access_policy"] is None else None,
            "uses": uses.to_dict(),
        }

    def check_study(self, dataset: str, uses: Uses) -> None:
        """Check that the account's access policy allows a study, before any row is read.

        Parameters
        ----------
        dataset : str
            Name of the account.
        uses : Uses
            What is protected, and every column that is read.

        Raises
        ------
        CounterveilError
            What the policy does not allow (CV-L041 to CV-L049, CV-L080 to CV-L083); an unknown account
            (CV-L004).
        """
        with self._reading():
            known = self._standing(dataset)
            access_policy = known.access_policy
            published = known.published if access_policy is None else ()
        check_study(access_policy, uses, self._store.lasting, published)

    def check_offer(self, dataset: str, uses: Uses, face: Budget, request_id: str) -> None:
        """Check that a request would be taken, as far as its draws are not needed to tell; nothing is spent.

        Parameters
        ----------
        dataset : str
            Name of the account.
        uses : Uses
            What is protected, and every column that is read.
        face : Budget
            The epsilon and delta that the request asks for.
        request_id : str
            Name of the request.

        Raises
        ------
        OverBudgetError
            If less remains than the request costs (CV-B001), under ``rule="sum"``.
        CounterveilError
            What the policy does not allow (CV-L041 to CV-L049, CV-L080 to CV-L083); an unknown account
            (CV-L004).
        """
        with self._reading():
            check_offer(self._standing(dataset), uses, face, request_id, self._store.lasting)

    def check_rows(self, dataset: str, rows: Callable[[], int], smallest: Callable[[], int | None]) -> None:
        """Check that a request is about as many rows, and arms as large, as the access policy asks for.

        Parameters
        ----------
        dataset : str
            Name of the account.
        rows : callable
            Returns the number of rows; called only where the policy has `min_rows`.
        smallest : callable
            Returns the rows of the smallest arm, None where they are private; called only where the policy
            has `min_arm`.

        Raises
        ------
        CounterveilError
            Too few rows (CV-L044), or an arm without a public size (CV-L070).
        """
        with self._reading():
            access_policy = self._standing(dataset).access_policy
        if access_policy is not None and access_policy.min_rows:
            check_rows(access_policy, rows())
        if access_policy is not None and access_policy.min_arm:
            check_arm(access_policy, smallest())

    def check_missing(self, dataset: str, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
        """Check that the access policy allows a study's rules for missing values, before rows are read.

        Parameters
        ----------
        dataset : str
            Name of the account.
        columns : tuple of str
            Columns of the study, the treatment first.
        missing : mapping of str to {"drop", "fill"}
            The study's rules by column.

        Raises
        ------
        CounterveilError
            Another rule than the policy's (CV-L043); an unknown account (CV-L004).
        """
        with self._reading():
            access_policy = self._standing(dataset).access_policy
        if access_policy is not None:
            check_missing(access_policy, columns, missing)

    def check_access_policy(self, dataset: str, access_policy: AccessPolicy) -> None:
        """Check that an account was registered with this access policy.

        Parameters
        ----------
        dataset : str
            Name of the account.
        access_policy : AccessPolicy
            The policy that is expected.

        Raises
        ------
        CounterveilError
            Another policy, or none (CV-L046); an unknown account (CV-L004).
        """
        with self._reading():
            row = registration_of(self._store, dataset)
            check_same(dataset, read_access_policy(read_entry(row)), access_policy)

    def release(
        self, reservation: Reservation, name: str, bounds: list[str], draw: Callable[[], list[str]]
    ) -> list[str]:
        """Return what a reservation released under a name, drawn and stored at the first call.

        Of two processes that draw at once both get what is stored first.

        Parameters
        ----------
        reservation : Reservation
            What `reserve` returned.
        name : str
            Name of the release within its request.
        bounds : list of str
            The public numbers that the draw is made for. They must be the same when the request is taken up
            again.
        draw : callable
            Draws the release and returns it as texts; called at most once, and not at all where it is stored
            already.

        Returns
        -------
        list of str
            The stored texts.

        Raises
        ------
        CounterveilError
            A stored release with other bounds, or a request that may draw nothing more (CV-L006); a
            reservation that is not in the ledger (CV-L013); a draw that could not be stored (CV-L065), which
            the same request can ask for again.
        """
        if len(name) > 200 or not name.isprintable():
            name = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        with self._reading():
            found = self._released(reservation, name)
        if found is None:
            # Drawn outside of a transaction, as passes over rows take long; nothing but this function sees it.
            drawn = {"bounds": bounds, "values": draw()}
            with self._keeping(reservation), self._writing() as end:
                kept, rows = self._followed(reservation, name)
                found = unseal(rows["release"]) if "release" in rows else None
                if found is None and "settle" not in rows:
                    found = drawn
                    end.append("release", reservation.dataset, reservation.request_id, drawn | kept, name)
        if found is None or found["bounds"] != bounds:
            raise refusal("CV-L006", request_id=reservation.request_id, got="a release of other bounds")
        values: list[str] = found["values"]
        return values

    def abandon(self, reservation: Reservation) -> None:
        """Let a request that failed after it drew something never draw again.

        That it failed may depend on what it drew.

        Parameters
        ----------
        reservation : Reservation
            What `reserve` returned.

        Raises
        ------
        CounterveilError
            A reservation that is not in the ledger (CV-L013), or a ledger that cannot be written (CV-L065).
        """
        self.release(reservation, _FAILED, [], list)

    def _released(self, reservation: Reservation, name: str) -> Mapping[str, Any] | None:
        row = self._store.of_request(reservation.dataset, reservation.request_id, "release", name)
        return None if row is None else unseal(row)

    def settle(self, reservation: Reservation, answer: str) -> Any:
        """Store the answer of a request before it leaves, unless one is stored.

        Parameters
        ----------
        reservation : Reservation
            What `reserve` returned.
        answer : str
            The answer as JSON text.

        Returns
        -------
        object
            The stored answer, parsed; that of the first call where there were several.

        Raises
        ------
        CounterveilError
            Text that is not JSON (CV-L014), a reservation that is not in the ledger (CV-L013), or a ledger
            that cannot be written (CV-L065).
        """
        read = refusals.read_json(answer)
        with self._keeping(reservation), self._writing() as end:
            kept, rows = self._followed(reservation)
            settled = rows.get("settle")
            if settled is None:
                facts = {"answer": answer} | kept
                end.append("settle", reservation.dataset, reservation.request_id, facts)
        return read if settled is None else refusals.read_json(unseal(settled)["answer"])

    def _followed(
        self, reservation: Reservation, release: str = ""
    ) -> tuple[dict[str, object], dict[str, Row]]:
        """Return what the entries that follow a reservation repeat of it, and which of them there are, by kind."""
        rows = self._store.request_rows(reservation.dataset, reservation.request_id, release)
        reserved = rows.get("reserve")
        if reserved is None or reserved.seq != reservation.seq:
            raise refusal("CV-L013", request_id=reservation.request_id)
        # The time is that of the reservation: the difference would tell how long the rows took.
        facts = read_entry(reserved)
        kept = {name: facts[name] for name in ("fingerprint", "asked_by", "at", "role") if name in facts}
        return kept, rows

    @contextmanager
    def _keeping(self, reservation: Reservation) -> Iterator[None]:
        """Say with every failure to store what was drawn that it can be asked for again."""
        try:
            yield
        except LedgerError as error:
            if error.code not in _PASSING:
                raise
            raise refusals.not_kept(reservation.request_id, error) from error

    def state_of(self, dataset: str, request_id: str) -> str | None:
        """Return how far a request has come.

        Parameters
        ----------
        dataset : str
            Name of the account.
        request_id : str
            Name of the request.

        Returns
        -------
        {"reserved", "answered"} or None
            "reserved": charged and without an answer; "answered": its answer is stored; None: a new request.
        """
        with self._reading():
            if self._store.of_request(dataset, request_id, "reserve") is None:
                return None
            settled = self._store.of_request(dataset, request_id, "settle")
            return "reserved" if settled is None else "answered"

    def study_spent(self, dataset: str, study: str) -> tuple[Fraction, Fraction]:
        """Return what the requests named ``study@...`` were charged together.

        Parameters
        ----------
        dataset : str
            Name of the account.
        study : str
            What stands before the "@" of their names.

        Returns
        -------
        (Fraction, Fraction)
            Sums of their epsilons and of their deltas.
        """
        with self._reading():
            return study_spent(self._store, dataset, study)

    def account(self, dataset: str) -> Account:
        """Return what a data set was granted, what is spent and what remains.

        Parameters
        ----------
        dataset : str
            Name of the account.

        Returns
        -------
        Account
            Budgets, spent and remaining totals, rule, access policy and number of requests; print it.

        Raises
        ------
        CounterveilError
            An unknown account (CV-L004).

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     print(ledger.account("trial").remaining)
        epsilon 3
        """
        refusals.check_name("dataset", dataset)
        with self._reading():
            return account_of(Standing(self._store, dataset))

    def remarks(self, dataset: str, unit: Unit, treatment: str) -> tuple[str, ...]:
        """Return what the guarantee of an answer must say about its account.

        Parameters
        ----------
        dataset : str
            Name of the account.
        unit : Unit
            What the answer protects.
        treatment : str
            Name of the treatment column.

        Returns
        -------
        tuple of str
            Sentences: requests whose loss is not proved, and public columns that other answers may show.

        Raises
        ------
        CounterveilError
            An unknown account (CV-L004).
        """
        with self._reading():
            return account_remarks(Standing(self._store, dataset), unit, treatment)

    def datasets(self) -> list[Account]:
        """Return the accounts of all data sets.

        Returns
        -------
        list of Account
            In the order of their registration.

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     [account.dataset for account in ledger.datasets()]
        ['trial']
        """
        with self._reading():
            return [account_of(Standing(self._store, row.dataset)) for row in self._store.registrations()]

    def entries(self, dataset: str | None = None) -> list[Posting]:
        """Return the entries of the ledger in the order in which they were written.

        Parameters
        ----------
        dataset : str, optional
            Name of an account. Default: the entries of all accounts.

        Returns
        -------
        list of Posting
            Number, kind, account, request, content and hash of each entry.

        Raises
        ------
        CounterveilError
            A damaged entry (CV-L016).

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     [(entry.seq, entry.kind) for entry in ledger.entries("trial")]
        [(1, 'register')]
        """
        with self._reading():
            return [entry_of(row) for row in self._store.rows(dataset)]

    def between(self, first: int, last: int) -> list[Posting]:
        """Return the entries from one number to another.

        Parameters
        ----------
        first, last : int
            Numbers of the first and of the last entry.

        Returns
        -------
        list of Posting
            The entries in order, both ends included.

        Raises
        ------
        CounterveilError
            A damaged entry (CV-L016).
        """
        with self._reading():
            return [entry_of(row) for row in self._store.between(first, last)]

    def newest(self, dataset: str, most: int, before: int | None = None) -> list[Posting]:
        """Return the newest reservations of a data set, with one lookup each.

        Parameters
        ----------
        dataset : str
            Name of the account.
        most : int
            The largest number of entries to return.
        before : int, optional
            Return entries before this number. Default: the newest.

        Returns
        -------
        list of Posting
            Entries of kind "reserve", newest first.

        Raises
        ------
        CounterveilError
            A damaged entry (CV-L016).
        """
        with self._reading():
            return newest_requests(self._store, dataset, most, before)

    def of_request(self, dataset: str, request_id: str) -> list[Posting]:
        """Return the entries of a request.

        Parameters
        ----------
        dataset : str
            Name of the account.
        request_id : str
            Name of the request.

        Returns
        -------
        list of Posting
            Its reservation, then its answer; empty for a new request.

        Raises
        ------
        CounterveilError
            A damaged entry (CV-L016).
        """
        with self._reading():
            rows = (self._store.of_request(dataset, request_id, kind) for kind in ("reserve", "settle"))
            return [entry_of(row) for row in rows if row is not None]

    def head_hash(self) -> str:
        """Return the head hash: the hash of the newest entry.

        Note it elsewhere. With it `verify` detects a truncated or replaced ledger.

        Returns
        -------
        str
            SHA-256 in hexadecimal digits.

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     head_hash = ledger.head_hash()
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     ledger.verify(head_hash=head_hash).ok
        True
        """
        return self.last_entry()[1]

    def last_entry(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry.

        Returns
        -------
        (int, str)
            Number and SHA-256; 0 and the hash of the opening entry for an empty ledger.
        """
        with self._reading():
            last = _present(self._store.last())
        return last.seq, last.hash

    def check_contains(self, seq: int, head_hash: str) -> None:
        """Check that the ledger holds an entry: what `last_entry` once returned stays valid.

        Parameters
        ----------
        seq : int
            Number of the entry.
        head_hash : str
            Its hash.

        Raises
        ------
        CounterveilError
            The entry is missing or has another hash (CV-L060).
        """
        with self._reading():
            check_contains(self._store, seq, head_hash)

    @property
    def checkpoints(self) -> list[str]:
        """Where the head hash is kept besides, one text for each place."""
        return self._checkpoints.places()

    def add_checkpoint(self, place: str) -> None:
        """Keep the head hash in one more place from now on.

        Name the place with `checkpoint=`, ``--checkpoint`` or COUNTERVEIL_CHECKPOINT when the ledger is
        opened again.

        Parameters
        ----------
        place : str
            A file, a folder (which several ledgers may share), or ``postgresql://...`` without a password.

        Raises
        ------
        CounterveilError
            A place that cannot be used (CV-L068), or written (CV-L063).
        """
        with self._writing() as end:
            checkpoint = checkpoint_at(recorded(place), self._checkpoints.ledger)
            checkpoint.create(Mark(self._checkpoints.ledger, end.newest.seq, end.newest.hash))
            self._checkpoints.add(checkpoint)
            self._checkpoints.check(self._store, self._checkpoints.marks(), end.newest)

    def verify(self, head_hash: str | None = None, *, full: bool = True) -> VerifyReport:
        """Recompute hashes, running totals and budgets of the entries.

        Parameters
        ----------
        head_hash : str, optional
            A head hash noted earlier, which must still be in the chain. Default: none is looked for.
        full : bool, default True
            Begin with the first entry; otherwise after the last entry that the checkpoints call verified.

        Returns
        -------
        VerifyReport
            Whether all is well, the number of valid entries, the head hash, and the first problem.

        Examples
        --------
        >>> import counterveil as cv
        >>> with cv.open_ledger(":memory:") as ledger:
        ...     account = ledger.register("trial", cv.Budget(epsilon=3))
        ...     report = ledger.verify()
        >>> report.ok, report.entries
        (True, 1)
        """
        if head_hash is not None:
            refusals.check_name("head_hash", head_hash)
        with self._turn:
            self._check_usable()
            report = verified(self._store, self._checkpoints, head_hash, full=full or head_hash is not None)
        if report.ok and not self._inspect:
            self._checkpoints.note_checked(report.entries, report.head_hash)
        return report

    def problem(self) -> str | None:
        """Return what opening this ledger for spending would be refused for.

        Returns
        -------
        str or None
            Code and problem; None where the ledger can be spent from.
        """
        try:
            with self._turn:
                self._check_usable()
                check_opened(self._store, self._checkpoints)
        except LedgerError as error:
            return f"{error.code}: {error.problem}"
        return None

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy a ledger file to a new file.

        The copy has no checkpoint: it can be opened with ``inspect=True``, and nothing can be spent from it.

        Parameters
        ----------
        target : path-like
            The new file.

        Raises
        ------
        CounterveilError
            A ledger on a server or in memory (CV-L069), or a file that cannot be written (CV-L009).
        """
        with self._turn:
            self._check_usable()
            if not isinstance(self._store, SqliteStore) or not self._store.lasting:
                raise refusal("CV-L069")
            self._store.backup(Path(target))

    def close(self) -> None:
        """Close the ledger; using it afterwards raises CV-L015."""
        with self._turn:
            if self._open and os.getpid() == self._process:
                self._checkpoints.close()
                self._store.close()
            self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[ChainEnd]:
        with self._turn:
            self._check_usable()
            if self._inspect:
                raise refusal("CV-L015", problem="a ledger that was opened for inspection")
            with self._store.writing():
                # Checkpoints are moved after a commit: while nobody commits none of them gets ahead of `last`.
                last = self._store.last()
                self._checkpoints.check(self._store, self._checkpoints.marks(), last)
                end = ChainEnd(self._store, _present(last))
                yield end
            # Before anybody acts on the entry: what is not in the checkpoints has led to nothing.
            self._checkpoints.advance(end.newest.seq, end.newest.hash, appended=end.newest != last)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._turn:
            self._check_usable()
            with self._store.reading():
                yield

    def _check_usable(self) -> None:
        if not self._open:
            raise refusal("CV-L015", problem="a closed ledger")
        if os.getpid() != self._process:  # a connection carried over a fork can damage the file
            raise refusal("CV-L015", problem="a ledger opened by another process")

    def _standing(self, dataset: str) -> Standing:
        """Return where an account stands, for checks that come before a request: `reserve` reads all of it anew.

        While the newest entry is the same, so is what it says, and only that entry is read.
        """
        newest = _present(self._store.last())
        if self._read_last is None or self._read_last[:2] != (dataset, newest):
            self._read_last = (dataset, newest, Standing(self._store, dataset))
        return self._read_last[2]

    def _seen(
        self, dataset: str, request_id: str, fingerprint: str, asked: tuple[dict[str, Any], dict[str, object]]
    ) -> Reservation | Answered | None:
        """Return the answer of a request seen before, or its reservation to go on with; None for a new one.

        It goes on under the same charge and the same plan alone, which a version of the package may have changed.
        """
        reserved = self._store.of_request(dataset, request_id, "reserve")
        if reserved is None:
            return None
        facts = read_entry(reserved)
        if facts["fingerprint"] != fingerprint:
            raise refusal("CV-L007", request_id=request_id)
        settled = self._store.of_request(dataset, request_id, "settle")
        if settled is not None:
            return Answered(str(unseal(settled)["answer"]))
        kept = Reservation(dataset, request_id, fingerprint, reserved.seq)
        if self._released(kept, _FAILED) is not None:
            raise refusal(
                "CV-L006", request_id=request_id, got="a computation that failed after it had drawn noise"
            )
        if canonical({"asked": asked}) != canonical({"asked": (facts["charge"], facts["description"])}):
            raise refusal("CV-L006", request_id=request_id, got="another split of the budget")
        return kept


def _present(last: Row | None) -> Row:
    """Return the newest entry, or raise CV-L016 where there is none: a ledger has one from its opening on."""
    if last is None:
        raise damaged("the ledger is damaged", "no entry is left")
    return last


MEMORY = ":memory:"


def open_ledger(
    place: str | os.PathLike[str],
    *,
    create: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    inspect: bool = False,
) -> Ledger:
    """Open a ledger, after checking its newest entries, its triggers and its checkpoints.

    Parameters
    ----------
    place : path-like or str
        A file, ``postgresql://user@host/database``, or ``":memory:"`` for a ledger that ends with the
        process.
    create : bool, default False
        Make the ledger if it does not exist.
    checkpoint : path-like or str, optional
        A second place for the head hash: a file, a folder, or ``postgresql://...`` without a password. With
        `create` it is used from then on; otherwise it must hold the head hash already. Default: the
        environment variable COUNTERVEIL_CHECKPOINT, if it is set. A ledger in a file always has a checkpoint
        beside it, ``PLACE.checkpoint``.
    inspect : bool, default False
        Open for reading and verifying only, even if the ledger is damaged or its place cannot be written.

    Returns
    -------
    Ledger
        The open ledger; a context manager that closes it.

    Raises
    ------
    CounterveilError
        No such ledger (CV-L001), no ledger or one of another version (CV-L002, CV-L003), a damaged one
        (CV-L016 to CV-L018, CV-L067), one that does not agree with its checkpoints or has lost them (CV-L060
        to CV-L064), a place that cannot be used (CV-L068), or a missing PostgreSQL driver (CV-E010).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counterveil as cv
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cv.open_ledger(Path(folder.name, "ledger.db"), create=True) as ledger:
    ...     account = ledger.register("trial", cv.Budget(epsilon=3), note="approved 12 May")
    >>> sorted(path.name for path in Path(folder.name).iterdir())
    ['ledger.db', 'ledger.db.checkpoint']
    >>> folder.cleanup()
    """
    text = str(place if isinstance(place, str) else _path(place))
    if text == MEMORY:
        return Ledger(MemoryStore(opening_entry(None)))
    named = os.fspath(checkpoint) if checkpoint is not None else os.environ.get(VARIABLE) or None
    named = None if named is None else recorded(named)
    opening = opening_entry(named) if create and not inspect else None
    path = None if text.startswith(SERVER) else _path(text)
    store: Store = _server(text, opening) if path is None else _file(path, opening, named, inspect)
    checkpoints = None
    try:
        if not inspect:
            with store.reading():
                check_first(store)
        checkpoints = _checkpoints(store, path, named, create=create)
        return Ledger(store, checkpoints, inspect=inspect)
    except BaseException:
        if checkpoints is not None:
            checkpoints.close()
        store.close()
        raise


def _checkpoints(store: Store, path: Path | None, named: str | None, *, create: bool) -> Checkpoints:
    """Return the checkpoints of a ledger: beside its file, where it says, and where the caller says."""
    with store.reading():
        first, last = store.at(0), store.last()
    # A damaged first entry is refused before, unless the ledger is opened for inspection.
    facts = {} if first is None or fault(first) is not None else unseal(first)
    ledger = str(facts.get("ledger", ""))
    checkpoints = Checkpoints(ledger, [] if path is None else [beside(path)])
    try:
        places = {str(each) for each in (facts.get("checkpoint"), named) if each is not None}
        for place in sorted(places):
            checkpoints.add(checkpoint_at(place, ledger))
        # A ledger in which nothing was written yet gets its checkpoints; a crash may have come between.
        if create and first is not None and last is not None and last.seq == 0:
            checkpoints.create(Mark(ledger, 0, first.hash))
    except BaseException:
        checkpoints.close()
        raise
    return checkpoints


def _path(place: object) -> Path:
    """Return a path that a file can have, or raise CV-L001."""
    try:
        return checked_path(place)
    except UnreadableError as error:
        raise refusal("CV-L001", got=str(error)) from None


def _file(path: Path, opening: Row | None, checkpoint: str | None, inspect: bool) -> Store:
    if opening is not None and not path.exists():
        check_never_used(path, checkpoint)
        create_file(path, opening)
    if not path.exists():
        raise refusal("CV-L001", got=_masked(str(path)))
    return SqliteStore(path, inspect=inspect)


def _masked(text: str) -> str:
    """Return a path for a message; an address that was mistyped so that it looks like one may hold a password."""
    before, sign, after = text.rpartition("@")
    return f"***@{after}" if sign and ":" in before else text


def _server(url: str, opening: Row | None) -> Store:
    if importlib.util.find_spec("psycopg") is None:
        raise refusal("CV-E010")
    from counterveil.accounting.postgres_store import PostgresStore

    return PostgresStore(url, opening)

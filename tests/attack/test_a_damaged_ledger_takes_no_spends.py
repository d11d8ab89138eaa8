"""Findings C10 and F: 75 of 200 ledgers with one changed bit took spends although `verify` rejected them."""

import random
from fractions import Fraction

import pytest
from tests.thinned import examples

from counterveil.accounting import Uses, open_ledger
from counterveil.errors import CounterveilError, LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

CENT = Charge(Budget("0.01"), (PureEvent(Fraction(1, 100)),))
FLIPS = examples(80, 200)


def spend(ledger, request_id):
    kept = ledger.reserve(
        "trial", request_id, CENT, uses=USES, fingerprint="f", description={"text": "x" * 200}
    )
    ledger.settle(kept, '{"estimate": 1}')


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole") / "ledger.db"
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget(10))
        for number in range(40):
            spend(ledger, f"r{number}")
    return place


def outcome(place):
    """Return whether a full check accepts the ledger, and whether it takes a spend."""
    content = place.read_bytes()
    try:
        with open_ledger(place, inspect=True) as ledger:
            sound = ledger.verify().ok
    except LedgerError:
        sound = False
    for suffix in ("-wal", "-shm"):
        place.with_name(place.name + suffix).unlink(missing_ok=True)
    place.write_bytes(content)
    try:
        with open_ledger(place) as ledger:
            spend(ledger, "another")
        return sound, True
    except LedgerError:
        return sound, False


def test_one_changed_bit(whole, tmp_path):
    content, head = whole.read_bytes(), whole.with_name("ledger.db.checkpoint").read_bytes()
    places = random.Random(20)
    found = []
    for number in range(FLIPS):
        changed = bytearray(content)
        changed[places.randrange(len(content))] ^= 1 << places.randrange(8)
        place = tmp_path / f"{number}.db"
        place.write_bytes(changed)
        place.with_name(f"{number}.db.checkpoint").write_bytes(head)
        found.append(outcome(place))
    rejected = [took for sound, took in found if not sound]
    assert len(rejected) > FLIPS // 4
    assert not any(rejected)
    assert all(took for sound, took in found if sound)


def test_a_changed_schema_page_is_refused_with_a_code(whole, tmp_path):
    content, head = whole.read_bytes(), whole.with_name("ledger.db.checkpoint").read_bytes()
    places, codes = random.Random(21), set()
    for number in range(60):
        changed = bytearray(content)
        changed[places.randrange(4096)] ^= 1 << places.randrange(8)
        place = tmp_path / f"{number}.db"
        place.write_bytes(changed)
        place.with_name(f"{number}.db.checkpoint").write_bytes(head)
        for inspect in (True, False):
            try:
                with open_ledger(place, inspect=inspect) as ledger:
                    ledger.verify()
                    ledger.datasets()
            except CounterveilError as error:
                codes.add(error.code)
    assert {"CV-L002", "CV-L016", "CV-L067"} <= codes


def test_a_rewritten_registration_is_refused_although_its_own_hash_is_right(whole, tmp_path):
    import json
    import sqlite3

    from counterveil.accounting.accounts import canonical, digest

    place = tmp_path / "ledger.db"
    place.write_bytes(whole.read_bytes())
    place.with_name("ledger.db.checkpoint").write_bytes(whole.with_name("ledger.db.checkpoint").read_bytes())
    with open_ledger(place) as ledger:
        for number in range(400):
            ledger.reserve("trial", f"old {number}", CENT, uses=USES, fingerprint="f", description={})
    with sqlite3.connect(place) as database:
        guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            database.execute(f"DROP TRIGGER {name}")
        previous, body = database.execute("SELECT previous, body FROM entries WHERE seq = 1").fetchone()
        richer = canonical(json.loads(body) | {"budget": Budget(1000).to_dict()})
        database.execute(
            "UPDATE entries SET body = ?, hash = ? WHERE seq = 1", (richer, digest(previous, richer))
        )
        for _, guard in guards:
            database.execute(guard)
    database.close()
    with pytest.raises(LedgerError, match="CV-L016"), open_ledger(place) as ledger:
        spend(ledger, "rich")

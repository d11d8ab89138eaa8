"""The PostgreSQL ledger against a real server: same promises, same refusals, least rights."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from urllib.parse import quote

import pytest

from counterveil.accounting import Answered, OverBudgetError, Uses, open_ledger
from counterveil.errors import LedgerError, MissingExtraError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")

TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))


def spend(ledger, request_id):
    kept = ledger.reserve("trial", request_id, TENTH, uses=USES, fingerprint="f", description={"text": "mü"})
    if isinstance(kept, Answered):
        return kept.answer
    ledger.settle(kept, '{"text": "\\u0000 é"}')
    return '{"text": "\\u0000 é"}'


@pytest.fixture
def address(cluster):
    place = cluster.emptied()
    with open_ledger(place, create=True) as ledger:
        ledger.register("trial", Budget("0.3"))
        for number in range(2):
            spend(ledger, f"r{number}")
    return place


def execute(address, *statements):
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_accounts_retries_and_refusals(address):
    with open_ledger(address) as ledger:
        assert spend(ledger, "r0") == '{"text": "\\u0000 é"}'
        assert ledger.account("trial").remaining.epsilon == Fraction(1, 10)
        spend(ledger, "r2")
        with pytest.raises(OverBudgetError, match=r"epsilon 0\.1 too much"):
            spend(ledger, "r3")
        with pytest.raises(LedgerError, match="CV-L005"):
            ledger.register("trial", Budget(1))
        with pytest.raises(LedgerError, match="CV-L008"):
            ledger.reserve("trial", "r4", TENTH, uses=USES, fingerprint="f", description={}, simulated=True)
        assert [account.dataset for account in ledger.datasets()] == ["trial"]
        assert len(ledger.entries("trial")) == 7
        assert ledger.verify().ok


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE counterveil.entries SET body = '{}' WHERE seq = 2",
        "DELETE FROM counterveil.entries WHERE seq = 5",
        "TRUNCATE counterveil.entries",
        "INSERT INTO counterveil.entries SELECT 9, kind, dataset, 'x', name, body, previous, hash "
        "FROM counterveil.entries WHERE seq = 2",
    ],
)
def test_the_server_refuses_changes(address, statement):
    import psycopg

    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        execute(address, statement)
    with open_ledger(address) as ledger:
        assert ledger.verify().ok


def test_tampering_is_found(address):
    off, on = (f"ALTER TABLE counterveil.entries {word} TRIGGER USER" for word in ("DISABLE", "ENABLE"))
    execute(address, off)
    with pytest.raises(LedgerError, match="CV-L067"):
        open_ledger(address)
    with open_ledger(address, inspect=True) as ledger:
        assert "triggers" in ledger.verify().problem
    execute(address, "UPDATE counterveil.entries SET body = replace(body, '1/10', '1/90') WHERE seq = 4", on)
    with open_ledger(address, inspect=True) as ledger:
        assert ledger.verify().problem == "entry 4: its hash does not match its content"
    with pytest.raises(LedgerError, match="CV-L016"):
        open_ledger(address)


def test_inserting_and_reading_are_the_only_rights_needed(address, cluster):
    execute(
        address,
        "DROP ROLE IF EXISTS analyst",
        "CREATE ROLE analyst LOGIN",
        "GRANT USAGE ON SCHEMA counterveil TO analyst",
        "GRANT SELECT, INSERT ON counterveil.entries TO analyst",
        "GRANT SELECT ON counterveil.format TO analyst",
    )
    with open_ledger(address.replace("steward@", "analyst@")) as ledger:
        ledger.analyst = "root"
        spend(ledger, "r2")
        # Who asks is what the process says; the role is what the server knows.
        reserved, answered = ledger.of_request("trial", "r2")
        assert reserved.by == answered.by == "root (database role analyst)"
        assert ledger.verify().ok
    execute(address, "DROP OWNED BY analyst", "DROP ROLE analyst")


def test_an_empty_database_is_not_a_ledger(cluster):
    with pytest.raises(LedgerError, match="CV-L002"):
        open_ledger(cluster.emptied())


def test_another_format_version_is_not_touched(address):
    execute(address, "UPDATE counterveil.format SET version = 99")
    with pytest.raises(LedgerError, match="CV-L003"):
        open_ledger(address, create=True)


def test_a_server_without_syncs_is_refused(cluster):
    place = cluster.emptied()
    cluster.restart("-c", "fsync=off")
    try:
        with pytest.raises(LedgerError, match="CV-L017"):
            open_ledger(place, create=True)
    finally:
        cluster.restart()


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_writers_take_turns_whatever_isolation_the_server_begins_with(cluster, level):
    place = cluster.emptied()
    began = (
        place + "?options=" + quote(f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}")
    )

    def requests(name):
        with open_ledger(began) as ledger:
            return [spend(ledger, f"{name} {number}") for number in range(6)]

    with open_ledger(began, create=True, checkpoint=began) as ledger:
        assert ledger._store._run("SHOW default_transaction_isolation") == [(level,)]
        ledger.register("trial", Budget(10))
    with ThreadPoolExecutor(4) as threads:
        answers = [answer for given in threads.map(requests, range(4)) for answer in given]
    assert len(answers) == 24
    with open_ledger(began) as ledger:
        assert ledger.verify().ok
        assert ledger.account("trial").spent.epsilon == Fraction(24, 10)


def test_a_busy_ledger_says_so(address):
    with open_ledger(address) as holder, open_ledger(address) as ledger:
        ledger._store._run("SET lock_timeout = '50ms'")
        with holder._store.writing(), pytest.raises(LedgerError, match="CV-L010"):
            spend(ledger, "r2")
        spend(ledger, "r2")


def test_without_the_extra_the_way_to_get_it_is_named(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "psycopg" else real(name, *rest)
    )
    with pytest.raises(MissingExtraError, match=r"CV-E010(.|\n)*pip install '\.\[postgres\]'"):
        open_ledger("postgresql://steward@127.0.0.1/ledger")

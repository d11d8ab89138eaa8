"""Checkpoints on a real PostgreSQL server, and checkpoints elsewhere of a ledger on a server."""

import shutil
from fractions import Fraction

import pytest

from counterveil.accounting import Answered, Uses, open_ledger
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, PureEvent, Unit

USES = Uses(Unit.OUTCOME, "ate", "mean", "treated", "relapse")
TENTH = Charge(Budget("0.1"), (PureEvent(Fraction(1, 10)),))


def reserve(ledger, request_id):
    return ledger.reserve("trial", request_id, TENTH, uses=USES, fingerprint="f", description={})


def spend(ledger, request_id):
    kept = reserve(ledger, request_id)
    if isinstance(kept, Answered):
        return kept.answer
    ledger.settle(kept, '"kept"')
    return '"kept"'


def execute(address, *statements):
    """Run the statements one by one; return the rows of the last."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def marks(address):
    return execute(address, "SELECT ledger, seq, hash FROM counterveil_checkpoints.marks ORDER BY seq")


@pytest.fixture
def server(cluster):
    """The address of a database without ledgers and checkpoints, on a server that runs again after the test."""
    yield cluster.emptied()
    if cluster.server.poll() is not None:
        cluster.start()


@pytest.fixture
def place(tmp_path, server):
    """A ledger in a file whose head hash is also kept on the server."""
    path = tmp_path / "ledger.db"
    with open_ledger(path, create=True, checkpoint=server) as ledger:
        ledger.register("trial", Budget(1))
        spend(ledger, "r0")
    return path


def copied(path, folder):
    """Copy a closed ledger with the checkpoint beside it; return the files by their names."""
    folder.mkdir()
    for name in (path.name, f"{path.name}.checkpoint"):
        shutil.copy2(path.with_name(name), folder / name)
    return folder


def put_back(folder, path):
    for each in folder.iterdir():
        shutil.copy2(each, path.with_name(each.name))


def test_the_head_on_the_server_moves_with_every_entry(place, server):
    with open_ledger(place) as ledger:
        assert "a PostgreSQL server" in ledger.checkpoints
        for request_id in ("r1", "r2"):
            kept = reserve(ledger, request_id)
            assert [row[1:] for row in marks(server)] == [ledger.last_entry()]
            ledger.settle(kept, '"kept"')
            assert [row[1:] for row in marks(server)] == [ledger.last_entry()]
        assert ledger.verify().ok
    checked = execute(server, "SELECT checked_seq, checked_hash FROM counterveil_checkpoints.marks")
    assert checked == [row[1:] for row in marks(server)]


def test_an_older_copy_with_the_checkpoint_beside_it_is_refused(place, tmp_path):
    older = copied(place, tmp_path / "older")
    with open_ledger(place) as ledger:
        spend(ledger, "r1")
    newer = copied(place, tmp_path / "newer")
    put_back(older, place)
    with pytest.raises(LedgerError, match="CV-L060"):
        open_ledger(place)
    put_back(newer, place)
    with open_ledger(place) as ledger:
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)


def test_an_older_copy_under_an_open_ledger_is_not_spent_from(place, server):
    with open_ledger(place) as ledger:
        execute(server, "UPDATE counterveil_checkpoints.marks SET seq = seq + 1, hash = 'of a lost entry'")
        with pytest.raises(LedgerError, match="CV-L060"):
            reserve(ledger, "r1")


@pytest.mark.parametrize(
    "removed", ["TRUNCATE counterveil_checkpoints.marks", "DROP SCHEMA counterveil_checkpoints CASCADE"]
)
def test_a_missing_checkpoint_is_refused_and_not_made_anew(place, server, removed):
    with open_ledger(place) as ledger:
        execute(server, removed)
        with pytest.raises(LedgerError, match="CV-L062"):
            reserve(ledger, "r1")
    for create in (False, True):
        with pytest.raises(LedgerError, match="CV-L062"):
            open_ledger(place, create=create)


def test_the_checkpoints_of_two_ledgers_are_kept_apart(place, server, tmp_path):
    other = tmp_path / "other.db"
    with open_ledger(other, create=True, checkpoint=server) as ledger:
        ledger.register("trial", Budget(1))
        newest = ledger.last_entry()
    with open_ledger(place) as ledger:
        spend(ledger, "r1")
        newest_entries = {row[0]: row[1:] for row in marks(server)}
        assert len(newest_entries) == 2
        assert set(newest_entries.values()) == {newest, ledger.last_entry()}
    put_back(copied(other, tmp_path / "swapped"), place)
    shutil.copy2(other, place)
    with pytest.raises(LedgerError, match="CV-L061"):
        open_ledger(place)


def test_the_server_refuses_steps_back(place, server):
    import psycopg

    for statement in (
        "UPDATE counterveil_checkpoints.marks SET seq = seq - 1",
        "UPDATE counterveil_checkpoints.marks SET ledger = 'other'",
        "DELETE FROM counterveil_checkpoints.marks",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="forward only"):
            execute(server, statement)


def test_a_server_that_is_down_spends_nothing(place, cluster):
    with open_ledger(place) as ledger:
        cluster.crash()
        with pytest.raises(LedgerError, match="CV-L063"):
            reserve(ledger, "r1")
        assert ledger.account("trial").spent.epsilon == Fraction(1, 10)
        with pytest.raises(LedgerError, match="CV-L063") as caught:
            open_ledger(place)
        assert "steward" not in str(caught.value)
        cluster.start()
        assert spend(ledger, "r1") == '"kept"'
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)


def test_a_server_restarted_while_an_answer_is_computed_does_not_cost_it(place, cluster):
    with open_ledger(place) as ledger:
        kept = reserve(ledger, "r1")
        cluster.restart()
        ledger.settle(kept, '"kept"')
        assert ledger.state_of("trial", "r1") == "answered"


def test_an_answer_waits_for_a_server_that_is_down(place, cluster):
    with open_ledger(place) as ledger:
        kept = reserve(ledger, "r1")
        cluster.crash()
        with pytest.raises(LedgerError, match="CV-L065"):
            ledger.settle(kept, '"kept"')
        cluster.start()
        assert reserve(ledger, "r1") == kept
        assert ledger.settle(kept, '"kept"') == "kept"
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)


@pytest.mark.parametrize("step", ["reserve", "settle"])
def test_a_server_that_dies_after_the_commit(place, server, cluster, step):
    """What was written stays charged; the head hash on the server catches up with it."""
    with open_ledger(place) as ledger:
        checkpoint = ledger._checkpoints._checkpoints[-1]
        advance = checkpoint.advance

        def dies(mark):
            checkpoint.advance = advance
            cluster.crash()
            advance(mark)

        if step == "reserve":
            checkpoint.advance = dies
            with pytest.raises(LedgerError, match="CV-L063"):
                reserve(ledger, "r1")
        else:
            kept = reserve(ledger, "r1")
            checkpoint.advance = dies
            with pytest.raises(LedgerError, match="CV-L065"):
                ledger.settle(kept, '"kept"')
        cluster.start()
        assert marks(server)[0][1] == ledger.last_entry()[0] - 1
        assert ledger.account("trial").spent.epsilon == Fraction(1, 5)
        if step == "reserve":
            assert spend(ledger, "r1") == '"kept"'
            assert ledger.account("trial").spent.epsilon == Fraction(1, 5)
        else:
            assert reserve(ledger, "r1") == Answered('"kept"')
        assert [row[1:] for row in marks(server)] == [ledger.last_entry()]
        assert ledger.verify().ok


def test_a_server_without_syncs_holds_no_checkpoint(place, cluster):
    cluster.restart("-c", "fsync=off")
    try:
        with pytest.raises(LedgerError, match=r"CV-L063(.|\n)*fsync = off"):
            open_ledger(place)
    finally:
        cluster.restart()
    open_ledger(place).close()


def test_reading_and_moving_are_the_only_rights_needed(tmp_path, server):
    execute(server, "DROP ROLE IF EXISTS analyst", "CREATE ROLE analyst LOGIN")
    path = tmp_path / "ledger.db"
    analyst = server.replace("steward@", "analyst@")
    with open_ledger(path, create=True) as ledger:
        ledger.register("trial", Budget(1))
        ledger.add_checkpoint(server)
    with pytest.raises(LedgerError, match=r"CV-L063(.|\n)*permission denied"):
        open_ledger(path, checkpoint=analyst)
    execute(
        server,
        "GRANT USAGE ON SCHEMA counterveil_checkpoints TO analyst",
        "GRANT SELECT, UPDATE ON counterveil_checkpoints.marks TO analyst",
    )
    with open_ledger(path, checkpoint=analyst) as ledger:
        spend(ledger, "r1")
        assert [row[1:] for row in marks(server)] == [ledger.last_entry()]
    execute(server, "DROP OWNED BY analyst", "DROP ROLE analyst")


@pytest.fixture
def checked_elsewhere(server, tmp_path):
    """A ledger on the server whose head hash is kept in a file."""
    with open_ledger(server, create=True, checkpoint=tmp_path / "ledger.checkpoint") as ledger:
        ledger.register("trial", Budget(1))
        for number in range(3):
            spend(ledger, f"r{number}")
    return server


OFF, ON = (f"ALTER TABLE counterveil.entries {word} TRIGGER USER" for word in ("DISABLE", "ENABLE"))


@pytest.mark.parametrize(
    "rolled_back",
    [
        (OFF, "DELETE FROM counterveil.entries WHERE seq > 5", ON),
        (OFF, "DELETE FROM counterveil.entries WHERE seq > 6", ON),
        ("SET session_replication_role = replica", "DELETE FROM counterveil.entries WHERE seq > 1"),
    ],
)
def test_rows_deleted_from_the_end_of_a_servers_ledger_are_missed(checked_elsewhere, rolled_back):
    execute(checked_elsewhere, *rolled_back)
    with pytest.raises(LedgerError, match="CV-L060"):
        open_ledger(checked_elsewhere)
    with open_ledger(checked_elsewhere, inspect=True) as ledger:
        assert "lost entries" in ledger.verify().problem


def test_rows_deleted_under_an_open_ledger_are_missed(checked_elsewhere):
    with open_ledger(checked_elsewhere) as ledger:
        execute(checked_elsewhere, OFF, "DELETE FROM counterveil.entries WHERE seq > 5", ON)
        with pytest.raises(LedgerError, match="CV-L060"):
            reserve(ledger, "r2")


def test_a_servers_ledger_that_was_dropped_is_not_replaced(checked_elsewhere, tmp_path):
    execute(checked_elsewhere, "DROP SCHEMA counterveil CASCADE")
    with pytest.raises(LedgerError, match="CV-L002"):
        open_ledger(checked_elsewhere)
    for _ in range(2):
        with pytest.raises(LedgerError, match="CV-L061"):
            open_ledger(checked_elsewhere, create=True, checkpoint=tmp_path / "ledger.checkpoint")


def test_a_servers_ledger_and_its_checkpoint_may_share_a_server(server):
    with open_ledger(server, create=True, checkpoint=server) as ledger:
        ledger.register("trial", Budget(1))
        spend(ledger, "r0")
        assert [row[1:] for row in marks(server)] == [ledger.last_entry()]
    execute(server, OFF, "DELETE FROM counterveil.entries WHERE seq > 1", ON)
    with pytest.raises(LedgerError, match="CV-L060"):
        open_ledger(server)


@pytest.mark.parametrize("guard", ["refuse", "check_append"])
@pytest.mark.parametrize(
    "body",
    [
        "LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "LANGUAGE plpgsql SECURITY DEFINER AS $${kept}$$",
        "LANGUAGE plpgsql SET search_path = elsewhere AS $${kept}$$",
    ],
)
def test_a_guard_replaced_under_its_name_is_refused(checked_elsewhere, guard, body):
    kept = execute(
        checked_elsewhere, f"SELECT prosrc FROM pg_proc WHERE oid = 'counterveil.{guard}()'::regprocedure"
    )[0][0]
    make = f"CREATE OR REPLACE FUNCTION counterveil.{guard}() RETURNS trigger "
    execute(checked_elsewhere, make + body.replace("{kept}", kept))
    with pytest.raises(LedgerError, match="CV-L067"):
        open_ledger(checked_elsewhere)
    execute(checked_elsewhere, f"{make} LANGUAGE plpgsql AS $${kept}$$")
    with open_ledger(checked_elsewhere) as ledger:
        assert ledger.verify().ok

"""Scratch folders: nothing private stays on a disk, however a process ends."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import counterveil as cv
from counterveil import scratch
from counterveil.data import Table, open_table
from counterveil.data.sources import files
from counterveil.data.sources.dispatch import settings_of_engine
from counterveil.errors import DataError

SECRET = b"QZXVCANARYKJW"
# Seconds after which a process that does nothing is taken for one that hangs.
PATIENCE = 120
STUDY = """\
treatment = "t"
people = "id"
assignment = "trial"

[outcome]
column = "y"
range = [0, 1]
"""
# A command that sorts people with little memory, and waits as soon as it has the first of them.
ASK = """
import signal, sys
from pathlib import Path
from counterveil import scratch
from counterveil.data import batches
batches.STREAM_FROM, batches.MEMORY = 0, 48_000_000
class Table(batches.Table):
    @classmethod
    def of_columns(cls, *given):
        Path(mark).touch()
        signal.pause()
batches.Table, mark = Table, sys.argv[1]
if "unwatched" in sys.argv:
    import os
    scratch._watched = lambda path: os.pipe()[1]
from counterveil.cli import main
sys.argv = "counterveil estimate rows.parquet --study study.toml --protects record --epsilon 1".split()
main()
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Return a folder with rows of people whose names are long, in no order, and a study of them."""
    folder = tmp_path_factory.mktemp("rows")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i % 2 AS t, (i % 7) / 7 AS y, '{SECRET.decode()}' || repeat(md5(i::VARCHAR), 3) AS id "
            f"FROM range(200000) AS x(i)) TO '{folder}/rows.parquet' (ROW_GROUP_SIZE 10240)"
        )
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the folder that `COUNTERVEIL_SCRATCH` names."""
    found = tmp_path / "scratch"
    found.mkdir()
    monkeypatch.setenv(scratch.VARIABLE, str(found))
    return found


def left(place):
    """Return the files in a folder that may hold rows."""
    return [path for path in place.rglob("*") if path.is_file() and path.name != "lock"]


def until(true):
    """Wait until something is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def asking(rows, place, *more):
    """Return a process that has spilled rows into the scratch folder, and holds them."""
    mark = place.parent / "spilled"
    found = subprocess.Popen(
        [sys.executable, "-c", ASK, str(mark), *more],
        cwd=rows,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until(lambda: mark.exists() or found.poll() is not None)
    assert found.poll() is None, found.communicate()
    # The rows are there in clear: what the tests below look for could be found.
    assert any(SECRET in path.read_bytes() for path in left(place))
    return found


def test_what_a_killed_process_spilled_is_removed_at_once(rows, place):
    process = asking(rows, place)
    process.kill()
    process.communicate()
    until(lambda: not list(place.iterdir()))


def test_what_is_left_after_all_is_removed_by_the_next_process_and_not_before_its_own_has_ended(rows, place):
    process = asking(rows, place, "unwatched")
    spilled = left(place)
    for path in spilled:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    with scratch.folder() as other:
        assert Path(other).parent.parent == place
    assert left(place) == spilled
    process.kill()
    process.communicate()
    assert any(SECRET in path.read_bytes() for path in left(place))
    scratch._remove_all()
    with scratch.folder() as other:
        (own,) = place.iterdir()
        assert Path(other).parent == own
    assert left(place) == []


def test_a_command_that_is_told_to_end_leaves_nothing(rows, place):
    process = asking(rows, place, "unwatched")
    process.terminate()
    _, said = process.communicate()
    assert process.returncode == 143
    assert b"ended by SIGTERM; a budget that was reserved stays spent" in said
    assert list(place.iterdir()) == []


def sort(path, settings):
    """Sort people with these settings of an engine."""
    with files.opened(path, ("id",), settings) as located:
        list(files.relations.fetch_parts(*located, frozenset(), 1000, ("id", None)))


def test_an_exception_and_an_engine_without_room_leave_nothing(place, rows):
    def fail():
        with scratch.folder() as made:
            (Path(made) / "rows").write_bytes(SECRET)
            raise FileExistsError

    with pytest.raises(FileExistsError):
        fail()
    assert left(place) == []
    room = {"memory_limit": "16MB", "threads": 1, "max_temp_directory_size": "1MB"}
    with scratch.folder() as made, pytest.raises(DataError, match="CV-D312") as refused:
        sort(rows / "rows.parquet", {"temp_directory": made, **room})
    assert SECRET.decode() not in str(refused.value)
    assert list(next(place.iterdir()).rglob("*")) == [next(place.iterdir()) / "lock"]


def test_files_in_a_folder_are_their_owners_alone_and_others_as_before(place, tmp_path):
    before = os.umask(0o022)
    try:
        with scratch.folder() as first:
            with scratch.folder() as second:
                (Path(second) / "rows").touch()
                assert stat.S_IMODE((Path(second) / "rows").stat().st_mode) == 0o600
            (Path(first) / "rows").touch()
            assert stat.S_IMODE((Path(first) / "rows").stat().st_mode) == 0o600
        (tmp_path / "report").touch()
        assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_a_sweep_follows_no_link_and_touches_nothing_else(place, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("1")
    (place / f"{scratch.PREFIX}abcdefgh").symlink_to(kept)
    (place / f"{scratch.PREFIX}too_long_a_name").mkdir()
    (place / "another").mkdir()
    stale = place / f"{scratch.PREFIX}zyxwvuts"
    stale.mkdir(mode=0o700)
    (stale / "link").symlink_to(kept)
    (stale / "rows").write_bytes(SECRET)
    planted = place / f"{scratch.PREFIX}planted_"
    planted.mkdir()
    (planted / "lock").symlink_to(kept / "file")
    if os.geteuid() == 0:
        foreign = place / f"{scratch.PREFIX}foreign_"
        foreign.mkdir()
        os.chown(foreign, 12345, 12345)
    with scratch.folder():
        names = {path.name.removeprefix(scratch.PREFIX) for path in place.iterdir()}
    assert names >= {"abcdefgh", "too_long_a_name", "another", "planted_"}
    assert ("foreign_" in names) == (os.geteuid() == 0)
    assert not stale.exists()
    assert (kept / "file").read_text() == "1"


def test_a_copy_of_a_process_leaves_the_folder_to_it(place):
    with scratch.folder() as made:
        (Path(made) / "rows").write_bytes(SECRET)
        copy = os.fork()
        if not copy:
            # Its own folder, and the end of a process that is no copy.
            with scratch.folder() as other:
                own = Path(other).parent != Path(made).parent
            scratch._remove_all()
            os._exit(0 if own else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
        assert left(place) == [Path(made) / "rows"]
        # Copies hold neither the lock nor the pipe that is watched.
        (root,) = scratch._ROOTS.values() if len(scratch._ROOTS) == 1 else [scratch._ROOTS[str(place)]]
        assert root.path == str(Path(made).parent)


def test_a_folder_that_somebody_tidied_away_is_made_anew(place):
    with scratch.folder() as first:
        pass
    (Path(first).parent / "lock").unlink()
    Path(first).parent.rmdir()
    with scratch.folder() as second:
        assert Path(second).is_dir()


def directory(relation):
    """Return where the engine of a relation writes what does not fit into memory."""
    return relation.query("r", "SELECT current_setting('temp_directory')").fetchall()[0][0]


@pytest.mark.parametrize("where", ["named", "none"])
def test_every_engine_of_ours_spills_where_it_is_told_to(place, rows, tmp_path, monkeypatch, where):
    if where == "none":
        monkeypatch.setenv(scratch.VARIABLE, scratch.NEVER)

    def right(folder):
        return folder == "" if where == "none" else Path(folder).parent.parent == place

    path = rows / "rows.parquet"
    with settings_of_engine() as settings, files.opened(path, ("t",), settings) as (relation, _):
        assert right(directory(relation))
    with files.opened(path, ("t",)) as (relation, _):
        assert directory(relation) == ""
    seen = []
    monkeypatch.setattr(files.relations, "fetch", lambda relation, *_: seen.append(directory(relation)))
    files.read(path, ("t",), frozenset())
    assert all(map(right, seen))
    assert seen
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS t")
    assert right(directory(open_table(str(tmp_path / "people.duckdb"), "people")))
    pytest.importorskip("ibis")
    table = open_table(f"duckdb://{tmp_path}/people.duckdb", "people")
    assert right(table.get_backend().con.sql("SELECT current_setting('temp_directory')").fetchall()[0][0])
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        connection.execute("CREATE TABLE people (t INTEGER)")
    from counterveil.data.sources import warehouses

    lite = open_table(f"sqlite://{tmp_path}/people.db", "people")
    with settings_of_engine() as settings, warehouses.opened(lite, ("t",), settings) as (relation, _):
        assert right(directory(relation))
    # Encoded rows lie in a file without a name.
    file = scratch.unnamed_file()
    assert (file is None) == (where == "none")
    if file is not None:
        assert place in Path(f"/proc/self/fd/{file.fileno()}").readlink().parents
        file.close()
    assert left(place) == []


@pytest.mark.parametrize("where", ["named", "none", ""])
def test_a_session_of_spark_encrypts_what_it_keeps_and_keeps_it_where_it_is_told_to(
    place, monkeypatch, where
):
    spark = pytest.importorskip("pyspark.sql").SparkSession
    if where != "named":
        monkeypatch.setenv(scratch.VARIABLE, where)
    seen = []
    monkeypatch.setattr(spark.Builder, "getOrCreate", lambda builder: seen.append(dict(builder._options)))
    monkeypatch.setattr(spark, "getActiveSession", lambda: None)
    with pytest.raises(DataError, match="CV-D071"):
        open_table("spark://", "people")
    (options,) = seen
    assert options["spark.io.encryption.enabled"] == "true"
    folder = options.get("spark.local.dir")
    assert (folder is not None) == (where == "named")
    assert folder is None or Path(folder).parent.parent == place


def test_rows_of_people_are_sorted_in_memory_where_none_may_lie_on_a_disk(rows, tmp_path, monkeypatch):
    monkeypatch.setenv(scratch.VARIABLE, scratch.NEVER)
    monkeypatch.chdir(tmp_path)
    assert Table.attach(rows / "rows.parquet", cv.Study("t", cv.Outcome("y", (0, 1)))).rows == 200_000
    assert list(tmp_path.iterdir()) == []

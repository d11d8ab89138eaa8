"""Rows on the side: in a file that nobody else can open, that leaves nothing behind and that no full disk needs."""

import os
import resource
import stat
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterveil as cv
from counterveil.data import SpooledRows, StreamedRows, Table, batches, rows_of_source, spool
from counterveil.errors import DataError

ROWS = 5000
LABELS = [f"label {place}" for place in range(300)]
COVARIATES = {"x": cv.Range(-1, 1), "site": cv.Categories(LABELS), "old": cv.Binary()}
STUDY = cv.Study(
    cv.Treatment("arm", arms=("a", "b", "c"), reference="a"), cv.Outcome("y", (0, 1)), COVARIATES
)
# The arm and the truth value take a byte each, the site two, the outcome four and the number eight.
ROW_BYTES = 1 + 4 + 8 + 2 + 1


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 2048)


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(folder))
    return folder


def written(folder, outcome=None, site=None):
    rng = np.random.default_rng(1)
    rows = {
        "arm": rng.choice(["a", "b", "c"], ROWS),
        "y": rng.uniform(size=ROWS) if outcome is None else np.full(ROWS, outcome),
        "x": rng.normal(size=ROWS),
        "site": rng.choice(LABELS, ROWS) if site is None else np.full(ROWS, site),
        "old": rng.integers(0, 2, ROWS),
    }
    path = folder / "rows.parquet"
    pq.write_table(pa.table(rows), path)
    return path


def open_files(folder):
    """Return the descriptors of this process that lead to rows in a folder, in a file with a name or without."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(f"{folder}/") and not target.endswith("/lock"):
            found.append(int(link.name))
    return found


def named_files(folder):
    """Return the files with a name in a folder that may hold rows."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def same(rows, table):
    found = list(rows.batches())
    for name in ("arm", "treated", "outcome"):
        joined = np.concatenate([getattr(batch, name) for batch in found])
        np.testing.assert_array_equal(joined, getattr(table, name), strict=True)
    for name, values in table.covariates.items():
        joined = np.concatenate([batch.covariates[name] for batch in found])
        np.testing.assert_array_equal(joined, values, strict=True)


def test_rows_come_back_to_the_bit_in_every_form(tmp_path, scratch):
    path = written(tmp_path)
    table = Table.attach(path, STUDY)
    rows = rows_of_source(path, STUDY)
    assert isinstance(rows, SpooledRows)
    assert {len(LABELS) - 1, 0} <= set(table.covariates["site"])
    same(rows, table)
    for one, other in zip(rows.batches(), rows.batches(), strict=True):
        np.testing.assert_array_equal(one.outcome, other.outcome)
        assert not one.outcome.flags.writeable
        assert not one.covariates["x"].flags.writeable


def test_the_file_has_no_name_and_is_for_its_owner_alone(tmp_path, scratch):
    rows = rows_of_source(written(tmp_path), STUDY)
    assert named_files(scratch) == []
    (descriptor,) = open_files(scratch)
    state = os.fstat(descriptor)
    assert state.st_nlink == 0
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert not os.get_inheritable(descriptor)
    assert state.st_size == ROW_BYTES * rows.rows


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, MemoryError])
def test_nothing_is_left_where_reading_is_interrupted(stopped, tmp_path, scratch, monkeypatch):
    of_columns, parts = Table.of_columns, []

    def interrupted(columns, study, survey=None):
        parts.append(len(open_files(scratch)))
        if len(parts) == 2:
            raise stopped
        return of_columns(columns, study, survey)

    monkeypatch.setattr(Table, "of_columns", staticmethod(interrupted))
    with pytest.raises(stopped) as caught:
        rows_of_source(written(tmp_path), STUDY)
    # The traceback still holds the frames, and with them whatever was not closed.
    assert caught.tb is not None
    assert parts == [1, 1]
    assert open_files(scratch) == []


def test_nothing_is_left_of_rows_that_do_not_fit(tmp_path, scratch):
    with pytest.raises(DataError, match="CV-D006") as caught:
        rows_of_source(written(tmp_path, site="elsewhere"), STUDY)
    assert caught.tb is not None
    assert open_files(scratch) == []
    assert named_files(scratch) == []


def test_a_disk_without_room_is_known_before_rows_are_written(tmp_path, scratch, monkeypatch):
    free = os.statvfs(scratch)
    monkeypatch.setattr(spool, "_RESERVE", free.f_bavail * free.f_frsize + (1 << 40))
    monkeypatch.setattr(SpooledRows, "add", lambda *_: pytest.fail("rows were written"))
    path = written(tmp_path)
    rows = rows_of_source(path, STUDY)
    assert isinstance(rows, StreamedRows)
    same(rows, Table.attach(path, STUDY))
    assert open_files(scratch) == []


def test_a_disk_that_fills_up_is_given_up(tmp_path, scratch):
    path = written(tmp_path)
    table = Table.attach(path, STUDY)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Writing beyond this limit fails as on a full disk, after a part was written.
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROW_BYTES * 3000, hard))
    try:
        rows = rows_of_source(path, STUDY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(rows, StreamedRows)
    assert open_files(scratch) == []
    same(rows, table)


def test_a_folder_that_is_named_must_be_usable(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(tmp_path / "missing"))
    with pytest.raises(DataError, match="CV-D057") as refused:
        rows_of_source(written(tmp_path), STUDY)
    assert str(tmp_path) not in str(refused.value)


def test_a_usual_folder_that_refuses_files_is_done_without(tmp_path, monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_SCRATCH", raising=False)

    def refused(**_):
        raise OSError

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert isinstance(rows_of_source(written(tmp_path), STUDY), StreamedRows)


def test_a_file_cut_short_is_refused(tmp_path, scratch):
    rows = rows_of_source(written(tmp_path), STUDY)
    os.ftruncate(open_files(scratch)[0], ROW_BYTES * ROWS - 1)
    with pytest.raises(DataError, match="CV-D058"):
        list(rows.batches())


def test_rows_on_the_side_do_not_change_with_their_source(tmp_path, scratch):
    path = written(tmp_path)
    table = Table.attach(path, STUDY)
    rows = rows_of_source(path, STUDY)
    written(tmp_path, outcome=0.5)
    same(rows, table)

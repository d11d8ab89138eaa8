"""The doubly robust effect of a file that is never in memory is that of the table in memory, to the bit."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.thinned import ALL

import counterveil as cv
from counterveil.data import Table, batches
from counterveil.errors import DataError

ROWS = 20_000
STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0),
    outcome=cv.Outcome("y", (0, 3)),
    covariates={
        "a": cv.Range(0, 1),
        "b": cv.Binary(one="yes", zero="no"),
        "c": cv.Categories(["u", "v", "w"]),
    },
    missing={"a": cv.Fill("0.5"), "c": cv.Drop()},
)
WORDS = {"protects": "record", "method": "doubly_robust", "epsilon": 1, "delta": "1e-6"}


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    rng = np.random.default_rng(2)
    a, b, c = rng.random(ROWS), rng.integers(0, 2, ROWS), rng.integers(0, 4, ROWS)
    t = rng.random(ROWS) < 0.2 + 0.4 * a + 0.2 * b
    y = 0.5 * t + a + 0.3 * b + 0.1 * c + rng.normal(0, 0.1, ROWS)
    labels = np.array(["u", "v", "w", None], dtype=object)[c]
    columns = {
        "t": t.astype(int),
        "y": y,
        "a": pa.array(a, mask=rng.random(ROWS) < 0.01),
        "b": np.array(["no", "yes"])[b],
        "c": labels,
    }
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=9000)
    return path


@pytest.fixture(autouse=True)
def stream_everything(monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)


@pytest.mark.parametrize(
    ("settings", "delta"), [(cv.settings.DoublyRobust(), "1e-6"), (cv.settings.DoublyRobust(degree=2), 0)]
)
def test_a_streamed_effect_is_the_one_in_memory_to_the_bit(parquet, settings, delta, tmp_path, monkeypatch):
    words = WORDS | {"settings": settings, "delta": delta}
    table = Table.attach(parquet, STUDY)
    known = cv.ate(table, STUDY, noise=cv.SeededNoise(7), **words).to_dict()
    relation = duckdb.read_parquet(str(parquet))
    pairs = [(str(tmp_path), parquet), ("none", relation)]
    if ALL:
        pairs += [(str(tmp_path), relation), ("none", parquet)]
    for scratch, source in pairs:
        monkeypatch.setenv("COUNTERVEIL_SCRATCH", scratch)
        assert cv.ate(source, STUDY, noise=cv.SeededNoise(7), **words).to_dict() == known
    assert abs(known["estimate"] - 0.5) < 0.05


@pytest.mark.parametrize(("scratch", "passes"), [("folder", 1), ("none", 11)])
def test_a_file_is_read_once_or_once_a_release_and_memory_holds_one_batch(
    parquet, scratch, passes, tmp_path, monkeypatch
):
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(tmp_path) if scratch == "folder" else scratch)
    seen, read = [], []
    of_columns = Table.of_columns

    def noted(columns, study, survey=None):
        table = of_columns(columns, study, survey)
        seen.append(table.rows)
        read.append(len(columns["t"]))
        return table

    monkeypatch.setattr(Table, "of_columns", staticmethod(noted))
    cv.ate(parquet, STUDY, noise=cv.SeededNoise(1), **WORDS)
    assert max(seen) <= batches.BATCH
    # Without rows on the side, a pass to check them and one for each release: centre, lengths, second moments,
    # residuals twice, two looks.
    assert sum(read) == passes * ROWS


def test_a_folder_that_cannot_be_used_costs_nothing(parquet, tmp_path, monkeypatch):
    with cv.Session(parquet, STUDY, budget=cv.Budget(2, "1e-5")) as session:
        monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(tmp_path / "missing"))
        with pytest.raises(DataError, match="CV-D057"):
            session.ate(**WORDS)
        assert session.remaining().epsilon == 2


def test_rows_that_do_not_fit_are_refused_before_anything_is_spent(parquet):
    narrow = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 3)),
        {"a": cv.Range(0, 1), "c": cv.Categories(["u", "v"])},
    )
    with cv.Session(parquet, narrow, budget=cv.Budget(2, "1e-5")) as session:
        with pytest.raises(DataError, match="CV-D003"):
            session.ate(**WORDS)
        assert session.remaining().epsilon == 2

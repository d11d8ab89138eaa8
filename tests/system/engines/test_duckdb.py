"""DuckDB over files, frames and relations: the same strata as numpy, to the bit."""

import duckdb
import polars as pl
import pyarrow.csv
import pyarrow.parquet
import pytest

from counterveil.data import strata_of_source


def parquet(rows, folder):
    pyarrow.parquet.write_table(rows, folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet"


def parquet_parts(rows, folder):
    for part in range(3):
        pyarrow.parquet.write_table(rows.slice(part * 200, 200), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def csv(rows, folder):
    pyarrow.csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def relation(rows, folder):
    return duckdb.connect().execute("CREATE TABLE rows AS SELECT * FROM rows").table("rows")


def pandas(rows, folder):
    return rows.to_pandas(ignore_metadata=True)


def polars(rows, folder):
    return pl.from_arrow(rows)


def polars_lazy(rows, folder):
    return pl.from_arrow(rows).lazy()


def arrow(rows, folder):
    return rows


def arrays(rows, folder):
    return rows.to_pydict()


SOURCES = [parquet, parquet_parts, csv, relation, pandas, polars, polars_lazy, arrow, arrays]


# How a column is read depends on its source and on the rule for missing values, and "all" has every column. Which of
# them make strata is left to the engine, which sees one table whatever the source: parquet files stand for all.
PAIRS = [
    pytest.param(
        source,
        (missing, names),
        id=f"{source.__name__}-{missing}-{names}",
        marks=() if missing == "fill" or (source is parquet and names == "all") else pytest.mark.slow,
    )
    for source in SOURCES
    for missing in ("fill", "drop", "none")
    for names in ("all", "two", "exact", "floats", "one", "none")
    if source is parquet or names == "all"
]


@pytest.mark.parametrize(("source", "case"), PAIRS, indirect=["case"])
def test_every_source_gives_the_same_strata(case, source, to_bits, tmp_path):
    made = source(case.rows, tmp_path)
    assert to_bits(strata_of_source(made, case.study, case.layout)) == case.expected()

"""Naming a table of a database."""

import duckdb
import pytest

from counterveil.data import open_table
from counterveil.errors import DataError


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "hospital.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE patients AS SELECT 1 AS t, 0.5 AS y")
    return path


def test_a_file_is_left_as_it_is():
    assert open_table("people.csv", None) == "people.csv"


def test_a_table_of_a_duckdb_file(database):
    assert open_table(database, "patients").columns == ["t", "y"]


def test_what_cannot_be_opened(database, tmp_path):
    for place, table, code in [
        (database, None, "CV-D070"),
        (database, "nobody", "CV-D071"),
        (str(tmp_path / "none.duckdb"), "patients", "CV-D071"),
        ("people.csv", "patients", "CV-D070"),
        ("postgresql://host/db", None, "CV-D070"),
    ]:
        with pytest.raises(DataError, match=code):
            open_table(place, table)

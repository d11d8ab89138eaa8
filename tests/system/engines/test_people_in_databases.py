"""People in a database are streamed in the order that they have in memory, in every type and spelling of their ids."""

import pytest
from tests.system.engines.databases import make
from tests.system.engines.people import STUDIES, columns, visits

from counterveil.data import Table, batches, rows_of_source
from counterveil.data.table import joined_tables


@pytest.fixture(scope="module", params=["postgres", "sqlite", "polars"])
def there(request, tmp_path_factory):
    rows = visits().drop_columns(["exact", "date"] if request.param == "postgres" else ["exact"])
    return make(request.param, request, tmp_path_factory.mktemp("people")).table("visits", rows)


@pytest.mark.parametrize("name", ["whole", "real", "spelled", "cluster", "text"])
def test_streamed_people_stand_as_in_memory(name, there, monkeypatch):
    if "date" not in there.columns and name == "text":
        pytest.skip("dates in PostgreSQL are in test_databases.py")
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 64)
    found = rows_of_source(there, STUDIES[name])
    assert columns(joined_tables(list(found.batches()))) == columns(Table.attach(visits(), STUDIES[name]))

"""A column of numbers in a database, and the same rows as texts beside one other text: no other row changes."""

import pyarrow as pa
import pytest
from tests.system.engines.databases import make

import counterveil as cv
from counterveil.data import Layout, Table, rows_of_source, strata_of_source

ROWS, CHANGED = 60, 7
FORMS = {
    "whole": (pa.int64(), [1, 2, 3], str),
    "real": (pa.float64(), [1.0, 2.0, 0.5], repr),
    "truth": (pa.bool_(), [True, False], lambda cell: str(cell).upper()),
    "spelled": (pa.int64(), [1, 2, 3], lambda cell: f" 0{cell}.0"),
}


def rows(cells, kind):
    places = [*range(ROWS)]
    return pa.table(
        {
            "t": pa.array([each // 3 % 2 for each in places], pa.int64()),
            "y": pa.array([each % 9 for each in places], pa.int64()),
            "row": pa.array(places, pa.int64()),
            "c": pa.array(cells, kind),
        }
    )


def encoded(source, study):
    """Return what every row but the changed one became, in memory and as it is streamed."""
    found = []
    for table in (Table.attach(source, study), rows_of_source(source, study)):
        held = table.covariates
        one = zip(held["row"].tolist(), held["c"].tolist(), table.arm.tolist(), strict=True)
        found.append({row: (code, arm) for row, code, arm in one if row != CHANGED})
    return found


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
@pytest.mark.parametrize("form", FORMS)
def test_one_cell_changes_no_other_row(kind, form, request, tmp_path):
    database, (number, cells, written) = make(kind, request, tmp_path), FORMS[form]
    held = [cells[each % len(cells)] for each in range(ROWS)]
    domain = cv.Categories(["1", "2.0", "oth"], other="oth")
    study = cv.Study(
        "t",
        cv.Outcome("y", (0, 9)),
        {"row": (0, ROWS), "c": domain},
        missing={"c": cv.Fill("oth")},
    )
    layout = Layout.of(study, ("c",))
    first = database.table(f"numbers_{form}", rows(held, number))
    counts = strata_of_source(first, study, layout)
    for place, cell in enumerate(("x", "", None)):
        texts = [written(each) for each in held]
        texts[CHANGED] = cell
        second = database.table(f"texts_{form}_{place}", rows(texts, pa.string()))
        for where in (None, "c != '1'", "c == 1"):
            one, two = (encoded(source, study.narrowed(where)) for source in (first, second))
            assert one == two
        moved = strata_of_source(second, study, layout)
        sizes = [
            dict(zip(each.place.tolist(), each.treated.tolist(), strict=True)) for each in (counts, moved)
        ]
        assert sum(abs(sizes[0].get(code, 0) - sizes[1].get(code, 0)) for code in range(3)) <= 2

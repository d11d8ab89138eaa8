"""What a cell means does not depend on the other cells of its column, whatever container or reader made a type of all.

One cell that is a text makes texts of the numbers of its column, a gap makes doubles of whole numbers, a fraction too:
`pandas.read_csv`, a mixed numpy array and others. Replacing it may change no other row.
"""

import csv
import datetime
import io
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.thinned import ALL, thinned_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import CounterveilError

FILL = cv.Fill
ROWS = 12
CHANGED = 5


def study(labels, where=None):
    """Return a study of which every role of a label has the labels "one", "two" and "other" in their places."""
    one, two, other = labels
    return cv.Study(
        cv.Treatment("t", treated=one),
        cv.Outcome("y", (0, 9)),
        {"row": (0, ROWS), "x": (0, 9), "c": cv.Categories([one, two, other], other=other)},
        missing={"c": FILL(other), "t": FILL(one), "x": FILL(1), "y": FILL(2)},
        where=where and where.format(one=one),
    )


# Cells of a column, and the labels that are declared of it as texts.
BASES = {
    "whole": ([1, 2, 3], ("1", "2", "oth")),
    "spelled": ([1, 2, 3], ("01", "2.0", "oth")),
    "fractions": ([0.5, 1.0, 2.0], ("0.50", "1", "oth")),
    "truths": ([True, False], ("TRUE", "no", "oth")),
    "truths of numbers": ([True, False], ("1", "0", "oth")),
    "gaps": ([1, None, 2], ("1", "2", "oth")),
    "texts": (["1", "a", "b"], ("1", "a", "oth")),
    "large": ([2**53 + 1, 5, 2**60], (str(2**53 + 1), "5", "oth")),
}
CELLS = [
    "", "x", None, np.nan, 1, "1.0", True, 1.0, "1", "01", " 1", "TRUE", 2**53, 1e300, np.inf, b"1",
    "yes", "F", "0x1", "1e0", "inf", "NA", "N/A", "nan", "2", 2, 0.5, -1, 10**30, 2**70, pd.NA, pd.NaT,
    Decimal("1.0"), Decimal("0.5"), np.float32(0.5), np.datetime64("2024-01-01"),
    datetime.date(2024, 1, 1), datetime.time(9),
]  # fmt: skip


def written(cells):
    """Return the rows as a CSV text."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(cells)
    lines.writerows(zip(*cells.values(), strict=True))
    return text.getvalue()


def own_csv(cells, folder):
    (folder / "rows.csv").write_text(written(cells), encoding="utf-8")
    return folder / "rows.csv"


def parquet(cells, folder):
    pq.write_table(pa.table(cells), folder / "rows.parquet")
    return folder / "rows.parquet"


def from_csv(read):
    return lambda cells, folder: read(own_csv(cells, folder))


def frame(cells):
    # Column by column: pandas infers the type of each.
    return pd.DataFrame({name: pd.Series(values) for name, values in cells.items()})


CONTAINERS = {
    "lists": lambda cells, _: cells,
    "numpy": lambda cells, _: {name: np.array(values) for name, values in cells.items()},
    "numpy objects": lambda cells, _: {
        name: np.array(values, dtype=object) for name, values in cells.items()
    },
    "pandas": lambda cells, _: frame(cells),
    "pandas objects": lambda cells, _: pd.DataFrame(cells, dtype=object),
    "pandas string": lambda cells, _: frame(cells).astype({"t": "string", "c": "string"}),
    "pandas nullable": lambda cells, _: frame(cells).convert_dtypes(),
    "pandas categories": lambda cells, _: frame(cells).astype({"t": "category", "c": "category"}),
    "pandas arrow": lambda cells, _: frame(cells).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda cells, _: pl.DataFrame(cells, strict=False),
    "pyarrow": lambda cells, _: pa.table(cells),
    "parquet": parquet,
    "duckdb": lambda cells, _: duckdb.from_df(frame(cells)),
    "duckdb arrow": lambda cells, _: duckdb.from_arrow(pa.table(cells)),
    "our csv": own_csv,
    "pandas csv": from_csv(pd.read_csv),
    "pandas csv arrow": from_csv(lambda path: pd.read_csv(path, engine="pyarrow")),
    "polars csv": from_csv(lambda path: pl.read_csv(path, infer_schema_length=None)),
    "pyarrow csv": from_csv(pyarrow.csv.read_csv),
    "duckdb csv": from_csv(lambda path: duckdb.read_csv(str(path), header=True, delimiter=",")),
}
READERS = [name for name in CONTAINERS if name.endswith(("csv", "csv arrow"))]
ROLES = {
    "category": ("c", None),
    "treatment": ("t", None),
    "where": ("c", "c == '{one}'"),
    "where not": ("c", "c != '{one}'"),
    "outcome": ("y", None),
    "number": ("x", None),
}


def rows(base, column):
    """Return equal rows; the labels of `column` are those of the base."""
    held = BASES[base][0]
    numbers = [each % 9 for each in range(ROWS)]
    cells = {"t": numbers, "y": numbers, "row": [*range(ROWS)], "x": numbers, "c": numbers}
    cells["t"] = [BASES[base][1][each // 3 % 2] for each in range(ROWS)]
    if column == "t":
        cells["t"] = [held[each // 3 % 2] for each in range(ROWS)]
    if column == "c":
        cells["c"] = [held[each % len(held)] for each in range(ROWS)]
    return cells


def encoded(source, declared):
    """Return what every row became, by its number; None where the rows are refused."""
    try:
        table = Table.attach(source, declared)
    except CounterveilError:
        return None
    found = zip(
        table.arm.tolist(),
        table.outcome.tolist(),
        *(values.tolist() for name, values in table.covariates.items() if name != "row"),
        strict=True,
    )
    return dict(zip(table.covariates["row"].tolist(), found, strict=True))


def others(found):
    return None if found is None else {row: one for row, one in found.items() if row != CHANGED}


def made(name, cells, folder):
    """Return a container of the cells, None where it cannot hold them together."""
    try:
        return CONTAINERS[name](cells, folder)
    except (Exception, pl.exceptions.PanicException):
        return None


NUMBERS = ("outcome", "number")
TYPED = ("pyarrow", "parquet", "duckdb arrow")
CASES = [
    (name, role, base)
    for name in CONTAINERS
    for role in ROLES
    for base in BASES
    # Numbers have no labels: one base is enough.
    if (role not in NUMBERS or base == "whole") and (role != "treatment" or base not in ("gaps", "texts"))
]


def _kept():
    """Return every container with every role and, in turn, a base."""
    bases = [*BASES]
    for place, (name, role, base) in enumerate(CASES):
        turn = bases[([*CONTAINERS].index(name) + [*ROLES].index(role)) % len(bases)]
        if base == turn or (role in NUMBERS and place % 2) or (base == "whole" and role == "category"):
            yield name, role, base


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "role", "base"), thinned_rows(CASES, *_kept()))
def test_one_cell_changes_no_other_row(name, role, base, tmp_path):
    column, where = ROLES[role]
    declared, cells = study(BASES[base][1], where), rows(base, column)
    wanted = others(encoded(cells, declared))
    assert wanted is not None
    assert others(encoded(made(name, cells, tmp_path), declared)) in (wanted, None)
    seen = 0
    for cell in CELLS if ALL else CELLS[:2] + CELLS[2 + CASES.index((name, role, base)) % 8 :: 8]:
        changed = cells | {column: [*cells[column]]}
        changed[column][CHANGED] = cell
        source = made(name, changed, tmp_path)
        found = None if source is None else others(encoded(source, declared))
        if found is not None:
            assert found == wanted, repr(cell)
            seen += 1
    # Some containers hold one type, and not every text is a number.
    assert seen or name in TYPED


SPELLINGS = [
    "1", "1.0", "01", " 1", "1e0", "TRUE", "true", "t", "yes", "2", "0", "no", "F", "oth", "zz", "", "NA", "0x1",
]  # fmt: skip
LABELS = [("1", "2", "oth"), ("true", "2", "oth"), ("1.0", "0", "oth"), ("yes", "F", "oth"), (1, 0, "oth")]


@pytest.mark.filterwarnings("ignore")
def test_every_reader_finds_the_same_labels_in_a_file(tmp_path):
    cells, covariates = rows("texts", "x"), {"row": (0, ROWS)}
    for each, cell in enumerate(SPELLINGS):
        # Of one spelling alone, which gives the column its type, and with another.
        for beside in (cell, SPELLINGS[each - 1], "zz"):
            for labels in LABELS:
                name = f"c{len(covariates)}"
                cells[name] = [cell, beside] * (ROWS // 2)
                covariates[name] = cv.Categories(labels, other="oth")
    missing = dict.fromkeys([name for name in covariates if name != "row"], FILL("oth"))
    declared = cv.Study(cv.Treatment("t", treated="1"), cv.Outcome("y", (0, 9)), covariates, missing=missing)
    wanted = encoded(own_csv(cells, tmp_path), declared)
    assert len(wanted) == ROWS
    for name in READERS:
        assert encoded(made(name, cells, tmp_path), declared) == wanted, name


# Ids of six people with two rows each, in an order that is not theirs.
IDS = {
    "whole": [10, 12, 100000, 4, 5, 6],
    "doubles": [10.0, 12.0, 1e5, 4.0, 5.0, 6.0],
    "spelled": ["010", "12.0", "1e5", " 4", "+5", "6e0"],
    "large": [2**60, 2**60 + 1, 7, 8, 9, -3],
}


def by_person(source, declared):
    """Return one tuple a person in their order, the first of it the first row of each; None where refused."""
    try:
        table = Table.attach(source, declared)
    except CounterveilError:
        return None
    return [*zip(table.covariates["row"].tolist(), table.arm.tolist(), table.outcome.tolist(), strict=True)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "ids"),
    thinned_rows(
        [(name, ids) for name in CONTAINERS for ids in IDS],
        *(
            (name, [*IDS][(place + more) % len(IDS)])
            for place, name in enumerate(CONTAINERS)
            for more in (0, 2)
        ),
    ),
)
def test_one_cell_changes_no_other_person_nor_their_order(name, ids, tmp_path):
    declared = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 9)),
        {"row": (0, ROWS)},
        people=cv.People("id", rules={"row": "min", "t": "ever"}),
    )
    held = IDS[ids] * 2
    cells = {"id": held, "t": [each % 2 for each in range(ROWS)], "y": [each % 9 for each in range(ROWS)]}
    cells["row"] = [*range(ROWS)]

    def strangers(found):
        """Return everyone but the person of the changed row, and new ones."""
        mine = {row for row in range(ROWS) if held[row] == held[CHANGED]}
        return None if found is None else [one for one in found if one[0] not in mine]

    wanted = strangers(by_person(cells, declared))
    assert wanted
    for cell in CELLS if ALL else ["x", *CELLS[[*CONTAINERS].index(name) % 7 :: 7]]:
        changed = cells | {"id": [*held]}
        changed["id"][CHANGED] = cell
        source = made(name, changed, tmp_path)
        found = None if source is None else strangers(by_person(source, declared))
        assert found in (wanted, None), repr(cell)


def sizes(found, code):
    return sum(one[-1] == code for one in found.values())


@pytest.mark.parametrize(("spelled", "cell"), [(float, "x"), ("0{}".format, ""), ("0{}".format, "x")])
def test_the_size_of_a_group_moves_by_one(spelled, cell, tmp_path):
    declared = cv.Study(
        "t",
        cv.Outcome("y", (0, 1)),
        {"row": (0, 400), "c": cv.Categories(["1", "2", "oth"], other="oth")},
        missing={"c": FILL("oth")},
    )  # fmt: skip
    cells = {
        "t": [0, 1] * 200,
        "y": [0.5] * 400,
        "row": [*range(400)],
        "c": [spelled(1 + each % 3) for each in range(400)],
    }
    changed = cells | {"c": [cell, *cells["c"][1:]]}
    for name in CONTAINERS:
        pair = [made(name, one, tmp_path) for one in (cells, changed)]
        if all(one is not None for one in pair):
            found = [encoded(one, declared) for one in pair]
            if None in found:
                continue
            assert abs(sizes(found[0], 0) - sizes(found[1], 0)) <= 1, name
            for where in ("c != '1'", "c == '1'"):
                kept = [len(encoded(one, declared.narrowed(where))) for one in pair]
                assert abs(kept[0] - kept[1]) <= 1, (name, where)

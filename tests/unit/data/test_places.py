"""Parts of rows by their places: those of `two_parts`, at every size, in every block, at every pass."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.table import two_parts_by_place
from counterveil.numerics.public_choices import in_first_part, last_of_first_part, two_parts

STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, treated=1, control=0)


@pytest.mark.parametrize(
    ("rows", "first"), [(4, 1), (4, 3), (11, 4), (11, 11), (1000, 500), (65_537, 32_768), (200_001, 7)]
)
def test_parts_are_told_block_by_block(rows, first):
    last = last_of_first_part(rows, first)
    known = two_parts(rows, first)[0]
    block = 7 if rows <= 1000 else 30_000
    found = [in_first_part(start, min(block, rows - start), last) for start in range(0, rows, block)]
    np.testing.assert_array_equal(np.flatnonzero(np.concatenate(found)), known)


def table(rows):
    rng = np.random.default_rng(3)
    columns = {"t": np.arange(rows) % 2, "y": rng.random(rows), "x": rng.random(rows)}
    return Table.attach(columns, STUDY)


def sums(block):
    return (np.array([block.rows, block.outcome.sum(), np.count_nonzero(block.treated)]),)


# Of 41 rows in blocks of 8, the last block has one row.
@pytest.mark.parametrize("block", [8, 1 << 14])
def test_a_part_adds_up_its_own_rows(block, monkeypatch):
    monkeypatch.setattr("counterveil.data.table.TABLE_ROWS", block)
    monkeypatch.setenv("COUNTERVEIL_CORES", "2")
    rows = table(41)
    for part, own in zip(two_parts_by_place(rows, 20), two_parts(41, 20), strict=True):
        assert part.rows == len(own)
        assert part.study is STUDY
        (found,) = part.run(sums)
        assert found.tolist() == sums(rows.take(own))[0].tolist()

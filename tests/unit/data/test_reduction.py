"""One row for each person does not depend on where rows stand, nor what is public in it on outcomes."""

from dataclasses import fields
from itertools import product

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.data import Layout, Table, batches, rows_of_source, strata_of_source, strata_of_table
from counterveil.data.cells import from_array, from_cells
from counterveil.data.people import whole_people
from counterveil.errors import CounterveilError, DataError

AGES = cv.Range(0, 9)


def frame(people=60, seed=1):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, 30, people))
    rows = len(who)
    return pd.DataFrame(
        {
            "id": who,
            "arm": rng.integers(0, 2, rows),
            "y": rng.normal(4, 3, rows) * 10.0 ** rng.integers(-9, 9, rows),
            "age": rng.normal(4, 3, rows),
            "site": rng.choice(["a", "b", None], rows),
            "day": rng.choice([1, 2, "soon", None], rows),
        }
    )


def study(**more):
    known = {"age": AGES, "site": cv.Categories(["a", "b"])}
    usual = {"order": "day", "missing": {"site": cv.drafting.Fill("a")}, "covariates": known}
    return cv.Study("arm", "y", (-9, 9), control=0, person="id", **(usual | more))


@pytest.mark.parametrize(
    "declared",
    [
        study(per_person={"y": "sum", "arm": "first", "age": "mean"}),
        study(per_person={"y": "last", "arm": "last", "site": "last", "age": "last"}, most_rows=4),
        # Without a declared label of the control arm, one of several others may be anyone's.
        cv.Study("arm", "y", (-9, 9), person="id", per_person={"arm": "ever"}),
    ],
)
def test_rows_may_come_in_any_order(declared):
    rows = frame()
    wanted = Table.attach(rows, declared)
    for seed in range(3):
        found = Table.attach(rows.sample(frac=1, random_state=seed), declared)
        assert found.arm.tobytes() == wanted.arm.tobytes()
        assert found.outcome.tobytes() == wanted.outcome.tobytes()
        for name, values in wanted.covariates.items():
            assert found.covariates[name].tobytes() == values.tobytes()


def test_several_other_labels_are_refused_in_any_order():
    cells = {"id": [1, 1, 2, 3, 4], "arm": ["old", "older", "new", "old", "new"], "y": [1, 2, 3, 4, 5]}
    declared = cv.Study("arm", "y", (0, 9), treated="new", person="id")
    codes = set()
    for order in ([0, 1, 2, 3, 4], [1, 0, 2, 3, 4]):
        moved = {name: [values[place] for place in order] for name, values in cells.items()}
        try:
            codes.add(Table.attach(moved, declared).rows)
        except CounterveilError as error:
            codes.add(error.code)
    assert len(codes) == 1


@pytest.mark.parametrize("most_rows", [1, 2])
def test_outcomes_of_tied_rows_change_the_outcome_alone(most_rows):
    """All outcomes of three rows, two of them alike in all but the outcome, at one place in the order."""
    rules = {"arm": "first", "age": "mean", "y": "last"}
    declared = study(per_person=rules, most_rows=most_rows, missing={"y": cv.drafting.Fill(0)})
    others = {"id": [8, 9, 10, 11], "arm": [0, 1, 0, 1], "y": [1] * 4, "age": [1] * 4, "site": ["a"] * 4}
    others["day"] = [1] * 4
    public, private = set(), set()
    for y in product([0, 3, None], repeat=3):
        own = {"id": [7] * 3, "arm": [1, 0, 1], "age": [2, 5, 2], "site": ["b", "a", "b"], "day": [1, 1, 1]}
        rows = {name: (list(y) if name == "y" else own[name]) + cells for name, cells in others.items()}
        table = Table.attach(rows, declared)
        public.add((int(table.arm[0]), *(float(values[0]) for values in table.covariates.values())))
        private.add(int(table.outcome[0]))
    assert len(public) == 1
    assert len(private) > 1


def parts(*ids):
    make = from_array if isinstance(ids[0][0], int) else from_cells
    found, place = [], 0
    for some in ids:
        who = make(np.array(some), "id") if make is from_array else make(list(some), "id")
        found.append({"id": who, "row": from_array(np.arange(place, place + len(some)), "row")})
        place += len(some)
    return iter(found)


@pytest.mark.parametrize(
    "ids", [[(1, 1, 2), (2, 2), (2, 3), (4,), (4, 5)], [("a", " a", "b"), ("b ",), ("b", "aa")]]
)
def test_parts_are_cut_where_people_end(ids):
    found = list(whole_people(parts(*ids), "id"))
    seen = [set(part["row"].values.tolist()) for part in found]
    assert sorted(row for rows in seen for row in rows) == list(range(sum(map(len, ids))))
    everyone = [str(each).strip() for some in ids for each in some]
    owners = [{everyone[row] for row in rows} for rows in seen]
    assert all(not one & other for place, one in enumerate(owners) for other in owners[:place])


@pytest.mark.parametrize("ids", [[(1, 2, 1)], [(1, 2), (1, 3)], [("b", "a")], [("aa",), ("b",)]])
def test_a_stream_that_is_not_sorted_is_refused(ids):
    with pytest.raises(DataError, match="CV-D016"):
        list(whole_people(parts(*ids), "id"))


def test_large_files_are_refused_as_frames_are(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 16)
    rows = frame().assign(day=0)
    varied = study(order=None, per_person={"age": "mean", "site": "constant"}, missing={})
    for wrong in (
        rows,
        rows.assign(arm=rows["id"] % 2, site="a", y=rows["y"].astype(str).where(rows["id"] != 50, "x")),
        rows.assign(id=rows["id"].astype(float).where(rows["id"] != 40)),
    ):
        wrong.to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(CounterveilError) as there:
            rows_of_source(tmp_path / "rows.parquet", varied)
        with pytest.raises(CounterveilError) as here:
            Table.attach(wrong, varied)
        assert str(there.value) == str(here.value)


@pytest.mark.parametrize("prefix", [False, True])
def test_strata_of_people_in_large_files_are_those_of_tables(tmp_path, monkeypatch, prefix):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    rows = frame().assign(day=1)
    rows.to_parquet(tmp_path / "rows.parquet")
    known = {"age": AGES.cut(2, 5), "site": cv.Categories(["a", "b"])}
    declared = study(covariates=known, per_person={"arm": "first"})
    layout = Layout.of(declared)
    there = strata_of_source(tmp_path / "rows.parquet", declared, layout, prefix)
    here = strata_of_table(Table.attach(rows, declared), layout, prefix)
    assert there.rows == here.rows
    for field in fields(here):
        found, wanted = getattr(there, field.name), getattr(here, field.name)
        assert np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted

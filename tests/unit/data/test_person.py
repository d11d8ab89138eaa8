"""Several rows a person: every rule and source, order, and what one person can change."""

from decimal import Decimal
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from tests.thinned import examples
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table, batches, rows_of_source
from counterveil.data.cells import from_array, from_cells
from counterveil.data.people import identity, whole_people
from counterveil.errors import CounterveilError, DataError

AGES = cv.Range(0, 9)


def study(**more):
    known = {"age": AGES, "site": cv.Categories(["a", "b"])}
    return study_of("arm", "y", (0, 9), known, control=0, person="id", order="day", **more)


def visits(people=40, seed=0):
    """Rows of people in a mixed order; treatment is theirs, all else varies."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, 6, people))
    frame = pd.DataFrame(
        {
            "id": who,
            "arm": (who % 2),
            "y": rng.uniform(0, 9, len(who)),
            "age": rng.integers(0, 10, len(who)).astype(float),
            "site": rng.choice(["a", "b"], len(who)),
            "day": rng.permutation(len(who)),
        }
    )
    return frame.sample(frac=1, random_state=seed)


def outcomes(table):
    low = float(table.study.outcome_range[0])
    return low + float(table.outcome_unit) * table.outcome


@pytest.mark.parametrize("rule", ["mean", "sum", "max", "min", "first", "last"])
def test_rules_of_numbers_are_those_of_pandas(rule):
    frame = visits()
    frame["y"] /= 10
    own = frame.sort_values("day").groupby("id")
    table = Table.attach(frame, study(per_person={"y": rule} | ({"age": rule} if rule != "sum" else {})))
    assert table.rows == frame["id"].nunique()
    np.testing.assert_allclose(outcomes(table), own["y"].agg(rule).clip(0, 9), atol=1e-5)
    expected = own["age"].agg("first" if rule == "sum" else rule)
    np.testing.assert_allclose(table.covariates["age"], expected)
    assert (table.covariates["site"] == (own["site"].first() == "b")).all()
    assert (table.treated == (own["arm"].first() == 1)).all()


def test_missing_values_are_passed_over_and_then_follow_the_rule():
    frame = visits()
    frame.loc[frame["id"] == 3, "y"] = np.nan
    frame.loc[(frame["id"] == 4) & (frame["day"] == frame.loc[frame["id"] == 4, "day"].min()), "age"] = np.nan
    with pytest.raises(CounterveilError, match="CV-D003"):
        Table.attach(frame, study())
    table = Table.attach(frame, study(missing={"y": cv.Fill(7), "age": cv.Fill(0)}))
    assert outcomes(table)[3] == pytest.approx(7, abs=1e-5)
    own = frame.sort_values("day").groupby("id")["age"].first()
    np.testing.assert_allclose(table.covariates["age"], own.fillna(0))
    assert Table.attach(frame, study(missing={"y": cv.Drop(), "age": cv.Fill(0)})).rows == table.rows - 1


def test_people_may_be_texts_and_are_sorted_as_their_numbers_are():
    frame = visits()
    wanted = Table.attach(frame, study())
    texts = frame.assign(id=frame["id"].astype(str))
    assert (Table.attach(texts, study()).outcome == wanted.outcome).all()


RULES = [
    {"y": "mean", "age": "first", "arm": "first"},
    {"y": "sum", "age": "max", "arm": "ever"},
    {"y": "last", "age": "last", "arm": "last"},
    {"y": "any", "age": "mean", "arm": "first"},
]


@pytest.mark.parametrize(
    ("rules", "max_rows_per_person"),
    [
        *zip(RULES[:2], (2, None), strict=True),
        *(pytest.param(rules, most, marks=pytest.mark.slow) for rules in RULES for most in (1, 2, 3, None)),
    ],
)
def test_a_person_changes_one_row_at_most(rules, max_rows_per_person):
    """All rows that one of four people can have, up to three of them, anywhere among the others' rows."""
    people = {"person": "id", "per_person": rules, "order": "day", "max_rows_per_person": max_rows_per_person}
    declared = study_of("arm", "y", (0, 3), {"age": AGES}, control=0, **people)
    # A text among the days must not turn the other's 5 and 10 into texts, whose order is the reverse.
    others = [(1, 1, 2, 3, 0), (3, 0, 1, 4, 10), (3, 0, 3, 5, 5), (4, 1, 0, 6, 0), (5, 0, 1, 1, 2)]
    cells = list(product([2], [0, 1], [0, 3], [1, 8], [0, "soon"]))
    seen = []
    for count in (1, 2, 3):
        for own in product(cells[:: (1, examples(3, 1), examples(5, 3))[count - 1]], repeat=count):
            for rows in ([*own, *others], [*others, *own], [*others[:2], *own, *others[2:]]):
                columns = dict(
                    zip(("id", "arm", "y", "age", "day"), map(list, zip(*rows, strict=True)), strict=True)
                )
                table = Table.attach(columns, declared)
                seen.append(np.column_stack([table.arm, table.outcome, table.covariates["age"]]))
    found = np.array(seen)
    assert found.shape[1] == 5
    moved = (found != found[0]).any(axis=2)
    assert moved.any(axis=0).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"person": "arm"}, "CV-S016"),
        ({"person": "id", "order": "id"}, "CV-S016"),
        ({"person": "id", "order": "day", "max_rows_per_person": 0}, "CV-S016"),
        ({"person": "id", "max_rows_per_person": 3}, "CV-S016"),
        ({"person": "id", "per_person": {"y": "median"}}, "CV-S016"),
        ({"person": "id", "per_person": {"age": "sum"}}, "CV-S016"),
        ({"person": "id", "per_person": {"age": "first"}}, "CV-S016"),
        ({"person": "id", "per_person": {"weight": "mean"}}, "CV-S016"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(more, code):
    with pytest.raises(CounterveilError, match=code):
        study_of("arm", "y", (0, 9), {"age": AGES}, control=0, **more)


def test_rows_of_nobody_and_treatments_that_vary_are_refused():
    frame = visits()
    with pytest.raises(CounterveilError, match="CV-D020"):
        Table.attach(frame.assign(arm=np.arange(len(frame)) % 2), study())
    with pytest.raises(CounterveilError, match="CV-D019"):
        Table.attach(frame.assign(id=frame["id"].where(frame["id"] != 5)), study())


def test_an_account_counts_one_unit(tmp_path):
    frame = visits(200)
    cv.open_ledger(tmp_path / "a.db", create=True).close()
    with cv.Session(
        frame, study(randomised=True), budget=cv.Budget(4), ledger=tmp_path / "a.db", dataset="v"
    ) as session:
        session.ate(protects="record", epsilon=1)
    plain = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 9)), assignment=cv.Trial())
    with (
        cv.Session(frame, plain, ledger=tmp_path / "a.db", dataset="v") as session,
        pytest.raises(CounterveilError) as refused,
    ):
        session.ate(protects="record", epsilon=1)
    assert refused.value.code == "CV-L049"


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


def reduced_study(**more):
    known = {"age": AGES, "site": cv.Categories(["a", "b"])}
    usual = {"order": "day", "missing": {"site": cv.Fill("a")}, "covariates": known}
    return study_of("arm", "y", (-9, 9), control=0, person="id", **(usual | more))


@pytest.mark.parametrize(
    "declared",
    [
        reduced_study(per_person={"y": "sum", "arm": "first", "age": "mean"}),
        reduced_study(
            per_person={"y": "last", "arm": "last", "site": "last", "age": "last"}, max_rows_per_person=4
        ),
        # Without a declared label of the control arm, one of several others may be anyone's.
        cv.Study("arm", cv.Outcome("y", (-9, 9)), people=cv.People("id", rules={"arm": "ever"})),
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


def verdict(rows, declared):
    """Return the arms of people, or the code of the refusal."""
    try:
        return Table.attach(rows, declared).arm.tolist()
    except CounterveilError as error:
        return error.code


@pytest.mark.parametrize("rule", ["constant", "ever"])
def test_several_other_labels_are_refused_in_any_order(rule):
    cells = {"id": [1, 1, 2, 3, 4], "arm": ["old", "older", "new", "old", "new"], "y": [1, 2, 3, 4, 5]}
    declared = cv.Study(
        cv.Treatment("arm", treated="new"),
        cv.Outcome("y", (0, 9)),
        people=cv.People("id", rules={"arm": rule}),
    )
    for order in permutations(range(5)):
        moved = {name: [values[place] for place in order] for name, values in cells.items()}
        assert verdict(moved, declared) == "CV-D020"


# The labels of one person's two rows, and what becomes of them where "new" is treated and where "old" is control.
EVER = {
    ("new", "new"): (1, 1),
    ("new", "old"): (1, 1),
    ("old", "old"): (0, 0),
    ("old", "x"): ("CV-D020", "CV-D005"),
    ("new", "x"): (1, "CV-D005"),
    ("x", "x"): ("CV-D005", "CV-D005"),
    ("x", "z"): ("CV-D020", "CV-D020"),
    ("new", None): (1, 1),
    ("old", None): (0, 0),
    ("x", None): ("CV-D005", "CV-D005"),
}


@pytest.mark.parametrize("labels", EVER)
@pytest.mark.parametrize("control", [None, "old"])
def test_ever_treated_depends_on_the_rows_of_one_person(labels, control, tmp_path, monkeypatch):
    """In both orders, whatever others hold, in memory and from files in blocks of one row."""
    declared = cv.Study(
        cv.Treatment("arm", treated="new", control=control),
        cv.Outcome("y", (0, 9)),
        people=cv.People("id", rules={"arm": "ever"}),
    )
    wanted = EVER[labels][control is not None]
    others = ["new", "new", "old", "old"]
    for own in {labels, labels[::-1]}:
        for place, who in enumerate(([9, 9], [0, 0])):
            rows = pd.DataFrame({"id": [*who, 1, 2, 3, 4], "arm": [*own, *others], "y": 1.0})
            found = verdict(rows, declared)
            assert (found if isinstance(found, str) else found[-1 if place == 0 else 0]) == wanted
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 1)
    rows.to_parquet(tmp_path / "rows.parquet")
    assert verdict_of_file(tmp_path / "rows.parquet", declared) == found


def verdict_of_file(path, declared):
    try:
        rows = rows_of_source(path, declared)
    except CounterveilError as error:
        return error.code
    return [arm for table in rows.batches() for arm in table.arm.tolist()]


LATE = np.datetime64("2024-10-27T00:16:40", "ns")
# Columns of two places in time, the first one before the second.
ORDERS = {
    "whole numbers": [2**53 - 2, 2**53 - 1],
    "unsigned": np.array([2**63, 2**64 - 1], dtype=np.uint64),
    "texts of whole numbers": ["9", "10"],
    "exact numbers": [Decimal(2**53 - 2), Decimal(2**53 - 1)],
    "with a gap": ["2024-01-01", ""],
    "without an end": ["2024-01-01", "infinity"],
    "without a start": ["-infinity", "2024-01-01"],
    "nanoseconds": np.array([LATE, LATE + np.timedelta64(1, "ns")]),
}
ZONED = [pd.Timestamp(LATE).tz_localize("UTC").tz_convert("Europe/Berlin")]
ZONED += [ZONED[0] + pd.Timedelta(seconds=3599)]


def last_outcomes(source):
    declared = cv.Study(
        cv.Treatment("arm", control=0),
        cv.Outcome("y", (0, 9)),
        people=cv.People("id", rules={"y": "last"}, order="when"),
    )
    return Table.attach(source, declared).outcome.tolist()


@pytest.mark.parametrize("kind", ORDERS)
def test_places_in_time_keep_their_order(kind):
    for y, last in ((0, 9), (9, 0)):
        rows = {"id": [1, 1, 2, 2, 3, 3, 4, 4], "arm": [0, 0, 1, 1] * 2, "y": [y, last] * 4}
        when = ORDERS[kind]
        rows["when"] = np.tile(when, 4) if isinstance(when, np.ndarray) else when * 4
        assert last_outcomes(rows) == [2**24 * (last > 0)] * 4


@pytest.mark.parametrize("max_rows_per_person", [1, 2])
def test_outcomes_of_tied_rows_change_the_outcome_alone(max_rows_per_person):
    """All outcomes of three rows, two of them alike in all but the outcome, at one place in the order."""
    rules = {"arm": "first", "age": "mean", "y": "last"}
    declared = reduced_study(
        per_person=rules, max_rows_per_person=max_rows_per_person, missing={"y": cv.Fill(0)}
    )
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
    varied = reduced_study(order=None, per_person={"age": "mean", "site": "constant"}, missing={})
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


@pytest.mark.parametrize(
    ("cells", "who"),
    [
        ((7, 7.0, "7", "007", "7.0", " +7e0", "70E-1", "0.07e2", True + 6), "7"),
        ((100000, 1e5, "1e5", "1E+05", Decimal("1E5")), "100000"),
        ((True, "true", "TRUE", 1, "1"), "1"),
        ((False, "false", "-0", "0e9"), "0"),
        ((2**60, str(2**60)), str(2**60)),
        (("12e45",), "12e45"),
        (("1.5e0",), "1.5e0"),
        (("t", "t "), "t"),
    ],
)
def test_what_identifies_a_person_is_one_in_every_spelling(cells, who):
    assert {identity(cell) for cell in cells} == {who}

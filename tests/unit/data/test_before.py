"""Changes since before, in columns and in periods: what they are, what is refused, and what one person can move."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.panels import changes, complete
from counterveil.errors import CounterveilError
from counterveil.privacy import Unit

STEP = 1e-5  # outcomes are rounded down to whole steps


def wide(**more):
    return study_of("t", "y", (0, 9), control=0, before="y0", **more)


def long(**more):
    given = {"time": "year", "before": [1, 2], "after": [3]} | more
    return study_of("t", "y", (0, 9), control=0, person="id", **given)


def values(table):
    low = float(table.study.outcome_range[0])
    return low + float(table.outcome_unit) * table.outcome


def panel(people=20, seed=0):
    """Rows of people in three years, in a mixed order; half are treated in the last year."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": np.repeat(np.arange(people), 3), "year": np.tile([1, 2, 3], people)})
    frame["t"] = frame["id"] % 2
    frame["d"] = frame["t"] * (frame["year"] == 3)
    frame["y"] = rng.uniform(0, 9, len(frame))
    return frame.sample(frac=1, random_state=seed)


def test_an_outcome_is_the_change_since_before():
    rng = np.random.default_rng(1)
    data = {"t": np.arange(40) % 2, "y": rng.uniform(-2, 11, 40), "y0": rng.uniform(-2, 11, 40)}
    table = Table.attach(data, wide())
    assert table.study.outcome_range == (-9, 9)
    np.testing.assert_allclose(values(table), np.clip(data["y"], 0, 9) - np.clip(data["y0"], 0, 9), atol=STEP)


def test_ranges_of_both_make_that_of_the_change():
    study = wide(before_range=(2, 5))
    assert study.outcome_range == (-5, 7)
    assert wide(change_range=(-3, 4)).outcome_range == (-3, 4)
    data = {"t": [0, 0, 1, 1], "y": [0, 9, 9, 0], "y0": [9, 0, 2, 4]}
    assert values(Table.attach(data, study)) == pytest.approx([-5, 7, 7, -4], abs=STEP)
    assert values(Table.attach(data, wide(change_range=(-3, 4)))) == pytest.approx([-3, 4, 4, -3], abs=STEP)


def test_rows_in_periods_are_compared_by_person():
    frame = panel()
    table = Table.attach(frame, long())
    side = frame.assign(after=frame["year"] == 3).pivot_table(index="id", columns="after", values="y")
    np.testing.assert_allclose(values(table), side[True] - side[False], atol=STEP)
    levels = frame.pivot_table(index="id", columns="year", values="y")
    for place, year in enumerate((1, 2, 3)):
        np.testing.assert_allclose(table.measures[place] * 9 / OUTCOME_STEPS, levels[year], atol=STEP)


def test_treatment_may_be_written_for_every_period():
    frame = panel()
    periods = {"time": "year", "before": [1, 2], "after": [3], "per_person": {"d": "ever"}}
    told = study_of("d", "y", (0, 9), control=0, person="id", **periods)
    table = Table.attach(frame, told)
    assert (table.treated == (np.arange(20) % 2 == 1)).all()
    frame.loc[(frame["id"] == 1) & (frame["year"] == 2), "d"] = 1
    with pytest.raises(CounterveilError, match="CV-D021"):
        Table.attach(frame, told)


@pytest.mark.parametrize("rule", ["mean", "sum", "last"])
def test_the_outcome_rule_holds_on_either_side(rule):
    frame = panel()
    frame["y"] /= 3
    told = long(after=[2, 3], before=[1], per_person={"y": rule})
    ordered = frame.sort_values("year")
    after, before = (ordered[ordered["year"].isin(part)].groupby("id")["y"] for part in ([2, 3], [1]))
    expected = (after.agg(rule) - before.agg(rule)).clip(-9, 9)
    np.testing.assert_allclose(values(Table.attach(frame, told)), expected, atol=STEP)


def test_people_without_a_period_need_a_rule():
    frame = panel()
    frame = frame[~((frame["id"] == 3) & (frame["year"] == 3)) & ~((frame["id"] == 4) & (frame["year"] == 1))]
    with pytest.raises(CounterveilError, match="CV-D003"):
        Table.attach(frame, long())
    table = Table.attach(frame, long(missing={"y": cv.Drop()}))
    # Someone with one of two periods before has a change; nobody without the one after has.
    assert table.rows == 19
    assert complete(table).rows == 18


def test_changes_between_periods_are_exact():
    table = Table.attach(panel(), long())
    apart = table.measures[2] - table.measures[1]
    assert (changes(table, 2, 1) == (apart + OUTCOME_STEPS) // 2).all()
    narrow = Table.attach(panel(), long(change_range=(-1, 1)))
    found = changes(narrow, 2, 1)
    assert found.min() == 0
    assert found.max() == OUTCOME_STEPS


REFUSED = [
    {"before": 3},
    {"before": ()},
    {"before": "y0", "after": [1]},
    {"before": [1], "time": "year", "after": [2]},
    {"before": [1], "time": "year", "person": "id"},
    {"before": [1], "time": "year", "person": "id", "after": [1]},
    {"before": [1], "time": "year", "person": "id", "after": [2], "order": "day"},
    {"before_range": (0, 1)},
    {"time": "year"},
    {"before": "y0", "change_range": (-10, 2)},
    {"before": "y0", "change_range": 3},
]


@pytest.mark.parametrize("given", REFUSED)
def test_invalid_declarations_are_refused(given):
    with pytest.raises(CounterveilError, match="CV-S018"):
        study_of("t", "y", (0, 9), **given)


def test_what_was_before_is_no_covariate():
    with pytest.raises(CounterveilError, match="CV-S005"):
        wide(covariates={"y0": cv.Range(0, 9)})


@pytest.mark.parametrize(
    "given",
    [
        {"denominator": 3},
        {"denominator": "d"},
        {"denominator": "d", "denominator_range": (-1, 2)},
    ],
)
def test_invalid_ratios_are_refused(given):
    with pytest.raises(CounterveilError, match="CV-S019"):
        study_of("t", "y", (0, 9), **given)


@pytest.mark.parametrize(
    "study",
    [
        wide(),
        wide(before_range=(2, 5), change_range=(-2, "1.5")),
        cv.Study("t", cv.Change("y", (0, 9), before=("a", "b"))),
        long(),
        long(missing=cv.Drop(), max_rows_per_person=7),
        cv.Study("t", cv.Ratio("n", (0, 9), "d", (1, 5)), people="id"),
    ],
)
def test_studies_come_back_from_their_files(study, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(study.to_toml())
    assert cv.Study.from_toml(file) == study
    assert cv.Study.from_dict(study.to_dict()).fingerprint() == study.fingerprint()


def test_both_measurements_are_private():
    study = wide(covariates={"x": cv.Range(0, 1)})
    assert study.public_columns(Unit.OUTCOME) == ("t", "x")
    said = " ".join(study.public_facts(Unit.OUTCOME))
    assert "only 'y' and 'y0' are protected, before and after treatment" in said
    assert "'y' minus 'y0', clamped to [-9, 9]" in said


def test_an_account_keeps_both_private(tmp_path):
    rng = np.random.default_rng(0)
    data = {"t": np.arange(40) % 2, "y": rng.uniform(0, 9, 40), "y0": rng.uniform(0, 9, 40)}
    ledger = cv.open_ledger(tmp_path / "l.db", create=True)
    ledger.register("d", cv.Budget(5))
    ledger.publish("d", wide().public_columns("outcome"))
    result = cv.ate(data, wide(), protects="outcome", epsilon=1, ledger=ledger)
    assert "in any of its outcome columns" in result.guarantee.sentence()
    shown = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 9)), {"y0": cv.Range(0, 9)})
    with pytest.raises(CounterveilError, match="CV-L041"):
        cv.ate(data, shown, protects="outcome", epsilon=1, ledger=ledger)


# What one person can change: all data sets of two people on a small grid, and all replacements of one of them.


def reduced(study, rows):
    table = Table.attach(rows, study)
    columns = (table.treated, table.outcome, *table.measures)
    return list(zip(*(each.tolist() for each in columns), strict=True))


REST = {"t": [0, 0, 1], "y": [1, 2, 3], "y0": [3, 2, 1]}


def test_one_row_moves_one_analysed_row():
    found = {}
    for y, y0 in product((0, 4, 9), repeat=2):
        data = {name: [first, *REST[name]] for name, first in (("t", 1), ("y", y), ("y0", y0))}
        rows = reduced(wide(), data)
        found[y, y0] = rows
        assert all(0 <= row[1] <= OUTCOME_STEPS for row in rows)
    first = [rows[0][1] for rows in found.values()]
    assert (min(first), max(first)) == (0, OUTCOME_STEPS)
    assert len({tuple(rows[1:]) for rows in found.values()}) == 1


def test_one_person_with_all_their_periods_moves_one_analysed_row():
    rest = {
        "id": [2, 2, 3, 3, 4, 4, 5, 5],
        "year": [1, 3] * 4,
        "t": [0] * 4 + [1] * 4,
        "y": list(range(1, 9)),
    }
    told = long(before=[1], after=[3], missing={"y": cv.Drop()})
    others = set()
    for count in (1, 2, 3):
        for years, outcomes in product(product((1, 3), repeat=count), product((0, 9), repeat=count)):
            own = {"id": [1] * count, "year": list(years), "t": [1] * count, "y": list(outcomes)}
            rows = reduced(told, {name: [*own[name], *rest[name]] for name in rest})
            others.add(tuple(rows[-4:]))
            assert len(rows) in (4, 5)
    assert len(others) == 1

"""Several rows a person: every rule, every source, and what one person can change."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from tests.thinned import examples

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import CounterveilError

AGES = cv.Range(0, 9)


def study(**more):
    known = {"age": AGES, "site": cv.Categories(["a", "b"])}
    return cv.Study("arm", "y", (0, 9), known, control=0, person="id", order="day", **more)


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
    table = Table.attach(frame, study(missing={"y": cv.drafting.Fill(7), "age": cv.drafting.Fill(0)}))
    assert outcomes(table)[3] == pytest.approx(7, abs=1e-5)
    own = frame.sort_values("day").groupby("id")["age"].first()
    np.testing.assert_allclose(table.covariates["age"], own.fillna(0))
    assert (
        Table.attach(frame, study(missing={"y": cv.drafting.Drop(), "age": cv.drafting.Fill(0)})).rows
        == table.rows - 1
    )


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
    declared = cv.Study(
        "arm",
        "y",
        (0, 3),
        {"age": AGES},
        control=0,
        person="id",
        per_person=rules,
        order="day",
        max_rows_per_person=max_rows_per_person,
    )
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
        ({"per_person": {"y": "sum"}}, "CV-S016"),
        ({"order": "day"}, "CV-S016"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(more, code):
    with pytest.raises(CounterveilError, match=code):
        cv.Study("arm", "y", (0, 9), {"age": AGES}, control=0, **more)


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
    plain = cv.Study("arm", "y", (0, 9), control=0, randomised=True)
    with (
        cv.Session(frame, plain, ledger=tmp_path / "a.db", dataset="v") as session,
        pytest.raises(CounterveilError) as refused,
    ):
        session.ate(protects="record", epsilon=1)
    assert refused.value.code == "CV-L049"

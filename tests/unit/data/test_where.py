"""Conditions: how they are read, which rows they choose, and what one row can change."""

from itertools import product

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table
from counterveil.data.cells import from_cells
from counterveil.data.conditions import Where
from counterveil.errors import StudyError

SCORE = cv.Range(0, 9)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("age >= 18 and site in ['A', \"B\"]", "age >= 18 and site in ['A', 'B']"),
        ("18 <= age < 65", "age >= 18 and age < 65"), ("5 > x", "x < 5"),
        ("NOT (arm == 'open')", "not (arm == 'open')"), ("arm != 'open'", "not (arm == 'open')"),
        ("not not a == 1", "a == 1"), ("a == 1 or (b == 2 or c == 3)", "a == 1 or b == 2 or c == 3"),
        ("a == 1 or b == 2 and c == 3", "a == 1 or (b == 2 and c == 3)"),
        ("`visit date` is not missing", "`visit date` is not missing"), ("`and` == true", "`and` == 1"),
        ("x not in (1, 2.5, 'it''s')", "not (x in [1, 2.5, 'it''s'])"), ("`a``b` == '\"'", "`a``b` == '\"'"),
    ],
)  # fmt: skip
def test_a_condition_has_one_text(text, written):
    assert Where.of(text).text == written
    assert Where.of(written) == Where.of(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a", "a ==", "a = 1", "== 1", "a in []", "a in [1,]", "a < 'x'", "(a == 1", "a == 1)", "a == 1 b == 2",
        "1 == 1", "a in [1, '1']", "a == 1;", "__import__('os')", "a.__class__()", "a == b", "a + 1 == 2",
        "lambda: 0", "a is 1", "a == 1e999", "a == 'x", "(" * 99 + "a == 1" + ")" * 99, "not " * 99 + "a == 1",
        "a == 1 and " * 2000 + "a == 1", "x" * 5000 + " == 1", 7, None, b"a == 1", ["a == 1"],
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(cv.CounterveilError, match="CV-S121"):
        Where.of(text)


WORDS = st.sampled_from(
    [
        "a", "b", "`c d`", "and", "or", "not", "in", "is", "missing", "==", "!=", "<", "<=", ">", ">=", "(", ")", "[",
        "]", ",", "1", "2.5", "-3", "'x'", '"y"', "true", "eval", "'", "`", "\\", "\n", "\0", "é",
    ]
)  # fmt: skip


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_code_and_reads_the_same_when_written(text):
    try:
        found = Where.of(text)
    except StudyError:
        return
    assert Where.of(found.text) == found
    assert Where.of(found.text).condition == found.condition


ROWS = {
    "age": ["17", "18", "64", "65", "", "NA"],
    "site": ["A", "B", "C", "", "A", "b"],
    "arm": [0, 1, 2, 0, 1, 2],
}


def kept(text, columns=ROWS):
    where = Where.of(text)
    read = cv.data.sources.read(columns, where.columns, frozenset())
    return np.flatnonzero(where.holds(read)).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age >= 18", [1, 2, 3]), ("not age >= 18", [0]), ("age < 18 or age is missing", [0, 4, 5]),
        ("site in ['A', 'B']", [0, 1, 4]), ("site not in ['A', 'B']", [2, 5]), ("site != 'A'", [1, 2, 5]),
        ("age == 18 and site == 'B'", [1]), ("age == 18.0", [1]),
        ("arm in [0, 2] and site is not missing", [0, 2, 5]), ("age >= 18 or site == 'A'", [0, 1, 2, 3, 4]),
        ("age >= 18 and site == 'nowhere'", []),
    ],
)  # fmt: skip
def test_missing_values_are_unknown_as_in_sql(text, rows):
    assert kept(text) == rows


def test_texts_have_no_order():
    with pytest.raises(cv.CounterveilError, match="CV-D002"):
        kept("site > 3")


def test_one_row_changes_one_row_of_the_subset_and_leaves_the_others_in_place():
    where = Where.of("x in ['a', 'b']")
    cells = ["a", "b", "c", None]
    compared = 0
    for rows in product(cells, repeat=3):
        for place, other in product(range(3), cells):
            both = rows, tuple(other if i == place else row for i, row in enumerate(rows))
            held = [_held(where, each) for each in both]
            if held[0] != held[1]:
                continue
            one, two = ([each[i] for i in held[0]] for each in both)
            assert sum(x != y for x, y in zip(one, two, strict=True)) <= 1
            compared += 1
    assert compared > 300


def _held(where, cells):
    return np.flatnonzero(where.holds({"x": from_cells(list(cells), "x")})).tolist()


def trial(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "arm": rng.choice(["low", "high", "placebo"], rows), "y": rng.integers(0, 9, rows).astype(float),
            "score": rng.integers(0, 10, rows).astype(float), "site": rng.choice(["A", "B", "C"], rows),
            "age": rng.integers(10, 90, rows),
        }
    )  # fmt: skip


def study(**more):
    arms = {"treated": "high", "control": "placebo"}
    return study_of("arm", "y", (0, 9), {"score": SCORE}, **(arms | more))


def sources(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    yield frame
    yield pl.from_pandas(frame)
    yield {name: frame[name].to_numpy() for name in frame}
    yield str(folder / "t.csv")
    yield str(folder / "t.parquet")
    with duckdb.connect() as connection:
        yield connection.read_parquet(str(folder / "t.parquet"))


def test_every_source_has_the_same_subset(tmp_path):
    frame = trial()
    chosen = study(where="18 <= age < 65 and site in ['A', 'B']", others="drop")
    wanted = frame[
        frame.age.between(18, 64) & frame.site.isin(["A", "B"]) & frame.arm.isin(["high", "placebo"])
    ]
    for source in sources(frame, tmp_path):
        table = Table.attach(source, chosen)
        assert table.rows == len(wanted)
        assert table.covariates["score"].tolist() == wanted.score.tolist()
        assert table.treated.tolist() == (wanted.arm == "high").tolist()


def test_people_with_several_rows_keep_those_that_are_chosen():
    frame = trial().assign(who=lambda rows: np.arange(len(rows)) // 3)
    frame["arm"] = np.where(frame.who % 2, "high", "placebo")
    found = Table.attach(frame, study(where="age >= 18", person="who", per_person={"score": "mean"}))
    adults = frame[frame.age >= 18]
    assert found.rows == adults.who.nunique()
    assert np.allclose(found.covariates["score"], adults.groupby("who").score.mean())


def test_a_study_file_holds_the_condition_and_can_be_narrowed(tmp_path):
    chosen = study(where="age >= 18", others="drop")
    (tmp_path / "study.toml").write_text(chosen.to_toml())
    assert cv.Study.from_toml(tmp_path / "study.toml") == chosen
    assert chosen.narrowed("site == 'A'").where.text.startswith("site == 'A' and age >= 18 and arm in")
    assert chosen.narrowed(None) is chosen
    assert chosen.read_columns == ("arm", "y", "score", "age")
    assert chosen.fingerprint() != study().fingerprint()


@pytest.mark.parametrize(
    ("code", "declared"),
    [
        ("CV-S121", {"where": "age >"}), ("CV-S122", {"others": "leave"}),
        ("CV-S122", {"others": "drop", "control": None}), ("CV-S123", {"where": "age >= 18 or y < 3"}),
    ],
)  # fmt: skip
def test_declarations_that_are_refused(code, declared):
    with pytest.raises(cv.CounterveilError, match=code):
        study(**declared)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(cv.CounterveilError, match="CV-D001"):
        Table.attach(trial(), study(where="aeg >= 18"))


def test_several_studies_share_a_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(SEVERAL)
    high, low, score = (cv.Study.from_toml(f"{path}#{name}") for name in ("high", "low", "score"))
    assert (high.treated, low.treated, score.outcome) == ("high", "low", "score")
    assert (tuple(high.covariates), tuple(low.covariates), tuple(score.covariates)) == (
        ("score", "site"),
        ("score",),
        ("site",),
    )
    assert cv.data.study_documents.names_in(cv.data.study_documents.read_toml(path)) == (
        "high",
        "low",
        "score",
    )
    for wrong in (path, f"{path}#higher"):
        with pytest.raises(cv.CounterveilError, match="CV-S125"):
            cv.Study.from_toml(wrong)


SEVERAL = """
ignored = ["age"]
outcome = { column = "y", range = [0, 9] }

[covariates]
score = { range = [0, 9] }
site = { categories = ["A", "B", "C"] }

[study.high]
treatment = { column = "arm", treated = "high", control = "placebo", others = "drop" }

[study.low]
treatment = { column = "arm", treated = "low", control = "placebo", others = "drop" }
without = ["site"]

[study.score]
treatment = { column = "arm", treated = "low", control = "placebo", others = "drop" }
outcome = { column = "score", range = [0, 9] }
"""

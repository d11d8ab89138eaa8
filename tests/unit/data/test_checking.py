"""Checks: everything that does not fit is found at once, with the line that mends it."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from tests.command_line import said as said_by

import counterveil as cv
from counterveil.data import Layout, Table, strata_of_source
from counterveil.data.checking import sound_study
from counterveil.privacy import Unit
from counterveil.privacy.caveats import RowsLeftOut, ValuesFilled

STUDY = """
[treatment]
column = "arm"
treated = "drug"
control = "placebo"

[outcome]
column = "y"
range = [0, 1]

[covariates]
age = { range = [18, 90] }
smoker = "binary"
site = { categories = ["A", "B"] }
"""


def people(rows=300):
    place = np.arange(rows)
    return pd.DataFrame(
        {
            "arm": np.where(place % 2, "drug", "placebo"),
            "y": place % 3 / 2,
            "age": 20 + place % 60,
            "smoker": place % 2,
            "site": np.where(place % 3, "A", "B"),
        }
    )


def findings(frame, folder, text=STUDY, **more):
    path = folder / "study.toml"
    path.write_text(text)
    return cv.drafting.check(frame, path, **more)


def codes(found):
    return [each.code for each in found]


def by_column(found):
    return {each.column: each for each in found}


def test_all_findings_about_rows_come_at_once(tmp_path):
    frame = people().astype({"age": object, "y": object, "smoker": object})
    frame.loc[0, "site"] = "C"
    frame.loc[1, "smoker"] = "perhaps"
    frame.loc[2, "age"] = None
    frame.loc[3, "arm"] = "other"
    frame.loc[4, "y"] = "much"
    found = findings(frame, tmp_path)
    assert codes(found) == ["CV-D003", "CV-D005", "CV-D002", "CV-D007", "CV-D006"]
    mends = {each.column: each.mend for each in found}
    assert mends["age"].startswith("[missing]\nage = ")
    assert mends["site"] == '[covariates]\nsite = { categories = ["A", "B", "LABEL"] }'
    assert mends["arm"] == '[treatment]\nothers = "drop"'
    assert all(each.labels is None for each in found)


def gappy():
    frame = people().astype({"age": object, "y": object, "site": object, "smoker": object})
    size = len(frame)
    frame.loc[range(0, size, 5), "age"] = None
    frame.loc[range(0, size, 4), "site"] = ""
    frame.loc[range(0, size, 2), "smoker"] = None
    return frame


def test_missing_values_are_counted_and_nothing_is_guessed_in_their_place(tmp_path):
    frame = gappy()
    found = by_column(findings(frame, tmp_path))
    gaps = {name: int(frame[name].isin([None, ""]).sum()) for name in ("age", "site", "smoker")}
    assert {name: each.rows for name, each in found.items()} == gaps
    # Neither the middle of a range nor the first label: a label of its own, and for numbers nothing but a hint.
    assert found["site"].mend == (
        '[covariates]\nsite = { categories = ["A", "B", "missing"] }\n[missing]\nsite = { fill = "missing" }'
    )
    assert '"missing"' in found["smoker"].mend
    assert "fill = NUMBER" in found["age"].mend
    for name in ("site", "smoker"):
        declared = tomllib.loads(found[name].mend)
        assert (
            cv.Study.from_dict({"treatment": "arm", "outcome": {"column": "y", "range": [0, 1]}, **declared})
            .covariates[name]
            .labels[-1]
            == "missing"
        )


def test_what_rules_for_missing_values_take_is_said(tmp_path):
    frame = gappy()
    rules = '\n[missing]\nage = "drop"\nsite = "drop"\nsmoker = { fill = 0 }\n'
    path = tmp_path / "study.toml"
    path.write_text(STUDY + rules)
    dropped, filled = cv.drafting.check(frame, path)
    assert (dropped.code, filled.code, dropped.blocking, filled.blocking) == (
        "CV-P830",
        "CV-P831",
        False,
        False,
    )
    age, site = frame["age"].isna(), frame["site"] == ""
    assert dropped.counts == {"age": int(age.sum()), "site": int(site.sum())}
    assert dropped.rows == int((age | site).sum())
    assert filled.counts == {"smoker": int(frame["smoker"].isna().sum())}
    frame.to_csv(tmp_path / "people.csv", index=False)
    said = said_by("check", tmp_path / "people.csv", "--study", path)
    assert f"{dropped.rows:,} rows without a value in one of them or more" in said


def test_a_result_says_whom_rules_leave_out(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY + '\n[missing]\nage = "drop"\nsite = { fill = "A" }\nsmoker = { fill = 0 }\n')
    result = cv.ate(
        gappy(), cv.Study.from_toml(path), protects="outcome", epsilon=1, method="difference_in_means"
    )
    assert RowsLeftOut(("age",)) in result.not_covered
    assert ValuesFilled(("site", "smoker")) in result.not_covered
    assert "PEOPLE WITHOUT A VALUE of 'age'" in result.write_up()
    whole = type(result).from_dict(result.to_dict())
    assert whole.not_covered == result.not_covered


def test_lines_that_mend_do(tmp_path):
    frame = people().astype({"age": object})
    frame.loc[2, "age"] = None
    frame.loc[3, "arm"] = "other"
    found = findings(frame, tmp_path)
    text = STUDY
    for each in found:
        heading, line, *_ = each.mend.splitlines()
        text = (
            text.replace(heading, f"{heading}\n{line}") if heading in text else f"{text}\n{heading}\n{line}\n"
        )
    again = findings(frame, tmp_path, text)
    # That the line leaves a row out is advice.
    assert [(each.code, each.blocking, each.rows) for each in again] == [("CV-P830", False, 1)]


def test_labels_and_counts_are_shown_to_the_holder_alone(tmp_path):
    frame = people()
    frame.loc[:6, "site"] = "C"
    frame.loc[7, "site"] = "D"
    found = by_column(findings(frame, tmp_path, show_labels=True))["site"]
    assert found.labels == {"C": 7, "D": 1}
    assert found.mend == '[covariates]\nsite = { categories = ["A", "B", "C", "D"] }'
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        book.register("people", cv.Budget(1))
        with pytest.raises(cv.CounterveilError, match="CV-P720"):
            findings(frame, tmp_path, show_labels=True, ledger=book)
        plain = by_column(findings(frame, tmp_path, ledger=book))["site"]
        assert plain.labels is None
        assert "C" not in plain.mend + plain.what


def test_an_access_policy_that_refuses_is_a_finding_and_rows_are_not_looked_at(tmp_path):
    frame = people()
    frame.loc[0, "site"] = "C"
    with cv.open_ledger(tmp_path / "book.db", create=True) as book:
        access_policy = cv.drafting.AccessPolicy(public=["arm"], protects=["outcome"])
        book.register("people", cv.Budget(1), access_policy=access_policy)
        found = findings(frame, tmp_path, ledger=book)
    assert codes(found) == ["CV-L041"]


def test_faults_of_the_file_do_not_hide_each_other_nor_those_of_the_data(tmp_path):
    wrong = STUDY.replace("[18, 90]", "[90, 18]").replace("range = [0, 1]", "range = 7")
    wrong = wrong.replace('"binary"', '"yes or no"') + 'arm = "binary"\n\n[missing]\nweight = "drop"\n'
    wrong = 'treatmnt = "arm"\nwhere = "age >"\n' + wrong
    frame = people()
    frame.loc[0, "site"] = "C"
    found = findings(frame, tmp_path, wrong)
    assert codes(found) == [
        "CV-S013",
        "CV-S002",
        "CV-S013",
        "CV-S005",
        "CV-S001",
        "CV-S009",
        "CV-S121",
        "CV-D006",
    ]
    assert by_column(found)["age"].mend == "[covariates]\nage = { range = [LOW, HIGH] }"


def test_open_questions_are_listed_beside_everything_else(tmp_path):
    text = (
        'treatment = "?"\nassignment = "?"\n[outcome]\ncolumn = "?"\nrange = "?"\n\n[covariates]\nage = "?"\n'
    )
    text += 'smoker = { range = "?" }\nsite = { categories = ["A", "?"] }\n'
    found = findings(people(), tmp_path, text)
    assert codes(found) == ["CV-S120"] * 6 + ["CV-D006"]
    assert found[4].mend.startswith("[covariates]\nage = { range = [LOW, HIGH] }")
    with pytest.raises(cv.CounterveilError, match="CV-S120"):
        cv.Study.from_toml(tmp_path / "study.toml")


def test_labels_of_arms_are_not_judged_before_they_are_declared(tmp_path):
    text = STUDY.replace('treated = "drug"', 'treated = "?"')
    assert text != STUDY
    assert codes(findings(people(), tmp_path, text)) == ["CV-S120"]


def test_a_file_that_cannot_be_read_is_one_finding(tmp_path):
    assert codes(cv.drafting.check(people(), tmp_path / "none.toml")) == ["CV-S014"]
    assert codes(cv.drafting.check(str(tmp_path / "none.csv"), _study(tmp_path))) == ["CV-D012"]
    (tmp_path / "study.toml").write_text('treatment = ""\noutcome = { column = "y", range = [0, 1] }\n')
    assert codes(cv.drafting.check(people(), tmp_path / "study.toml")) == ["CV-S004"]


def _study(folder):
    (folder / "good.toml").write_text(STUDY)
    return folder / "good.toml"


def test_columns_of_an_unusable_type_are_found_one_by_one(tmp_path):
    frame = people().assign(age=pd.Timestamp("2020-01-01"), site=pd.Timestamp("2020-01-01"))
    assert {each.column: each.code for each in findings(frame, tmp_path)} == {
        "age": "CV-D013",
        "site": "CV-D013",
    }


def test_a_study_is_checked_as_a_file_is():
    study = cv.Study(
        cv.Treatment("arm", treated="drug", control="placebo"),
        cv.Outcome("y", (0, 1)),
        {"site": ["A", "B"]},
    )
    assert cv.drafting.check(people(), study) == ()
    assert codes(cv.drafting.check(people().drop(columns="site"), study)) == ["CV-D001"]
    times = cv.Study(
        cv.Treatment("arm", treated="new", control="placebo"),
        outcome=cv.TimeToEvent("y", "died", horizon=1),
    )
    assert codes(cv.drafting.check(people(), times)) == ["CV-D001", "CV-D005"]


def test_declarations_that_belong_together_are_judged_together(tmp_path):
    text = STUDY.replace("[18, 90]", "[90, 18]")
    change = text.replace("range = [0, 1]", 'range = [0, 1]\nbefore = "y0"\nbefore_range = [0, 1]')
    frame = people().assign(y0=0.5)
    assert codes(findings(frame, tmp_path, change)) == ["CV-S002"]
    assert codes(findings(people(), tmp_path, change)) == ["CV-S002", "CV-D001"]
    ratio = text.replace(
        'column = "y"', 'numerator = "y"\ndenominator = "visits"\ndenominator_range = [1, 9]'
    )
    assert codes(findings(people().assign(visits=2.0), tmp_path, ratio)) == ["CV-S002"]


def test_labels_that_are_not_listed_may_count_as_one():
    frame = people()
    frame.loc[0, "site"] = "C"
    other = cv.Categories(["A", "elsewhere"], other="elsewhere")
    study = cv.Study(
        cv.Treatment("arm", treated="drug", control="placebo"), cv.Outcome("y", (0, 1)), {"site": other}
    )
    found = Table.attach(frame, study).covariates["site"]
    assert found.tolist() == (frame.site != "A").astype(float).tolist()
    assert cv.Study.from_dict(study.to_dict()) == study
    strata = strata_of_source(frame, study, Layout.of(study, ("site",), {}))
    assert (strata.treated + strata.control).tolist() == [
        (frame.site == "A").sum(),
        (frame.site != "A").sum(),
    ]
    assert any(
        "every other label counting as 'elsewhere'" in fact for fact in study.public_facts(Unit.RECORD)
    )
    with pytest.raises(cv.CounterveilError, match="CV-S006"):
        cv.Categories(["A", "B"], other="C")


def test_a_fault_beside_a_time_to_an_event_or_several_outcomes_is_the_only_one():
    fault = {"covariates": {"age": {"range": [90, 18]}}}
    times = {"treatment": "arm", "outcome": {"time": "days", "event": "died", "horizon": 365}}
    study, found = sound_study(times | fault)
    assert study.event.column == "died"
    assert [each.code for each in found] == ["CV-S002"]
    two = {"treatment": "arm", "outcome": {"ranges": {"death": [0, 1], "days": [0, 90]}}}
    study, found = sound_study(two | fault)
    assert study.several.names == ("death", "days")
    assert [each.code for each in found] == ["CV-S002"]


def test_what_does_not_go_with_several_outcomes_is_found():
    ranges = {"death": [0, 1], "days": [0, 90]}
    for beside in ({"column": "death"}, {"range": [0, 1]}):
        found = sound_study({"treatment": "arm", "outcome": {"ranges": ranges, **beside}})[1]
        assert [each.code for each in found] == ["CV-S013"]
    alone = {"column": "death", "range": [0, 1], "baseline": {"death": "before"}}
    assert [each.code for each in sound_study({"treatment": "arm", "outcome": alone})[1]] == ["CV-S013"]
    few = {"ranges": {"death": [0, 1]}}
    assert [each.code for each in sound_study({"treatment": "arm", "outcome": few})[1]] == ["CV-S140"]


def test_advice_blocks_nothing(tmp_path):
    frame = people().assign(patient_id=1, notes="x")
    found = findings(frame, tmp_path, 'ignored = ["notes"]\n' + STUDY)
    assert [(each.code, each.blocking, each.mend) for each in found] == [
        ("CV-D120", False, 'people = "patient_id"')
    ]
    found = findings(frame, tmp_path, "ignored = []\n" + STUDY)
    assert codes(found) == ["CV-D120", "CV-D121"]
    assert found[1].mend == 'ignored = ["notes"]'

"""Names and labels come from other people's files; in an exported table none of them is run by a spreadsheet."""

import csv
import io
import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.report.airlock import csv_of

FORMULA = "=cmd|' /C calc'!A0"
BEGINS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1"]


def people(treatment, label, rows=200):
    rng = np.random.default_rng(1)
    return {
        treatment: rng.integers(0, 2, rows),
        "score": rng.uniform(0, 10, rows),
        FORMULA: rng.choice([label, "plain"], rows),
    }


def study(treatment, label):
    covariates = {FORMULA: cv.Categories([label, "plain"])}
    return cv.Study(treatment, "score", (0, 10), covariates, randomised=True)


def is_formula(cell):
    try:
        return cell[:1] in "=+-@\t\r\n＝＋－＠" and not np.isfinite(float(cell))
    except ValueError:
        return bool(cell)


@pytest.mark.parametrize("label", BEGINS)
def test_no_cell_of_an_exported_table_begins_like_a_formula(label):
    data, declared = people(label, label), study(label, label)
    noise = {"noise": cv.SeededNoise(1)}
    found = [
        cv.ate(data, declared, protects="outcome", epsilon=1, **noise),
        cv.groups(data, declared, by=[FORMULA], protects="record", epsilon=5, **noise),
        cv.overlap(data, declared, epsilon=5, **noise),
        cv.moments(data, declared, protects="record", epsilon=20, delta="1e-6", **noise),
        cv.plan(declared, rows=40, protects="outcome", epsilon=1, draws=2),
    ]
    for result in found:
        rows = list(csv.reader(io.StringIO(csv_of(result.tidy()), newline="")))
        frame = result.effects
        cells = [
            *(cell for row in rows for cell in row),
            *map(str, frame.columns),
            *map(str, frame.to_numpy().ravel()),
        ]
        assert [cell for cell in cells if is_formula(cell)] == []


def test_names_stay_what_they_are_everywhere_else():
    data, declared = people("-1", FORMULA), study("-1", FORMULA)
    found = cv.groups(data, declared, by=[FORMULA], protects="record", epsilon=5, noise=cv.SeededNoise(1))
    # A number as text is no formula.
    assert {row["term"] for row in found.tidy()} == {"-1"}
    assert FORMULA in json.dumps(found.to_dict())
    assert f"'{FORMULA}" not in json.dumps(found.to_dict())

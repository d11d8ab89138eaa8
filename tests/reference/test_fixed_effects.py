"""Agreement with regressions on fixed effects of people and periods, without noise: by least squares and pyfixest."""

import numpy as np
import pandas as pd
import pytest
from tools.loose_study import study_of

import counterveil as cv

# Outcomes on the grid of the range (-16, 16), whose steps are 2^-19, leave rounding of sums alone.
GRID, AGREE = 2.0**-10, 1e-10
EPSILON = 1e12
ASKED = {"protects": "outcome", "epsilon": EPSILON, "method": "difference_in_means"}
YEARS = (2000, 2001, 2002, 2003, 2004)
FIRST = 2003


def panel(people=120, seed=0):
    """Rows of a balanced panel with serially correlated outcomes and treatment from 2003 on."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": np.repeat(np.arange(people), len(YEARS)), "year": np.tile(YEARS, people)})
    frame["group"] = (frame["id"] % 3 == 0).astype(int)
    frame["d"] = frame["group"] * (frame["year"] >= FIRST)
    steady, moving = rng.normal(0, 2, people), rng.normal(0, 1, (people, len(YEARS))).cumsum(axis=1)
    y = steady[frame["id"]] + moving.ravel() + 0.3 * (frame["year"] - 2000) + 1.5 * frame["d"]
    frame["y"] = np.round(np.clip(y, -15, 15) / GRID) * GRID
    return frame


def study(treatment="group", before=(2000, 2001, 2002), after=(2003, 2004), **more):
    periods = {"time": "year", "before": before, "after": after}
    return study_of(treatment, "y", (-16, 16), control=0, person="id", **periods, **more)


def least_squares(frame, regressors):
    """Return the coefficients of `regressors` beside dummies of all people and periods, by least squares."""
    people, years = (pd.get_dummies(frame[name], dtype=float).to_numpy() for name in ("id", "year"))
    design = np.column_stack([*regressors, people, years[:, 1:]])
    return np.linalg.lstsq(design, frame["y"].to_numpy(), rcond=None)[0][: len(regressors)]


def differences(frame, told):
    return cv.ate(frame, told, noise=cv.SeededNoise(0), **ASKED).estimate


def by_period(frame, told):
    found = cv.event_study(frame, told, noise=cv.SeededNoise(0), **ASKED)
    return {one.name: one.estimate for one in found.table}


def test_difference_in_differences_is_that_of_fixed_effects():
    frame = panel()
    two = frame[frame["year"].isin([2002, 2003])]
    assert differences(two, study(before=[2002], after=[2003])) == pytest.approx(
        least_squares(two, [two["d"]])[0], abs=AGREE
    )
    # Means of two periods are on the grid too.
    four = frame[frame["year"] > 2000]
    told = study("d", before=[2001, 2002], per_person={"d": "ever"})
    assert differences(four, told) == pytest.approx(least_squares(four, [four["d"]])[0], abs=AGREE)


def test_both_measurements_in_one_row_give_the_same():
    frame = panel()
    two = frame[frame["year"].isin([2002, 2003])]
    rows = two.pivot_table(index=["id", "group"], columns="year", values="y").reset_index()
    rows.columns = ["id", "group", "y0", "y"]
    told = cv.Study(cv.Treatment("group", control=0), cv.Change("y", (-16, 16), before="y0"))
    assert differences(rows, told) == pytest.approx(least_squares(two, [two["d"]])[0], abs=AGREE)


def test_effects_by_period_are_those_of_leads_and_lags():
    frame = panel(seed=1)
    others = [year for year in YEARS if year != 2002]
    leads = [frame["group"] * (frame["year"] == year) for year in others]
    expected = dict(zip(others, least_squares(frame, leads), strict=True))
    assert by_period(frame, study()) == pytest.approx(expected, abs=AGREE)


def test_pyfixest_finds_the_same():
    pyfixest = pytest.importorskip("pyfixest")
    frame = panel(seed=2)
    four = frame[frame["year"] > 2000]
    one = pyfixest.feols("y ~ d | id + year", data=four, fixef_tol=1e-13).coef()
    told = study("d", before=[2001, 2002], per_person={"d": "ever"})
    assert differences(four, told) == pytest.approx(one["d"], abs=AGREE)
    several = pyfixest.feols("y ~ i(year, group, ref=2002) | id + year", data=frame, fixef_tol=1e-13).coef()
    found = by_period(frame, study())
    for year, effect in found.items():
        own = next(value for name, value in several.items() if str(year) in name)
        assert effect == pytest.approx(own, abs=AGREE)

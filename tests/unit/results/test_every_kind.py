"""Every kind of result is printed, tabulated, written, drawn and put beside others by the same methods."""

import json
import re
from functools import cache

import numpy as np
import pytest
from tests.unit.questions.test_event_study import asked as event_study
from tests.unit.questions.test_survival import asked as survival

import counterveil as cv
from counterveil.questions.plan import Plan
from counterveil.questions.pooled import PooledResult, PooledTable
from counterveil.report.text import rounded
from counterveil.results.shown import Shown

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

OUTCOME = {"protects": "outcome", "epsilon": 2}
RECORD = {"protects": "record", "epsilon": 8, "delta": "1e-6"}
PAIR = {"protects": "treatment and outcome", "epsilon": 4}
COVARIATES = {"age": (20, 80), "sex": ["f", "m"]}
ROWS = 600


@cache
def people():
    rng = np.random.default_rng(1)
    age, sex = rng.uniform(20, 80, ROWS), rng.choice(["f", "m"], ROWS)
    arm, dose = rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)
    y = np.clip(0.3 + 0.2 * arm + age / 400 + rng.normal(0, 0.1, ROWS), 0, 1)
    return {"age": age, "sex": sex, "arm": arm, "dose": dose, "y": y, "z": 1 - y, "taken": arm * (y > 0.2)}


def study(**more):
    return cv.Study(
        **{"treatment": "arm", "outcome": "y", "outcome_range": (0, 1), "covariates": COVARIATES} | more
    )


def trial(**more):
    return study(randomised=True, treated_share="0.5", **more)


def ate(told=None, **more):
    return cv.ate(people(), told or trial(), **OUTCOME | more)


def weighted():
    return cv.ate(people(), study(), **OUTCOME)


def moments():
    return cv.moments(
        people(), study(covariates=COVARIATES | {"taken": cv.Binary()}), outcomes=["taken"], **RECORD
    )


class Older:
    def effect(self, columns):
        return np.asarray(columns["age"]) / 100


MADE = {
    "Result": ate,
    "Result of pairs": lambda: ate(**PAIR),
    "Result without an interval": lambda: ate(study(), protects="record", epsilon=8, method="trial"),
    "Result of a paper": lambda: cv.published.ipw(
        people(), study(), epsilon=1, delta="1e-6", accept="unproved"
    ),
    "MeasureResult": lambda: ate(measure="ratio"),
    "RatioResult": lambda: ate(study(randomised=True, denominator="z", denominator_range=(0, 1))),
    "ArmsResult": lambda: cv.arms(people(), study(treatment="dose", arms=(0, 1, 2), reference=0), **OUTCOME),
    "GroupsResult": lambda: cv.groups(people(), trial(), by="sex", **OUTCOME),
    "OutcomesResult": lambda: cv.outcomes(
        people(), cv.Study("arm", outcomes={"y": (0, 1), "z": (0, 1)}, randomised=True), **OUTCOME
    ),
    "SurvivalResult": survival,
    "EventStudyResult": event_study,
    "QuantilesResult": lambda: cv.quantiles(people(), trial(), **OUTCOME),
    "PolicyValue": lambda: cv.policy_value(people(), trial(), policy=cv.Policy.where(age=(20, 50)), **RECORD),
    "TargetingCurve": lambda: cv.targeting_curve(people(), trial(), model=Older(), bins=4, **RECORD),
    "CateModel": lambda: cv.cate(people(), trial(), **RECORD),
    "CateAnswers": lambda: cv.cate(
        people(), trial(), method="bins", queries={"age": [30.0, 60.0], "sex": ["f", "m"]}, **RECORD
    ),
    "Moments": moments,
    "Regression": lambda: moments().regress("y ~ arm + age"),
    "Compliance": lambda: moments().compliance("taken"),
    "OverlapSummary": lambda: cv.overlap(people(), study(), epsilon=4),
    "Sensitivity": lambda: weighted().sensitivity(),
    "Sensitivity of groups": lambda: cv.groups(people(), study(), by="sex", **OUTCOME).sensitivity(),
    "Balance": lambda: weighted().balance(),
    "PooledResult": lambda: cv.pool({"north": ate(), "south": ate()}),
    "PooledTable": lambda: cv.pool([cv.groups(people(), trial(), by="sex", **OUTCOME) for _ in "ab"]),
    "PooledMoments": lambda: cv.pool([moments(), moments()]),
    "PooledNeeded": lambda: made("PooledResult").as_measure("nnt"),
    "Plan": lambda: cv.plan(trial(), rows=200, epsilon=[1, 2], draws=2, protects="outcome"),
    "ResultTable": lambda: cv.etable([ate(), weighted()]),
}
SPACED = re.compile(r"\d(?: |\\,|&nbsp;)\\?%")
# Made of answers that are stored.
NOT_STORED = ("Regression", "Compliance", "Sensitivity", "Sensitivity of groups", "Balance", "ResultTable")
made = cache(lambda kind: MADE[kind]())


def kinds(kind=Shown):
    below = {leaf for each in kind.__subclasses__() for leaf in kinds(each)}
    return below | {kind}


def test_there_is_one_of_every_kind():
    shown = {kind.__name__ for kind in kinds() if kind.__module__.startswith("counterveil")}
    assert shown - {"Shown", "ReleasedAnswer", "Comparison", "OneEffect", "Gains"} == {
        type(made(kind)).__name__ for kind in MADE
    }
    assert {Plan, PooledResult, PooledTable} <= kinds()


@pytest.mark.parametrize("kind", MADE)
def test_every_kind_is_written_and_drawn_alike(kind, tmp_path):
    found = made(kind)
    for write, ending in ((found.to_html, "html"), (found.to_markdown, "md"), (found.to_latex, "tex")):
        path, text = tmp_path / f"page.{ending}", write()
        assert write(path) == path
        assert path.read_text(encoding="utf-8").rstrip() == text.rstrip()
        assert not SPACED.search(text + found.summary() + found.full())
    assert found.to_latex().rstrip().endswith(r"\end{tabular}")
    assert found.to_html().startswith("<!doctype html>")
    assert {"plot", "balance", "to_latex", "effects"} <= set(dir(found))
    axes = found.plot()
    assert axes.get_title(loc="left")
    matplotlib.pyplot.close(axes.figure)


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in NOT_STORED])
def test_every_kind_is_read_back(kind):
    found = made(kind)
    again = type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.to_dict() == found.to_dict()
    assert again.summary() == found.summary()


@pytest.mark.parametrize("kind", MADE)
def test_balance_is_shown_where_covariates_are_public_and_refused_elsewhere(kind):
    found = made(kind)
    if kind in ("Balance", "OutcomesResult of covariates"):
        assert "age" in str(found.balance())
    elif not getattr(found, "diagnostics", {}).get("balance"):
        with pytest.raises(cv.CounterveilError, match="CV-P022"):
            found.balance()


def test_a_table_has_a_column_each_with_effects_price_and_warnings():
    plain, ols, seen = made("Result"), made("Regression"), made("SurvivalResult")
    found = cv.etable({"plain": plain, "OLS": ols, "times": seen})
    (cells,) = found.view().tables
    assert cells.headings == ["effect", "plain", "OLS", "times"]
    rows = {row[0]: row[1:] for row in cells.rows}
    error = plain.std_error.total
    ends = ", ".join(rounded(end, error) for end in plain.interval())
    assert rows["arm"][0] == f"{rounded(plain.estimate, error)} ({rounded(error, error)})"
    assert cells.rows[1][1] == f"[{ends}]"
    assert rows["arm"][1]
    assert rows["arm"][2] == ""
    assert rows["epsilon"] == ["2", "8", "4"]
    assert rows["protects"] == ["outcome", "record", "record"]
    assert rows["n"] == ["600", "600", "1,200"]
    for text in (str(found), found.full(), found.to_latex(), found.to_html(), found.to_markdown()):
        assert "times: SIMULATED" in text
    assert len(found.effects) == sum(len(one.effects) for one in found.results)
    for other in ([made("Plan")], [made("Moments")], []):
        with pytest.raises(cv.CounterveilError, match="CV-P029"):
            cv.etable(other)

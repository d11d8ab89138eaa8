"""Whether a panel is balanced is said, by declared and public facts alone."""

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError

PERIODS = [1, 2, 3, 4]


def study(**more):
    given = {"person": "who", "time": "when", "before": [1, 2], "after": [3, 4], "per_person": {"t": "ever"}}
    return study_of("t", "y", (0, 60), control=0, **given, **more)


def panel(people=200, gaps=()):
    rng = np.random.default_rng(1)
    who, when = np.repeat(np.arange(people), 4), np.tile(PERIODS, people)
    arm = rng.integers(0, 2, people)[who]
    kept = ~np.isin(np.arange(len(who)), gaps)
    columns = {"who": who, "when": when, "t": arm * (when > 2), "y": rng.uniform(0, 60, len(who))}
    return {name: values[kept] for name, values in columns.items()}


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_a_panel_is_said_to_be_balanced_or_not(protects):
    asked = {"protects": protects, "epsilon": 4, "noise": cv.SeededNoise(1)}
    # The first two people lack one period each.
    gaps = panel(gaps=(1, 6))
    for data, rule, by_period, plain in (
        (panel(), {}, "balanced", "balanced"),
        (gaps, {"missing": {"y": cv.Fill(30)}}, "filled", "filled"),
        (panel(), {"missing": {"y": cv.Drop()}}, "balanced", "may_be_unbalanced"),
        (gaps, {"missing": {"y": cv.Drop()}}, "unbalanced", "may_be_unbalanced"),
    ):
        study_of = cv.event_study(data, study(**rule), **asked)
        assert study_of.details["panel"] == by_period
        found = cv.ate(data, study(**rule), **asked)
        assert found.details["panel"] == plain
        assert ("UNBALANCED" in found.summary()) is (plain == "may_be_unbalanced")
        assert ("198 of 200 people" in " ".join(study_of.summary().split())) is (by_period == "unbalanced")
    with pytest.raises(CounterveilError, match="CV-D003"):
        cv.event_study(gaps, study(), **asked)

"""Agreement with lifelines, without noise: curves, restricted means and the log-rank test."""

import numpy as np
import pytest
from tests.unit.inference.test_survival import CELLS, EDGES, people, tables

from counterveil.inference.survival import answers_of, log_rank_of


@pytest.mark.slow  # for the five seconds that lifelines takes to load
def test_agrees_with_lifelines():
    lifelines = pytest.importorskip("lifelines", reason="the test extra lifelines is not installed")
    from lifelines.statistics import logrank_test
    from lifelines.utils import restricted_mean_survival_time

    arm, time, event = people()
    known = tables(arm, time, event)
    answers, at_end = answers_of(known), np.minimum(time, CELLS)
    for place in (0, 1):
        own = arm == place
        fitted = lifelines.KaplanMeierFitter().fit(time[own], event[own])
        curve = fitted.survival_function_at_times(EDGES).to_numpy()
        assert answers.curves.survival[place] == pytest.approx(curve, abs=1e-12)
        mean = restricted_mean_survival_time(fitted, t=CELLS)
        assert answers.area(place).estimate == pytest.approx(mean, abs=1e-9)
    happened, on = event & (time <= CELLS), arm == 1
    theirs = logrank_test(at_end[on], at_end[~on], happened[on], happened[~on])
    assert log_rank_of(known).statistic ** 2 == pytest.approx(theirs.test_statistic, abs=1e-9)
    assert log_rank_of(known).p_value == pytest.approx(theirs.p_value, abs=1e-9)

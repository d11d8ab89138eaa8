"""Agreement with lifelines, without noise: curves, restricted means and the log-rank test."""

import numpy as np
import pytest
from tests.unit.inference.test_survival import CELLS, EDGES, people, tables
from tools.loose_study import study_of

from counterveil.inference.survival.answers import answers_of
from counterveil.inference.survival.log_rank import log_rank_of


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


@pytest.mark.slow  # for lifelines
def test_ratios_medians_means_and_incidences_agree_with_lifelines():
    lifelines = pytest.importorskip("lifelines", reason="the test extra lifelines is not installed")
    import pandas as pd
    from experiments.survival.designs import HORIZON, Trial
    from experiments.survival.ratios import to_horizon

    import counterveil as cv

    design = Trial(2000, 0.2, left=0.2)
    data = to_horizon(design.draw(1))
    found = cv.survival(data, design.study(), protects="record", epsilon=100_000, noise=cv.SeededNoise(1))
    cox = lifelines.CoxPHFitter().fit(pd.DataFrame(data), "time", "event")
    assert found.hazard_ratio().estimate == pytest.approx(float(cox.hazard_ratios_["arm"]), rel=1e-3)
    ends = np.exp(cox.confidence_intervals_.loc["arm"].to_numpy())
    assert found.hazard_ratio().interval() == pytest.approx(ends, rel=2e-3)
    for arm, name in ((0, "control"), (1, "treated")):
        own = data["arm"] == arm
        fitted = lifelines.KaplanMeierFitter().fit(data["time"][own], data["event"][own])
        assert found.quantile(name).estimate == pytest.approx(fitted.median_survival_time_, abs=1e-3)
        mean = lifelines.utils.restricted_mean_survival_time(fitted, t=HORIZON)
        assert found.restricted_mean(name).estimate == pytest.approx(mean, rel=1e-3)
    causes = data | {"event": data["event"] * (1 + (np.arange(2000) % 3 == 0))}
    declared = {"outcome": "time", "event": "event", "causes": ["relapse", "death"], "horizon": HORIZON}
    study = study_of("arm", control=0, randomised=True, **declared)
    found = cv.survival(causes, study, protects="record", epsilon=100_000, noise=cv.SeededNoise(1))
    own = data["arm"] == 1
    other = lifelines.AalenJohansenFitter().fit(data["time"][own], causes["event"][own], event_of_interest=2)
    last = float(other.cumulative_density_.iloc[-1, 0])
    assert found.incidence("death", "treated").estimate == pytest.approx(last, rel=1e-3)

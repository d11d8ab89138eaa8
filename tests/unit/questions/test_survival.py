"""Survival: answers at both levels, strata, refusals, stored results, the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.command_line import as_json
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.results import SurvivalResult

EXACT = {"epsilon": 1e9, "noise": cv.SeededNoise(1)}


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    arm, stage = rng.integers(0, 2, n), rng.integers(0, 2, n)
    death, lost = rng.exponential((1 + arm) * (1 + stage)), rng.uniform(0.5, 4, n)
    return {
        "arm": arm,
        "years": np.minimum(death, lost),
        "died": (death <= lost).astype(int),
        "stage": np.where(stage == 1, "late", "early"),
    }


def study(**more):
    given = {"horizon": 2, "grid": 4, "control": 0, "randomised": True} | more
    return study_of("arm", outcome="years", event="died", **given)


STAGES = {"covariates": {"stage": cv.Categories(["early", "late"])}, "randomised": False}


def asked(told=None, **more):
    given = {"protects": "record", "epsilon": 4, "noise": cv.SeededNoise(2)} | more
    return cv.survival(people(), told or study(), **given)


def refusal(**given):
    with pytest.raises(CounterveilError) as caught:
        asked(**given)
    return caught.value.code


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_without_noise_it_is_kaplan_meier_by_hand(protects):
    data = people()
    settings = cv.settings.Survival(censoring="end")
    found = asked(study(grid=[0.5, 1, 1.5, 2]), protects=protects, settings=settings, **EXACT)
    for arm, code in (("control", 0), ("treated", 1)):
        own = data["arm"] == code
        time, died, left = data["years"][own], data["died"][own] == 1, 1.0
        for start, end in zip(found.times, found.times[1:], strict=False):
            at_risk = (time > start).sum()
            left *= 1 - (died & (time > start) & (time <= end)).sum() / at_risk
            assert found.survival(arm, end).estimate == pytest.approx(left, abs=1e-6)
        assert found.at_risk(arm)[0] == pytest.approx(own.sum(), abs=1e-5)
    gap = found.survival("treated").estimate - found.survival("control").estimate
    assert found.difference().estimate == pytest.approx(gap)


def test_strata_are_standardised():
    data = people()
    found = asked(study(**STAGES), protects="outcome", method="stratified", **EXACT)
    curve = 0.0
    for stage in ("early", "late"):
        chosen = {name: values[data["stage"] == stage] for name, values in data.items()}
        own = cv.survival(chosen, study(), protects="outcome", **EXACT)
        curve += own.survival("treated", 1.0).estimate * (data["stage"] == stage).mean()
    assert found.survival("treated", 1.0).estimate == pytest.approx(curve, abs=1e-6)
    assert "2 strata by 'stage'" in found.method
    record = asked(study(**STAGES), **EXACT)
    assert record.survival("treated", 1.0).estimate == pytest.approx(curve, abs=1e-6)


def test_weights_undo_confounding():
    rng, n = np.random.default_rng(5), 4000
    x = rng.uniform(0, 1, n)
    arm = (rng.random(n) < 0.25 + 0.5 * x).astype(int)
    death, lost = rng.exponential(1 / (0.3 + 2 * x)), rng.uniform(0.5, 4, n)
    data = {"arm": arm, "years": np.minimum(death, lost), "died": (death <= lost).astype(int), "x": x}
    told = study(covariates={"x": cv.Range(0, 1)}, randomised=False)
    found = cv.survival(data, told, protects="outcome", epsilon=4, noise=cv.SeededNoise(1))
    plain = cv.survival(
        data, told, protects="outcome", method="kaplan_meier", epsilon=4, noise=cv.SeededNoise(1)
    )
    assert "balancing weights" in found.method
    low, high = found.difference(1.0).interval()
    assert low < 0 < high < 0.1
    assert plain.difference(1.0).interval()[1] < 0
    assert found.at_risk("treated")[0] < arm.sum()
    assert {one["arm"] for one in found.diagnostics["effective_size"]} == {"control", "treated"}
    assert found.details["bias_allowed_standard_errors"] == 0.5


def test_fewer_people_than_noise_are_lost_and_say_so():
    found = cv.survival(people(80), study(), protects="record", epsilon=0.1, noise=cv.SeededNoise(2))
    assert found.known_until("treated") < 2
    assert "lost in noise" in str(found).lower()
    assert found.difference().interval() == pytest.approx((-1.0, 1.0))
    assert found.tidy()[0]["std_error"] > 0.2
    assert found.tidy()[-1]["contrast"] == "hazard ratio"
    # A curve that is lost in the noise may be anywhere below: no level leaves 0 out.
    assert found.difference().p_value == 1
    at_once = people(2000) | {"years": np.full(2000, 0.3), "died": np.ones(2000, int)}
    found = cv.survival(at_once, study(grid=8), protects="record", epsilon=1, noise=cv.SeededNoise(1))
    assert "(at least " in str(found)
    assert "inf" not in str(found)


def test_a_median_beyond_the_horizon_is_not_reached():
    found = asked(study(horizon=0.4), **EXACT)
    assert found.quantile("treated").estimate == np.inf
    for text in (found.summary(), found.to_html(), found.to_markdown()):
        assert "treated not reached" in text
        assert "inf" not in text.split("Median")[1][:60]


@pytest.mark.parametrize(("horizon", "known"), [(2, 2), (1.4, 1), (0.4, 0)])
def test_a_difference_of_quantiles_is_known_or_said_to_be_open(horizon, known):
    noise = cv.SeededNoise(0)
    found = cv.survival(people(500), study(horizon=horizon), protects="record", epsilon=2, noise=noise)
    arms = [found.quantile(arm) for arm in ("treated", "control")]
    assert sum(np.isfinite(one.estimate) for one in arms) == known
    gap = found.quantile_difference()
    assert gap.estimate == pytest.approx(arms[0].estimate - arms[1].estimate, nan_ok=True)
    # An arm whose quantile may lie beyond the horizon leaves its own side open, and no other.
    low, high = gap.interval()
    assert [np.isfinite(high), np.isfinite(low)] == [np.isfinite(one.interval()[1]) for one in arms]
    for one in (gap, *arms):
        text = repr(one)
        assert not {"inf", "nan"} & set(text.lower().replace("[", " ").replace("]", " ").split())
        assert ("not reached" in text.partition("[")[0].partition("(")[0]) == (not np.isfinite(one.estimate))
    json.dumps(gap.facts(), allow_nan=False)
    assert 0 < gap.p_value <= 1
    if known < 2:
        assert all(0 < point["p_value"] <= 1 for point in gap.confidence_curve(3))


def test_rows_of_ratios_are_on_the_scale_of_logarithms():
    found = asked(**EXACT).hazard_ratio()
    row, logs = found.row(), found.row(exponentiate=False)
    assert row["estimate"] == found.estimate
    # Without noise the log-rank and the Wald test of one parameter nearly agree, and so do their p-values.
    low, high = (np.log(row[end]) for end in ("conf_low", "conf_high"))
    assert row["std_error"] == pytest.approx((high - low) / (2 * 1.96), rel=0.05)
    assert row["statistic"] == pytest.approx(np.log(found.estimate) / row["std_error"])
    assert logs["std_error"] == row["std_error"]
    assert logs["statistic"] == row["statistic"]
    assert (logs["estimate"], logs["conf_low"]) == pytest.approx((np.log(found.estimate), low))
    gap = asked(**EXACT).difference()
    assert gap.row(exponentiate=False) == gap.row()


def test_a_half_is_named_the_median():
    found = asked()
    assert found.quantile("control").name == "median, control"
    assert found.quantile_difference().name == "difference of medians"
    assert found.quantile_difference(0.25).name == "difference of 25% quantiles"


def test_a_result_is_written_and_read_back():
    found = asked()
    for facts in (found.to_dict(), found.stored()):
        assert SurvivalResult.from_dict(json.loads(json.dumps(facts))) == found
    broken = found.stored()
    broken["tables"]["numbers"] = broken["tables"]["numbers"][:1]
    with pytest.raises(CounterveilError, match="CV-P661"):
        SurvivalResult.from_dict(broken)


def test_competing_events_by_hand():
    rng, data = np.random.default_rng(4), people()
    data["died"] = data["died"] * rng.integers(1, 3, len(data["died"]))
    told = study(grid=[0.5, 1, 1.5, 2], causes=["relapse", "death"])
    given = {"protects": "record", "settings": cv.settings.Survival(censoring="end")}
    found = cv.survival(data, told, **given, **EXACT)
    own = data["arm"] == 1
    time, cause, free, happened = data["years"][own], data["died"][own], 1.0, 0.0
    for start, end in zip(found.times, found.times[1:], strict=False):
        at_risk, now = (time > start).sum(), (time > start) & (time <= end)
        happened += free * (now & (cause == 2)).sum() / at_risk
        free *= 1 - (now & (cause > 0)).sum() / at_risk
        assert found.incidence("death", "treated", end).estimate == pytest.approx(happened, abs=1e-5)
    both = sum(found.incidence(one, "treated").estimate for one in ("relapse", "death"))
    assert both == pytest.approx(1 - found.survival("treated").estimate, abs=1e-6)
    assert found.hazard_ratio("death").estimate != found.hazard_ratio().estimate
    noisy = cv.survival(data, told, epsilon=2, noise=cv.SeededNoise(3), **given)
    low, high = noisy.incidence_difference("death").interval()
    assert low < found.incidence_difference("death").estimate < high
    assert "death by 2" in str(noisy)
    assert SurvivalResult.from_dict(noisy.to_dict()) == noisy
    assert cv.Study.from_dict(told.to_dict()) == told
    with pytest.raises(CounterveilError, match="CV-P694"):
        found.incidence("cough", "treated")
    with pytest.raises(CounterveilError, match="CV-P693"):
        found.quantile("treated", 2)
    data["died"] = 3 * (data["died"] > 0)
    with pytest.raises(CounterveilError, match="CV-D090"):
        cv.survival(data, told, **given, **EXACT)
    with pytest.raises(CounterveilError, match="CV-S090"):
        study(causes=["death"])


def test_what_cannot_be_asked_is_refused():
    plain = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("years", (0, 2)), assignment=cv.Trial())
    assert refusal(told=plain) == "CV-S091"
    assert refusal(told=study(randomised=None)) == "CV-S050"
    assert refusal(method="cox") == "CV-P016"
    assert refusal(settings=cv.settings.Matching()) == "CV-P019"
    labels = {f"x{k}": cv.Categories(list(range(10))) for k in range(4)}
    assert refusal(told=study(covariates=labels), method="stratified") == "CV-P691"
    for name in ("ate", "groups", "cate", "overlap"):
        by = {"by": "stage"} if name == "groups" else {}
        with pytest.raises(CounterveilError, match="CV-S091"):
            getattr(cv, name)(people(), study(**STAGES), protects="record", epsilon=1, **by)
    found = asked()
    for wrong, code in (
        (lambda: found.difference(0.7), "CV-P690"),
        (lambda: found.at_risk("other"), "CV-P692"),
    ):
        with pytest.raises(CounterveilError, match=code):
            wrong()


def test_strata_without_an_arm_are_refused_where_that_is_public():
    data = people(200)
    data["stage"] = np.where(data["arm"] == 1, "late", "early")
    with pytest.raises(CounterveilError, match="CV-S092"):
        cv.survival(data, study(**STAGES), protects="outcome", method="stratified", epsilon=1)
    # Where arms are private nobody may know, and intervals are as wide as can be.
    found = cv.survival(data, study(**STAGES), protects="record", epsilon=1, noise=cv.SeededNoise(1))
    low, high = found.difference().interval()
    assert high - low > 0.9


def test_on_the_command_line(tmp_path):
    pd.DataFrame(people()).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "study.toml").write_text(study().to_toml())
    words = ["survival", tmp_path / "rows.csv", "--study", tmp_path / "study.toml", "--protects", "record"]
    found = as_json(*words, "--epsilon", 2, "--report", tmp_path / "report.html")
    assert SurvivalResult.from_dict(found).times == (0.0, 0.5, 1.0, 1.5, 2.0)
    assert "Log-rank" in (tmp_path / "report.html").read_text()


def test_strata_that_noise_would_hide_are_merged_and_said():
    draw = np.random.default_rng(3)
    rows = 3000
    people = {
        "arm": draw.integers(0, 2, rows),
        "days": draw.exponential(1, rows),
        "died": draw.integers(0, 2, rows),
        "site": draw.choice(list("abcd"), rows),
        "stage": draw.integers(1, 5, rows),
        "age": draw.random(rows),
    }
    known = {
        "site": cv.Categories(list("abcd")),
        "stage": cv.Categories([1, 2, 3, 4]),
        "age": cv.Range(0, 1).cut("1/3", "2/3"),
    }
    times = {"outcome": "days", "event": "died", "horizon": 1, "grid": 12}
    study = study_of("arm", control=0, covariates=known, **times)
    given = {"protects": "record", "method": "stratified"}
    found = cv.survival(people, study, epsilon=1, noise=cv.SeededNoise(1), **given)
    assert found.merged_strata == {"site": (("a", "b"), ("c", "d")), "stage": (("1", "2"), ("3", "4"))}
    assert len(found.tables.numbers) == 2 * 12
    assert cv.results.SurvivalResult.from_dict(found.to_dict()) == found
    assert not cv.survival(people, study, epsilon=10, noise=cv.SeededNoise(1), **given).merged_strata

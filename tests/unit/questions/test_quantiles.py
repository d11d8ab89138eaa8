"""Quantiles: answers at both levels, weights, bands, refusals, stored results, the command line."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.command_line import as_json
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.report.pictures import axis_label
from counterveil.results import QuantilesResult

STUDY = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 100)), assignment=cv.Trial())
EXACT = {"epsilon": 1e9, "noise": cv.SeededNoise(1)}


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    return {"arm": arm, "y": np.clip(rng.normal(40 + 5 * arm, 10 + 5 * arm), 0, 100)}


@pytest.mark.parametrize("protects", ["outcome", "treatment and outcome", "record"])
def test_without_noise_they_are_numpys(protects):
    data = people()
    found = cv.quantiles(data, STUDY, protects=protects, grid=500, **EXACT)
    treated, control = arms = data["y"][data["arm"] == 1], data["y"][data["arm"] == 0]
    for one, share in zip(found.table, found.probs, strict=True):
        exact = np.quantile(treated, share) - np.quantile(control, share)
        assert one.estimate == pytest.approx(exact, abs=0.15)
        # The bootstrap's standard error of numpy's.
        rng = np.random.default_rng(1)
        drawn = [np.subtract(*(np.quantile(rng.choice(a, len(a)), share) for a in arms)) for _ in range(200)]
        assert np.subtract(*one.interval()[::-1]) == pytest.approx(3.92 * np.std(drawn), rel=0.25)
    assert found.distribution("treated", 40.0).estimate == pytest.approx((treated < 40).mean(), abs=1e-4)
    gap = found.distribution_difference(40.0)
    assert gap.estimate == pytest.approx((treated < 40).mean() - (control < 40).mean(), abs=1e-4)


def test_bands_hold_more_than_intervals():
    found = cv.quantiles(people(), STUDY, protects="record", epsilon=1, noise=cv.SeededNoise(2))
    for row in found.bands():
        assert row["band_low"] <= row["low"] <= row["estimate"] <= row["high"] <= row["band_high"]
    (row,) = found.quantile_band((0.5,))
    low, high = found.quantile_difference().interval()
    assert row["band_low"] < low < high < row["band_high"]
    asked = {"protects": "record", "probs": [0.9], "noise": cv.SeededNoise(3)}
    (found,) = cv.quantiles(people(seed=3), STUDY, epsilon=1, grid="found", **asked).table
    (low, high), (least, most) = found.interval(), replace(found, several=5).interval(simultaneous=True)
    assert least <= low < high <= most
    # An arm that noise hides may be anywhere, and its standard error says so.
    assert cv.quantiles(people(30), STUDY, epsilon="1/10", **asked).table[0].std_error.total > 30


@pytest.mark.parametrize(
    ("protects", "words"),
    [("outcome", "balancing weights"), ("treatment and outcome", "inverse propensity weights")],
)
def test_weights_undo_confounding(protects, words):
    rng, n = np.random.default_rng(5), 4000
    x = rng.uniform(0, 1, n)
    arm = (rng.random(n) < 0.25 + 0.5 * x).astype(int)
    data = {"arm": arm, "y": 100 * np.clip(0.3 + 0.3 * x + 0.1 * rng.normal(size=n), 0, 1), "x": x}
    told = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 100)), {"x": cv.Range(0, 1)})
    asked = {"protects": protects, "epsilon": 4, "noise": cv.SeededNoise(1)}
    found, plain = (cv.quantiles(data, told, method=method, **asked) for method in ("auto", "trial"))
    assert words in found.method
    assert found.quantile_difference().interval()[0] < 0 < found.quantile_difference().interval()[1]
    assert plain.quantile_difference().interval()[0] > 1


def test_nothing_is_supposed_within_a_cell_that_holds_most():
    rng = np.random.default_rng(3)
    data = {"arm": rng.integers(0, 2, 2000), "y": rng.exponential(0.5, 2000)}
    found = cv.quantiles(data, STUDY, protects="record", epsilon=1, grid=10, noise=cv.SeededNoise(1))
    low, high = found.quantile("treated", 0.5).interval()
    assert low == pytest.approx(0, abs=0.1)
    assert high > 9


@pytest.mark.parametrize("protects", ["outcome", "treatment and outcome", "record"])
def test_a_range_that_is_far_too_wide_is_found_to_be(protects):
    wide = STUDY._changed(outcome_range=(Fraction(-1000), Fraction(3000)))
    asked = {"protects": protects, "epsilon": 2, "noise": cv.SeededNoise(3)}
    found, declared = (cv.quantiles(people(), wide, grid=grid, **asked) for grid in ("found", "even"))
    (low, high), (least, most) = (one.quantile_difference().interval() for one in (found, declared))
    assert low < 5 < high
    assert high - low < (most - least) / 10
    assert len(found.releases) == 3
    assert (found.edges[1], found.edges[-1]) == (-1000, 3000)


@pytest.mark.parametrize("protects", ["outcome", "treatment and outcome", "record"])
def test_a_quantile_where_most_are_at_an_end_of_the_range_is_that_end(protects):
    rng = np.random.default_rng(2)
    arm, spends = rng.integers(0, 2, 2000), rng.random(2000) < 0.4
    spend = np.where(spends, np.exp(3 + 0.9 * rng.normal(size=2000)), 0).clip(0, 1000)
    study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1000)), assignment=cv.Trial())
    for epsilon in (1, 10**5):
        asked = {"protects": protects, "epsilon": epsilon, "noise": cv.SeededNoise(1)}
        found = cv.quantiles({"arm": arm, "y": spend}, study, **asked)
        for name, code in (("control", 0), ("treated", 1)):
            median = found.quantile(name)
            assert (median.estimate, median.interval()) == (0, (0, 0))
            share = (spend[arm == code] == 0).mean()
            assert found.distribution(name, 0.0).estimate == pytest.approx(share, abs=0.05 / epsilon**0.5)
            low, high = found.quantile(name, 0.75).interval()
            assert low <= np.quantile(spend[arm == code], 0.75) <= high < 50
        top = cv.quantiles({"arm": arm, "y": 1000 - spend}, study, **asked)
        assert top.quantile("control").interval() == (1000, 1000)
        assert top.quantile_difference().estimate == 0


def test_whole_numbers_of_a_short_range_have_cells_of_their_own():
    rng = np.random.default_rng(3)
    arm = np.arange(3000) % 2
    data = {"arm": arm, "y": rng.binomial(6, 0.5 + 0.1 * arm)}
    study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 6)), assignment=cv.Trial())
    for grid in ("found", "even"):
        asked = {"protects": "record", "epsilon": 2, "noise": cv.SeededNoise(1), "grid": grid}
        found = cv.quantiles(data, study, **asked)
        for name, code in (("control", 0), ("treated", 1)):
            ends = found.quantile(name).interval()
            assert ends[0] <= np.median(data["y"][arm == code]) <= ends[1]
            assert {float(end).is_integer() for end in ends} == {True}
            share = (data["y"][arm == code] <= 2).mean()
            assert found.distribution(name, 2.0).estimate == pytest.approx(share, abs=0.02)


def test_where_outcomes_lie_is_found_unless_cells_are_declared():
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 2000)
    data = {"arm": arm, "y": rng.exponential(8 + 2 * arm)}
    wide = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1000)), assignment=cv.Trial())
    lengths = []
    for grid, releases in (({}, 3), ({"grid": "even"}, 1), ({"grid": 100}, 1)):
        found = cv.quantiles(data, wide, protects="record", epsilon=1, noise=cv.SeededNoise(1), **grid)
        assert len(found.releases) == releases
        lengths.append(np.ptp(found.quantile_difference().interval()))
    assert lengths[0] < min(lengths[1:]) / 4


def test_a_result_is_written_and_read_back():
    found = cv.quantiles(people(), STUDY, protects="record", epsilon=1, noise=cv.SeededNoise(2))
    assert axis_label(found.report_facts()) == "effect on y, in its units"
    for facts in (found.to_dict(), found.stored()):
        assert QuantilesResult.from_dict(json.loads(json.dumps(facts))) == found
    broken = found.stored()
    broken["histograms"]["numbers"] = broken["histograms"]["numbers"][:1]
    with pytest.raises(CounterveilError, match="CV-P661"):
        QuantilesResult.from_dict(broken)


@pytest.mark.parametrize(
    ("code", "told", "given"),
    [
        ("CV-P695", {"arms": (0, 1, 2), "reference": 0}, {}),
        ("CV-P696", {}, {"grid": 1}),
        ("CV-P696", {}, {"grid": [5, 120]}),
        ("CV-P696", {}, {"grid": np.array([5, 20])}),
        ("CV-P693", {}, {"probs": (0.5, 1)}),
        ("CV-P693", {}, {"probs": 2}),
        ("CV-P016", {}, {"method": "weighting"}),
        ("CV-S050", {"randomised": None}, {}),
    ],
)
def test_what_cannot_be_asked_is_refused(code, told, given):
    arms = {} if "arms" in told else {"control": 0}
    study = study_of("arm", "y", (0, 100), **({"randomised": True} | arms | told))
    with pytest.raises(CounterveilError, match=code):
        cv.quantiles(people(), study, protects="record", epsilon=1, **given)


def test_on_the_command_line(tmp_path):
    pd.DataFrame(people()).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    words = ["quantiles", tmp_path / "rows.csv", "--study", tmp_path / "study.toml", "--prob", "0.9"]
    found = as_json(*words, "--protects", "record", "--epsilon", 2)
    assert QuantilesResult.from_dict(found).probs == (0.9,)


def test_quantiles_of_whole_numbers_reach_the_ends_of_their_cells():
    # Everybody is at 0 or 1: the difference of the third quartiles is -1 exactly.
    rng = np.random.default_rng(3)
    arm = np.arange(4000) % 2
    events = (rng.random(4000) < np.where(arm == 1, 0.2, 0.3)).astype(float)
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    asked = {"protects": "record", "epsilon": 4, "noise": cv.SeededNoise(1)}
    found = cv.quantiles({"t": arm, "y": events}, study, probs=(0.75,), **asked)
    (row,) = found.tidy()
    assert row["conf_low"] <= -1 <= row["conf_high"]
    # Numbers that lie evenly are not taken for whole ones.
    asked["noise"] = cv.SeededNoise(1)
    even = cv.quantiles({"t": arm, "y": rng.random(4000)}, study, probs=(0.5,), **asked)
    assert even.tidy()[0]["conf_high"] - even.tidy()[0]["conf_low"] < 0.2


def test_counts_stand_out_as_crowds():
    rng = np.random.default_rng(4)
    arm = np.arange(6000) % 2
    data = {"t": arm, "y": np.minimum(rng.poisson(2.2 + 0.6 * arm), 40)}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 40)), assignment=cv.Trial())
    found = cv.quantiles(data, study, protects="record", epsilon=1, probs=(0.5,), noise=cv.SeededNoise(1))
    # Medians of Poisson counts of 2.8 and 2.2.
    low, high = found.table[0].interval()
    assert low <= 1 <= high
    assert found.quantile("treated").interval()[1] >= 3
    assert found.quantile("control").interval()[1] >= 2


def test_people_whom_capped_weights_leave_out_are_allowed_for():
    rng = np.random.default_rng(6)
    x, chance = rng.random(6000), rng.random(6000)
    # A third of the people are treated with probabilities below a twentieth.
    arm = (chance < 1 / (1 + np.exp(1.7 - 6 * (x - 0.5)))).astype(int)
    data = {"t": arm, "x": x, "y": np.clip(4 * x + arm + rng.normal(3, 0.5, 6000), 0, 10)}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 10)), {"x": cv.Range(0, 1)})
    asked = {"protects": "treatment and outcome", "epsilon": 20, "noise": cv.SeededNoise(1)}
    found = cv.quantiles(data, study, probs=(0.25,), **asked)
    low, high = found.quantile("treated", 0.25).interval()
    # The quantile of 4 x + 1 + normal(3, 0.5) over everyone.
    assert low <= np.quantile(4 * x + rng.normal(4, 0.5, 6000), 0.25) <= high
    low, high = found.table[0].interval()
    assert low <= 1 <= high


def test_where_nobody_lies_between_two_peaks_both_medians_may_be_off_by_all_of_the_way():
    """Of 500 people in each arm, five more or less on a peak move its median to the other one."""
    near = np.repeat([0.0, 8.0, 0.0, 8.0], [255, 245, 245, 255]) + np.tile(np.linspace(-0.5, 0.5, 10), 100)
    rows = {"arm": np.repeat([1, 0], 500), "y": near}
    study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (-2, 11)), assignment=cv.Trial())
    asked = {"protects": "outcome", "epsilon": 100, "noise": cv.SeededNoise(1)}
    low, high = cv.quantiles(rows, study, **asked).quantile_difference(0.5).interval()
    assert low < -6
    assert high > 6


def test_events_lie_at_the_end_of_the_range():
    ends = []
    for seed in range(8):
        draw = np.random.default_rng([3, seed])
        x = draw.random((500, 2))
        arm = (draw.random(500) < 1 / (1 + np.exp(-2 * (x.sum(axis=1) - 1)))).astype(int)
        rows = {"arm": arm, "y": (draw.random(500) < 0.3).astype(float), "a": x[:, 0], "b": x[:, 1]}
        study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1)), {"a": (0, 1), "b": (0, 1)})
        asked = {"protects": "treatment and outcome", "epsilon": 2, "noise": cv.SeededNoise(seed)}
        ends.append(cv.quantiles(rows, study, **asked).quantile("treated", 0.75).interval()[1])
    assert ends.count(1.0) >= 7


def test_cells_of_a_found_place_are_parts_of_whole_numbers_where_the_range_is_whole():
    """Counts in a range far too wide: cells across them would tell of places where none lies."""
    missed = 0
    for seed in range(6):
        draw = np.random.default_rng([5, seed])
        rows = {"arm": draw.integers(0, 2, 500), "y": draw.poisson(2.0, 500)}
        study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (-180, 220)), assignment=cv.Trial())
        asked = {"protects": "record", "epsilon": 2, "noise": cv.SeededNoise(seed), "grid": "found"}
        found = cv.quantiles(rows, study, **asked)
        assert 1.0 in found.edges
        assert 2.0 in found.edges
        for share, true in ((0.25, 1), (0.5, 2), (0.75, 3)):
            low, high = found.quantile("control", share).interval()
            missed += not low <= true <= high
    assert missed <= 2

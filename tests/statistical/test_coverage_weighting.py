"""Coverage of weighted effects where what bends outcomes also moves treatment: a part here, more of it marked slow.

`python -m experiments.outcome_level.redrawn` prints the whole table.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from experiments.causal.designs import bent, births, varying
from experiments.outcome_level.redrawn import attached, private
from experiments.outcome_level.surfaces import bent_kind

import counterveil as cv

# Lines, squares and the score alone, and no allowance for bias.
PLAIN = cv.settings.Weighting(features=("covariates", "squares", "products", "score"), bias=0)


def cell(design, epsilon, draws, estimand="ATE", settings=None):
    tables = [attached(design, draw) for draw in range(draws)]
    return private(design, tables, "weighting", epsilon, estimand, settings)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_bent_index_is_covered_where_lines_miss_it(epsilon):
    design = bent(2000, seed=5)
    # Outcomes are drawn 40 times, noise is averaged over: three standard errors below 93 %.
    assert cell(design, epsilon, 40).covered >= 0.93 - 3 * (0.93 * 0.07 / 40) ** 0.5
    assert cell(design, epsilon, 10, settings=PLAIN).covered < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "epsilon"),
    list(product([bent(1000, 8), bent(10_000, 8), births(seed=8)], [0.5, 1.0, 4.0])),
    ids=lambda value: getattr(value, "name", value),
)
def test_coverage_of_more_designs(design, epsilon):
    assert cell(design, epsilon, 150).covered >= 0.93 - 3 * (0.93 * 0.07 / 150) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_coverage_of_every_estimand_where_effects_vary(estimand):
    assert (
        cell(varying(0.6, 5000, seed=8), 2.0, 150, estimand).covered >= 0.93 - 3 * (0.93 * 0.07 / 150) ** 0.5
    )


@pytest.mark.slow
def test_bends_of_the_score_take_most_of_the_bias_away():
    design = bent_kind("step", 2000, 8)
    found, plain = cell(design, 4.0, 20), cell(design, 4.0, 20, settings=PLAIN)
    assert found.error < 0.75 * plain.error


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_coverage_of_trials_whose_weights_suppose_that_covariates_explain_less(epsilon):
    covered = []
    for seed in range(12):
        # Half of the outcome's variance follows covariates, and effects vary with them.
        dealt = varying(0.6, 600, seed=seed, pull=0.0)
        trial = replace(dealt, study=dealt.study._changed(randomised=True))
        covered.append(cell(trial, epsilon, 20).covered)
    assert np.mean(covered) >= 0.93 - 3 * (0.93 * 0.07 / 240) ** 0.5

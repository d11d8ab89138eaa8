"""Coverage of effects on private records where effects vary: a small part here, more of it marked slow.

`python -m experiments.record_effect --redrawn` prints the whole table.
"""

import numpy as np
import pytest
from experiments.record_effect.redrawn import births, skewed, varying, widened

import counterveil as cv


def answers(study, draws, estimand, epsilon, delta="1e-6", first=0):
    """Return coverage and the median width over redrawn outcomes."""
    truth, covered, widths = study.truth(estimand), 0, []
    for draw in range(first, first + draws):
        y = np.clip(study.outcome(np.random.default_rng([draw, 5])), *study.bounds)
        table = study.table(y)
        result = cv.ate(
            table,
            table.study,
            protects="record",
            method="doubly_robust",
            epsilon=epsilon,
            delta=delta,
            estimand=estimand,
            noise=cv.SeededNoise(draw),
        )
        low, high = result.untruncated_interval()
        covered += low <= truth <= high
        widths.append(high - low)
    return covered / draws, float(np.median(widths))


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_effects_that_vary_are_covered(estimand):
    found, width = answers(varying(31, slope=1.0), 8, estimand, 4)
    # Three standard errors of 8 draws below 93 %; slow tests have more.
    assert found >= 0.93 - 3 * (0.93 * 0.07 / 8) ** 0.5
    # The overlap-weighted effect lies outside: an interval of this width around it would miss.
    study = varying(31, slope=1.0)
    e = 1 / (1 + np.exp(0.5 - 0.7 * (study.gain - 1)))
    overlap = float(np.average(study.gain, weights=e * (1 - e)))
    assert estimand == "ATE" or abs(overlap - study.truth(estimand)) > width / 2


def test_a_range_far_too_wide_costs_little():
    narrow, wide = (answers(study, 3, "ATE", 2)[1] for study in (births(32), widened(births(32), 20)))
    assert wide < 1.3 * narrow


# Every slope, estimand and epsilon, but not each with each: `experiments.record_effect --redrawn` has all cells.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("slope", "estimand", "epsilon"),
    [(0.0, "ATE", 2), (0.3, "ATC", 8), (0.6, "ATT", 4), (1.0, "ATE", 4), (1.0, "ATC", 2)],
)
def test_cells_of_varying_effects(slope, estimand, epsilon):
    found, _ = answers(varying(33, slope=slope), 100, estimand, epsilon)
    assert found >= 0.93 - 2 * (0.93 * 0.07 / 100) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("residual", [1.0, 0.33])
def test_aligned_coefficients_on_skewed_covariates(residual):
    for epsilon in (2, 8):
        found, _ = answers(skewed(34, residual=residual), 60, "ATE", epsilon)
        assert found >= 0.93 - 2 * (0.93 * 0.07 / 60) ** 0.5

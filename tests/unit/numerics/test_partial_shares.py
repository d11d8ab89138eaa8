"""Partial R^2 of covariates with the treatment, against regressions with and without each of them."""

import numpy as np
import pytest

from counterveil.numerics.propensity import partial_shares


def by_regressions(columns, labels, treated):
    def left(parts):
        design = np.column_stack([np.ones(len(treated)), *parts])
        return float(np.sum((treated - design @ np.linalg.lstsq(design, treated, rcond=None)[0]) ** 2))

    expanded = [
        [column] if not count else [(column == code) * 1.0 for code in range(1, count)]
        for column, count in zip(columns, labels, strict=True)
    ]
    whole = left([part for parts in expanded for part in parts])
    without = [
        left([part for k, parts in enumerate(expanded) if k != j for part in parts])
        for j in range(len(labels))
    ]
    return [1 - whole / rest for rest in without]


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) + 2000.0
    w = 0.7 * (x - 2000) + rng.standard_normal(n)
    site = rng.integers(0, 4, n).astype(float)
    treated = rng.random(n) < 1 / (1 + np.exp(-(0.9 * (x - 2000) - 0.4 * w + 0.5 * (site == 2))))
    return [x, w, site], [0, 0, 4], treated


def test_shares_are_those_of_regressions_with_and_without_each_covariate():
    columns, labels, treated = rows()
    expected = by_regressions(columns, labels, treated.astype(float))
    assert partial_shares(columns, labels, treated) == pytest.approx(expected, abs=1e-6)
    assert expected[0] > 0.05


def test_constants_and_repeated_columns_are_harmless():
    columns, labels, treated = rows()
    found = partial_shares([*columns, np.full(4000, 3.0), columns[0].copy()], [*labels, 0, 0], treated)
    assert found[3] == pytest.approx(0.0, abs=1e-6)
    # What another column holds already explains nothing beyond it.
    assert found[0] == pytest.approx(0.0, abs=1e-3)
    assert np.all((found >= 0) & (found <= 1))

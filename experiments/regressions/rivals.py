"""Other estimators of the same coefficients: without privacy, from a plain noisy Gram, and a difference in means."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.estimators.moments.regression_columns import columns_of
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget
from counterveil.results.regression import parse_formula
from experiments.regressions.designs import Design, People

Found = dict[str, tuple[float, float]]


def _values(design: Design, data: People, name: str) -> np.ndarray:
    if ":" in name:
        one, two = name.split(":")
        return _values(design, data, one) * _values(design, data, two)
    base, _, label = name.partition("=")
    if name == "Intercept":
        return np.ones(len(data["y"]))
    return (np.asarray(data[base]) == label).astype(float) if label else np.asarray(data[base], float)


def ordinary(design: Design, data: People) -> Found:
    """Return least squares or two-stage least squares of the rows, and their standard errors; not private."""
    terms, instruments = _terms(design)
    x = np.column_stack([_values(design, data, name) for name in terms])
    z = np.column_stack([_values(design, data, name) for name in instruments])
    y = np.asarray(data["y"], float)
    fitted = z @ np.linalg.lstsq(z, x, rcond=None)[0]
    inverse = np.linalg.inv(fitted.T @ x)
    found = inverse @ (fitted.T @ y)
    variance = float(np.sum((y - x @ found) ** 2)) / (len(y) - len(terms))
    errors = np.sqrt(variance * np.diag(inverse))
    return {name: (float(b), float(e)) for name, b, e in zip(terms, found, errors, strict=True)}


def _terms(design: Design) -> tuple[list[str], list[str]]:
    """Return the names of the regressors and of the instruments of a design's formula."""
    columns = columns_of(design.study, design.outcomes, design.terms)
    found = parse_formula(design.formula, columns.names, dict(columns.groups))
    exogenous = ["Intercept", *found.regressors]
    return [*exogenous, *found.endogenous], [*exogenous, *found.instruments]


def noisy_gram(design: Design, data: People, seed: int, epsilon: str, delta: str) -> Found:
    """Return least squares from one noisy Gram matrix of columns scaled by their declared bounds, noise ignored.

    Every column lies in [0, 1] after scaling, so that one record moves every entry by at most one.
    """
    terms, _ = _terms(design)
    names = [*terms, "y"]
    low, width = np.array([_bounds(design, name) for name in names]).T
    v = np.column_stack([_values(design, data, name) for name in names])
    v = np.clip((v - low) / width, 0.0, 1.0)
    v[:, 0] = 1.0
    rng, size = np.random.default_rng(seed + 10**6), len(names)
    budget = Budget(epsilon, delta)
    sd = np.sqrt(size * (size + 1) / 2) / float(mu_of(budget.epsilon, budget.delta))
    noise = np.triu(rng.normal(0, sd, (size, size)))
    gram = v.T @ v + noise + np.triu(noise, 1).T
    inverse = np.linalg.pinv(gram[:-1, :-1])
    scaled = inverse @ gram[:-1, -1]
    residual = gram[-1, -1] - scaled @ gram[:-1, -1]
    variance = max(float(residual), 0.0) / (len(v) - len(terms))
    errors = np.sqrt(np.maximum(variance * np.diag(inverse), 0.0))
    return {
        name: (float(b * width[-1] / w), float(e * width[-1] / w))
        for name, b, e, w in zip(terms, scaled, errors, width[:-1], strict=True)
    }


def _bounds(design: Design, name: str) -> tuple[float, float]:
    """Return the least value of a column and the width of its range."""
    if name in ("Intercept", "t") or "=" in name:
        return 0.0, 1.0
    if ":" in name:
        low, width = _bounds(design, name.split(":")[1])
        return min(low, 0.0), width + low - min(low, 0.0)
    bounds = design.study.outcome_bounds if name == "y" else design.study.covariates[name]
    low, high = bounds.floats()  # type: ignore[union-attr]
    return low, high - low


def difference_in_means(design: Design, data: People, seed: int, epsilon: str, delta: str) -> Found:
    """Return the private difference in means of the arms, which estimates the average effect."""
    found = cv.ate(
        data,
        design.study,
        protects="record",
        method="trial",
        settings=cv.settings.Trial("none"),
        epsilon=epsilon,
        delta=delta,
        noise=cv.SeededNoise(seed),
    )
    return {"t": (found.estimate, found.std_error.total)}

"""Sites that differ: coverage of random effects for two to twelve sites of unequal size and budget.

Released numbers are drawn from the mechanisms that real results state, rather than from rows, so that many draws are
cheap: a normal sampling error, the site's noise, and the noise of its variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import stdtrit

import counterveil as cv
from counterveil.inference.heterogeneity import heterogeneity
from counterveil.inference.site_weights import released_variance
from experiments.pooling.simulation import STUDY
from experiments.runner import Row, Table

MEAN_EFFECT = 0.1
# Variance of 0.7 times a beta(1.2, 6) outcome.
_OUTCOME_VARIANCE = 0.49 * 1.2 * 6.0 / (7.2**2 * 8.2)
# Rows and epsilon of every site in turn; repeated for more sites.
DESIGNS = {
    "alike": ((600, 1.0),),
    "unequal budgets": ((600, 1.0), (600, 0.05), (600, 8.0)),
    "unequal sizes and budgets": ((4000, 4.0), (200, 0.25), (800, 1.0), (200, 4.0)),
}
SITES = (2, 3, 4, 6, 8, 12)
TAUS = (0.0, 0.02, 0.1)
# Ways of pooling whose interval is for these sites; "largest" is one site's own.
ALIKE = ("mvagg", "ivw", "all")


@dataclass(frozen=True)
class Found:
    """Coverage of the mean effect, mean width and rms error; coverage of one more site's effect."""

    covered: float
    width: float
    error: float
    ahead: float


def templates(design: str, sites: int) -> list[cv.results.Result]:
    """Return one real result for each site, whose noise distributions the draws use."""
    found = []
    for place in range(sites):
        rows, epsilon = DESIGNS[design][place % len(DESIGNS[design])]
        trial = {"t": np.arange(rows) % 2, "y": np.linspace(0, 0.5, rows)}
        noise = cv.SeededNoise(place)
        found.append(cv.ate(trial, STUDY, protects="outcome", epsilon=epsilon, noise=noise))
    return found


def drawn(
    real: list[cv.results.Result], effects: np.ndarray, rng: np.random.Generator
) -> list[cv.results.Result]:
    """Return results of sites with these effects."""
    found = []
    for result, effect in zip(real, effects, strict=True):
        known = result.uncertainty
        sampling = 4 * _OUTCOME_VARIANCE / result.details["rows"]
        estimate = rng.normal(effect, sampling**0.5) + _draw(known.noise, rng)
        if known.variance_noise is not None:
            known = replace(known, variance=sampling + _draw(known.variance_noise, rng))
        found.append(replace(result, estimate=estimate, uncertainty=known))
    return found


def _draw(mechanism: object, rng: np.random.Generator) -> float:
    return float(mechanism.quantile(np.array([rng.random()]))[0])  # type: ignore[attr-defined]


def simulate(design: str, sites: int, tau: float, draws: int, seed: int) -> dict[str, Found]:
    """Return what equal weights over quiet sites give, and weights 1 / (v + tau^2) with Hartung and Knapp's t."""
    rng = np.random.default_rng([seed, sites, round(1000 * tau), list(DESIGNS).index(design)])
    real = templates(design, sites)
    found: dict[str, list[tuple[float, ...]]] = {"equal weights": [], "inverse variances": []}
    for _ in range(draws):
        effects = rng.normal(MEAN_EFFECT, tau, sites)
        another = float(rng.normal(MEAN_EFFECT, tau))
        results = drawn(real, effects, rng)
        pooled = cv.pool(results, method="random_effects")
        low, high = pooled.untruncated_interval()
        least, most = pooled.prediction_interval()
        found["equal weights"].append(_line(low, high, least <= another <= most))
        found["inverse variances"].append(_line(*_inverse_variances(results), np.nan))
    means = {form: np.mean(rows, axis=0) for form, rows in found.items()}
    return {form: Found(c, w, float(e) ** 0.5, a) for form, (c, w, e, a) in means.items()}


def _line(low: float, high: float, ahead: float) -> tuple[float, ...]:
    return low <= MEAN_EFFECT <= high, high - low, ((low + high) / 2 - MEAN_EFFECT) ** 2, ahead


def _inverse_variances(results: list[cv.results.Result]) -> tuple[float, float]:
    """Return the usual interval: Paule and Mandel, Hartung and Knapp, not below that of a known tau^2."""
    estimates = np.array([result.estimate for result in results])
    variances = np.array([released_variance(result.uncertainty) for result in results])
    weights = 1 / (variances + heterogeneity(estimates, variances).tau_squared)
    known = 1.959964 / weights.sum() ** 0.5
    weights /= weights.sum()
    centre, df = float(weights @ estimates), len(results) - 1
    sd = float(weights @ (estimates - centre) ** 2 / df) ** 0.5
    half = max(known, sd * float(stdtrit(df, 0.975)))
    return centre - half, centre + half


def differ(design: str, sites: int, tau: float, *, seeds: range) -> Row:
    """Return one row: a design, how many sites, and the standard deviation of their effects."""
    found = simulate(design, sites, tau, len(seeds), seeds.start)
    ours, usual = found["equal weights"], found["inverse variances"]
    own = [ours.covered, ours.width, ours.error, ours.ahead]
    return [design, sites, tau, *own, usual.covered, usual.width, usual.error]


def homogeneous(design: str, sites: int, draws: int, seed: int) -> dict[str, float]:
    """Return how often each interval covers the effect that all sites share."""
    rng = np.random.default_rng([seed, sites, list(DESIGNS).index(design)])
    real = templates(design, sites)
    covered = dict.fromkeys(ALIKE, 0)
    for _ in range(draws):
        results = drawn(real, np.full(sites, MEAN_EFFECT), rng)
        for method in ALIKE:
            low, high = cv.pool(results, method=method).untruncated_interval()
            covered[method] += low <= MEAN_EFFECT <= high
    return {method: count / draws for method, count in covered.items()}


def alike(design: str, sites: int, *, seeds: range) -> Row:
    """Return one row of the coverage of the intervals for one effect at all sites."""
    return [design, sites, *homogeneous(design, sites, len(seeds), seeds.start).values()]


TABLES = {
    "differing": Table(
        columns=(
            "design | sites | sd of effects :g | covers the mean :.3f | width :.4f | error :.4f | "
            "covers one more site :.3f | inverse variances: covers :.3f | width :.4f | error :.4f"
        ),
        cells=list(product(DESIGNS, SITES, TAUS)),
        row=differ,
        title="## Sites that differ: 95 % intervals, {draws} draws a row",
        draws=1000,
        first_seed=900,
    ),
    "alike": Table(
        columns=("design", "sites", *(f"{method} :.3f" for method in ALIKE)),
        cells=list(product(DESIGNS, SITES)),
        row=alike,
        title="## Sites that do not differ: coverage of 95 % intervals, {draws} draws a row",
        draws=1000,
        first_seed=901,
    ),
}

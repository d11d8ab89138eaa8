"""Sites that differ: coverage of random effects for two to twelve sites of unequal size and budget.

Released numbers are drawn from the mechanisms that real results state, rather than from rows, so that many draws are
cheap: a normal sampling error, the site's noise, and the noise of its variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

import counterveil as cv
from counterveil.inference.heterogeneity import heterogeneity
from counterveil.inference.site_weights import released_variance
from experiments.pooling.simulation import STUDY

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


def table(draws: int, seed: int) -> Iterator[str]:
    """Yield the table over designs, numbers of sites and standard deviations of effects, line by line."""
    yield (
        "| design | sites | sd of effects | covers the mean | width | error | covers one more site "
        "| inverse variances: covers | width | error |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for design in DESIGNS:
        for sites in SITES:
            for tau in TAUS:
                found = simulate(design, sites, tau, draws, seed)
                ours, usual = found["equal weights"], found["inverse variances"]
                yield (
                    f"| {design} | {sites} | {tau:g} | {ours.covered:.3f} | {ours.width:.4f} | {ours.error:.4f} "
                    f"| {ours.ahead:.3f} | {usual.covered:.3f} | {usual.width:.4f} | {usual.error:.4f} |"
                )


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


def homogeneous_table(draws: int, seed: int) -> Iterator[str]:
    """Yield the coverage of the intervals for one effect at all sites, line by line."""
    yield "| design | sites | " + " | ".join(ALIKE) + " |"
    yield "|---|---|" + "---|" * len(ALIKE)
    for design in DESIGNS:
        for sites in SITES:
            found = homogeneous(design, sites, draws, seed)
            yield f"| {design} | {sites} | " + " | ".join(f"{c:.3f}" for c in found.values()) + " |"

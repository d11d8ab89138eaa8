"""Simulated observational studies whose effect differs between people in a known way.

Dataset 1 and Dataset 2 follow the generator of Oprescu, Syrgkanis and Wu 2019. `skewed` gives them covariates
that are skewed and correlated, `kink` gives Dataset 1 an effect that no polynomial fits exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from counterveil.data import Range, Study
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.folder import out_of_range
from counterveil.privacy import Number

Floats = NDArray[np.float64]
Effect = Callable[[Mapping[str, NDArray[Any]]], Floats]

_FEWEST = 20
# With slopes on all of 30 covariates nobody would be untreated.
_SUPPORT = 5
_SHAPES = (2.0, 5.0)
_KNOTS = 4001


@dataclass(frozen=True, slots=True)
class _Design:
    """What tells one design from another: its size, effect, public bounds of the outcome, and covariates."""

    name: str
    covariates: int
    effect: Effect
    outcome_range: tuple[Number, Number]
    skewed: bool = False


def dataset_1(n: int = 3000, seed: int = 0) -> Dataset:
    """Return n people with two covariates and the effect exp(2 x1) + 3 sin(4 x1)."""
    return _drawn(_Design("Dataset 1", 2, effect_1, (-1, "8.5")), n, seed)


def dataset_2(n: int = 3000, seed: int = 0) -> Dataset:
    """Return n people with thirty covariates and the effect exp(2 x1) + 3 sin(4 x2)."""
    return _drawn(_Design("Dataset 2", 30, effect_2, ("-2.5", "16.5")), n, seed)


def skewed(n: int = 3000, seed: int = 0, covariates: int = 2) -> Dataset:
    """Return Dataset 1 or 2 on correlated Beta(2, 5) covariates that share half of their normal score."""
    if covariates not in (2, 30):
        raise out_of_range("covariates", "2 or 30", covariates)
    if covariates == 2:
        return _drawn(_Design("Dataset 1, skewed", 2, effect_1, (-1, "8.5"), skewed=True), n, seed)
    return _drawn(_Design("Dataset 2, skewed", 30, effect_2, ("-2.5", "16.5"), skewed=True), n, seed)


def kink(n: int = 3000, seed: int = 0) -> Dataset:
    """Return n people with two covariates and an effect of 1 that rises with slope 6 where x1 is above 1/2."""
    return _drawn(_Design("kink", 2, effect_of_kink, (-1, 7)), n, seed)


def effect_1(columns: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the effect of Dataset 1 at these covariates."""
    x = np.asarray(columns["x1"], dtype=np.float64)
    return np.asarray(np.exp(2 * x) + 3 * np.sin(4 * x), dtype=np.float64)


def effect_2(columns: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the effect of Dataset 2 at these covariates."""
    first, second = (np.asarray(columns[name], dtype=np.float64) for name in ("x1", "x2"))
    return np.asarray(np.exp(2 * first) + 3 * np.sin(4 * second), dtype=np.float64)


def effect_of_kink(columns: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the effect of the design with a kink at these covariates."""
    x = np.asarray(columns["x1"], dtype=np.float64)
    return np.asarray(1 + 6 * np.maximum(x - 0.5, 0), dtype=np.float64)


def _drawn(design: _Design, n: int, seed: int) -> Dataset:
    """Return the design's people: treated with probability (1 + x.b)/2, outcome effect + x.c + noise."""
    if not isinstance(n, int) or n < _FEWEST:
        raise out_of_range("n", f"an int of at least {_FEWEST}", n)
    generator = np.random.default_rng(seed)
    b, c = (_slopes(generator, design.covariates, largest) for largest in (0.3, 1.0))
    x = _covariates(generator, n, design.covariates, design.skewed)
    names = [f"x{place}" for place in range(1, design.covariates + 1)]
    columns: dict[str, NDArray[Any]] = dict(zip(names, np.ascontiguousarray(x.T), strict=True))
    treated = x @ b >= generator.uniform(-1.0, 1.0, n)
    effects = design.effect(columns)
    y = effects * treated + x @ c + generator.uniform(-1.0, 1.0, n)
    domains = dict.fromkeys(names, Range(0, 1))
    return Dataset(
        name=f"{design.name}, n={n}, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y} | columns,
        study=Study("treated", "y", design.outcome_range, domains, control=0, randomised=False),
        source="simulated by this function, with the generator of Oprescu et al. 2019",
        licence="none needed",
        true_effect=float(np.mean(effects)),
        notes="The bounds of the outcome hold for every draw. The slopes are drawn with the people.",
        effects=effects,
        effect_at=design.effect,
    )


def _slopes(generator: np.random.Generator, covariates: int, largest: float) -> Floats:
    """Return slopes on [0, largest], all but a few of them zero where there are many covariates."""
    slopes = np.zeros(covariates)
    support = generator.choice(covariates, min(covariates, _SUPPORT), replace=False)
    slopes[support] = generator.uniform(0.0, largest, len(support))
    return slopes


def _covariates(generator: np.random.Generator, n: int, covariates: int, is_skewed: bool) -> Floats:
    if not is_skewed:
        return generator.uniform(size=(n, covariates))
    scores = generator.standard_normal((n, 1)) + generator.standard_normal((n, covariates))
    # The quantile function is read off a table: it is slow to evaluate for millions of numbers.
    knots = np.linspace(-6.0, 6.0, _KNOTS)
    quantiles: Floats = np.interp(scores / np.sqrt(2.0), knots, betaincinv(*_SHAPES, ndtr(knots)))
    return quantiles

"""A simulated observational study: treatment and outcome depend on the same covariates, the effect is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr

from counterveil.data import Categories, Range, Study
from counterveil.datasets.dataset import Dataset
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Number

EFFECT = 0.5
_FEWEST = 20


def synth(
    seed: int = 0,
    n: int = 1000,
    covariates: int = 20,
    outcome_range: tuple[Number, Number] = (0, 5),
    outcome_seed: int | None = None,
) -> Dataset:
    """Return n people whose outcome is b.x + 0.5 treated + q, treated with probability 1/(1 + exp(-a.(2x - 1))).

    x is uniform on the unit cube, a on [-1, 1], b on [0, 0.4] and q, drawn for each person, on [0, 0.1]. With
    an `outcome_seed` the slopes b and the q are drawn again from it: covariates and treatments stay.
    """
    if not isinstance(n, int) or n < _FEWEST:
        raise refusal("CV-D043", argument="n", expected=f"an int of at least {_FEWEST}", got=n)
    if not isinstance(covariates, int) or covariates < 1:
        raise refusal("CV-D043", argument="covariates", expected="an int of at least 1", got=covariates)
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(n, covariates))
    a, b = generator.uniform(-1.0, 1.0, covariates), generator.uniform(0.0, 0.4, covariates)
    treated = generator.uniform(size=n) < expit((2 * x - 1) @ a)
    if outcome_seed is not None:
        generator = np.random.default_rng([seed, outcome_seed])
        b = generator.uniform(0.0, 0.4, covariates)
    y = x @ b + EFFECT * treated + generator.uniform(0.0, 0.1, n)
    names = [f"x{place}" for place in range(1, covariates + 1)]
    frame = {"treated": treated.astype(np.int64), "y": y} | dict(zip(names, x.T, strict=True))
    return Dataset(
        name=f"Synth, seed {seed}",
        frame=frame,
        study=Study(
            "treated", "y", outcome_range, dict.fromkeys(names, Range(0, 1)), control=0, randomised=False
        ),
        source="simulated by this function, with the ranges of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {covariates} covariates. The default range of the outcome suits 20 covariates.",
    )


# A simulated observational study with one discrete confounder: people of a level make a stratum.


def synth_strata(seed: int = 0, n: int = 10_000, levels: int = 100, slope: float | None = None) -> Dataset:
    """Return n people at a level x of 0, 1/(levels-1), ..., 1 with outcome b x + 0.5 treated + e, in [0, 1].

    Treated with probability 1/(1 + exp(-a (2x - 1))); a is `slope`, or uniform on [-1, 1] where that is
    None; b is uniform on [0, 0.4] and e, drawn for each person, on [0, 0.1]. The column x holds the number
    of the level.
    """
    if not isinstance(n, int) or n < _FEWEST:
        raise refusal("CV-D043", argument="n", expected=f"an int of at least {_FEWEST}", got=n)
    if not isinstance(levels, int) or levels < 2:
        raise refusal("CV-D043", argument="levels", expected="an int of at least 2", got=levels)
    generator = np.random.default_rng(seed)
    level = generator.integers(levels, size=n)
    x = level / (levels - 1)
    drawn, b = generator.uniform(-1.0, 1.0), generator.uniform(0.0, 0.4)
    a = drawn if slope is None else slope
    treated = generator.uniform(size=n) < expit(a * (2 * x - 1))
    y = b * x + EFFECT * treated + generator.uniform(0.0, 0.1, n)
    return Dataset(
        name=f"Synth on {levels} strata, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y, "x": level},
        study=Study("treated", "y", (0, 1), {"x": Categories(range(levels))}, control=0, randomised=False),
        source="simulated by this function, with the distributions of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {levels} levels.",
    )


# A simulated randomised trial whose effect is known.


_FEWEST_trial = 8


def simulated_trial(
    n: int,
    effect: float,
    outcome: Literal["binary", "continuous"] = "binary",
    share: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Return n people, each treated with probability `share`, whose average effect is `effect`.

    Outcomes lie in [0, 1]. A continuous outcome moves by exactly `effect` in every person; a binary
    one moves from probability (1 - effect) / 2 to (1 + effect) / 2. The covariate `x` in [0, 1]
    predicts the outcome and not the treatment.
    """
    _check(n, effect, outcome, share)
    generator = np.random.default_rng(seed)
    luck = generator.random(n)
    x = (luck + generator.random(n)) / 2
    treated = generator.random(n) < share
    while not 2 <= np.count_nonzero(treated) <= n - 2:
        treated = generator.random(n) < share
    if outcome == "binary":
        # A large x goes with a large outcome, as in the continuous case.
        y = (luck > (1 - effect * np.where(treated, 1, -1)) / 2).astype(np.float64)
    else:
        without = (1 - abs(effect)) * luck + max(-effect, 0.0)
        y = without + effect * treated
    return Dataset(
        name=f"simulated trial ({outcome})",
        frame={"treated": treated.astype(np.int64), "y": y, "x": x},
        study=Study(
            treatment="treated",
            outcome="y",
            outcome_range=(0, 1),
            covariates={"x": Range(0, 1)},
            control=0,
            randomised=True,
            treated_share=share,
        ),
        source="simulated by this function",
        licence="none needed",
        true_effect=float(effect),
        notes=f"n={n}, effect={effect}, share={share}, seed={seed}",
    )


def _check(n: int, effect: float, outcome: str, share: float) -> None:
    if not isinstance(n, int) or n < _FEWEST_trial:
        raise refusal("CV-D043", argument="n", expected=f"an int of at least {_FEWEST_trial}", got=n)
    if not -1 <= effect <= 1:
        raise refusal("CV-D043", argument="effect", expected="a number in [-1, 1]", got=effect)
    if outcome not in ("binary", "continuous"):
        raise refusal("CV-D043", argument="outcome", expected='"binary" or "continuous"', got=outcome)
    if not 0 < share < 1:
        raise refusal("CV-D043", argument="share", expected="a number strictly between 0 and 1", got=share)


# Simulated observational studies whose effect differs between people in a known way.
#
# Dataset 1 and Dataset 2 follow the generator of Oprescu, Syrgkanis and Wu 2019. `skewed` gives them covariates
# that are skewed and correlated, `kink` gives Dataset 1 an effect that no polynomial fits exactly.


Effect = Callable[[Mapping[str, NDArray[Any]]], Floats]

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
        raise refusal("CV-D043", argument="covariates", expected="2 or 30", got=covariates)
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
        raise refusal("CV-D043", argument="n", expected=f"an int of at least {_FEWEST}", got=n)
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

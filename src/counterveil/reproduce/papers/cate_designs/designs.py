"""Studies drawn from designs A to D of Nie and Wager 2021, with six covariates and normal noise of variance one.

Bounds are declared and not read off the data: covariates within three standard deviations, and outcomes between the
whole numbers outside of which about one in a thousand of the design's outcomes lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from counterveil.data import Range, Study
from counterveil.datasets import Dataset
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Number

COVARIATES = 6
_NAMES = tuple(f"x{place}" for place in range(1, COVARIATES + 1))

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Design:
    """The functions of a design, whether its covariates are uniform on [0, 1] or standard normal, and its bounds."""

    uniform: bool
    propensity: Function
    untreated: Function
    effect: Function
    outcome_range: tuple[Number, Number]


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(0.0, x)


def _ramp(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def _wave(x: Floats) -> Floats:
    return np.sin(np.pi * x[:, 0] * x[:, 1])


DESIGNS = {
    "A": Design(
        True,
        lambda x: np.clip(_wave(x), 0.1, 0.9),
        lambda x: _wave(x) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + x[:, 4] / 2,
        lambda x: (x[:, 0] + x[:, 1]) / 2,
        (-3, 6),
    ),
    "B": Design(
        False,
        lambda x: np.full(len(x), 0.5),
        lambda x: _ramp(np.maximum(x[:, 0] + x[:, 1], x[:, 2])) + _ramp(x[:, 3] + x[:, 4]),
        lambda x: x[:, 0] + _softplus(x[:, 1]),
        (-4, 11),
    ),
    "C": Design(
        False,
        lambda x: expit(-x[:, 1] - x[:, 2]),
        lambda x: 2 * _softplus(x[:, 0] + x[:, 1] + x[:, 2]),
        lambda x: np.ones(len(x)),
        (-3, 12),
    ),
    "D": Design(
        False,
        lambda x: 1 / (1 + np.exp(-x[:, 0]) + np.exp(-x[:, 1])),
        lambda x: _ramp(x[:, 0] + x[:, 1]) + _ramp(x[:, 3] + x[:, 4]),
        lambda x: _ramp(x[:, 0] + x[:, 1] + x[:, 2]) - _ramp(x[:, 3] + x[:, 4]),
        (-4, 11),
    ),
}


def drawn(name: str, n: int, seed: int) -> Dataset:
    """Return n people of a design."""
    design, generator = DESIGNS[name], np.random.default_rng(seed)
    shape = (n, COVARIATES)
    x = generator.uniform(size=shape) if design.uniform else generator.standard_normal(shape)
    treated = generator.uniform(size=n) < design.propensity(x)
    effects = design.effect(x)
    y = design.untreated(x) + effects * treated + generator.standard_normal(n)
    domain = Range(0, 1) if design.uniform else Range(-3, 3)
    return Dataset(
        name=f"design {name}, n={n}, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y} | dict(zip(_NAMES, x.T, strict=True)),
        study=Study(
            "treated",
            "y",
            design.outcome_range,
            dict.fromkeys(_NAMES, domain),
            control=0,
            randomised=False,
        ),
        source="simulated by this function, with the designs of Nie and Wager 2021",
        licence="none needed",
        effects=effects,
    )

"""Studies that settings of the weights were chosen on: mean outcomes are known, outcomes are drawn anew.

In bent studies one index of five covariates moves treatment and, bent, outcomes. Drawn studies have the covariates of
ACIC 2016, with treatments and mean outcomes drawn from a family like that of its settings: sums of lines, squares,
cubes, steps, products and exponentials of a few covariates, of which treatment and outcome share none, some or most.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from counterveil.data import Categories, Table
from counterveil.datasets import acic2016
from experiments.causal.designs import Design, normal, replace_range, simulated

EFFECT = 1.0
_FOR_RANGE = 40
BENDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "square": lambda s: s**2 / 1.4,
    "hinge": lambda s: 1.7 * np.maximum(s, 0.0),
    "wave": lambda s: 1.4 * np.sin(2.0 * s),
    "step": lambda s: 2.0 * np.tanh(4.0 * (s - 0.5)),
    "peak": lambda s: 3.0 * np.exp(-2.0 * (s - 0.7) ** 2),
}


def with_range(design: Design) -> Design:
    """Return the design with the range of a few draws, widened by 2 % at each end."""
    drawn = np.concatenate([design.outcomes(10_000 + k) for k in range(_FOR_RANGE)])
    margin = 0.02 * float(np.ptp(drawn))
    study = replace_range(design.study, (float(drawn.min()) - margin, float(drawn.max()) + margin))
    return Design(design.name, study, design.columns, design.treated, design.means, design.errors)


def bent_kind(bend: str, n: int, seed: int, effects: float = 0.0) -> Design:
    """One index moves treatment and, bent, outcomes; effects vary with it and with the first covariate."""
    rng = np.random.default_rng([seed, n, 5])
    x = rng.uniform(-1.0, 1.0, (n, 5))
    b = rng.normal(size=5)
    s = x @ (b / np.linalg.norm(b)) * np.sqrt(3.0)
    treated = rng.uniform(size=n) < expit(s)
    untreated = BENDS[bend](s)
    means = (untreated, untreated + EFFECT + effects * (x[:, 0] + 0.5 * s))
    name = f"{bend}, n = {n:,}" + (f", effects vary {effects:g}" if effects else "")
    return with_range(simulated(name, x, treated, means, normal(0.5, n), (-1e6, 1e6)))


def drawn(seed: int) -> Design:
    """Return covariates of ACIC 2016 with treatments and mean outcomes drawn by this seed."""
    base, rng = acic2016(1), np.random.default_rng([seed, 2016])
    domains = base.study.covariates
    table = Table.attach(base.frame, base.study)
    numbers = [
        np.asarray(table.covariates[key], float)
        for key, domain in domains.items()
        if not isinstance(domain, Categories)
    ]
    z = [np.clip((c - c.mean()) / c.std(), -3.0, 3.0) for c in numbers if c.std() > 0.1]
    kinds = ("line", "square", "cube", "step", "product")
    treat = [_term(z, rng, kinds) for _ in range(int(rng.integers(4, 11)))]
    pull = sum(treat)
    logit = (pull - pull.mean()) / pull.std() * rng.uniform(0.6, 1.4) + rng.choice([-1.2, -0.6, 0.0])
    treated = rng.uniform(size=table.rows) < expit(logit)
    shared = [term * rng.normal() for term in treat if rng.uniform() < rng.choice([0.0, 0.25, 0.75])]
    own = [_term(z, rng, (*kinds, "exp")) for _ in range(int(rng.integers(5, 12)))]
    mean = sum([*shared, *own])
    mean = 5.0 * (mean - mean.mean()) / mean.std()
    varied = sum(_term(z, rng, (*kinds, "exp")) for _ in range(3)) + sum(shared[:2])
    effects = 3.0 + rng.choice([0.0, 1.0, 2.0]) * (varied - varied.mean()) / varied.std()
    columns = {key: value for key, value in base.frame.items() if key != "y"} | {"z": treated.astype(int)}
    study = replace_range(base.study, (-1e6, 1e6))
    means, errors = (mean, mean + effects), normal(1.0, len(treated))
    return with_range(Design(f"drawn {seed}", study, columns, treated, means, errors))


def _term(z: list[np.ndarray], rng: np.random.Generator, kinds: tuple[str, ...]) -> np.ndarray:
    """Return one random term of variance about one."""
    kind = rng.choice(kinds)
    one, other = (z[int(rng.integers(len(z)))] for _ in range(2))
    found = {
        "line": lambda: one,
        "square": lambda: one**2 + rng.normal() * one,
        "cube": lambda: one**3 + rng.normal() * one**2,
        "step": lambda: 1.0 * (one > np.quantile(one, rng.uniform(0.2, 0.8))),
        "product": lambda: one * other,
        "exp": lambda: np.exp(0.7 * one),
    }[str(kind)]()
    found = (found - found.mean()) / max(float(found.std()), 1e-9)
    return found * rng.normal(1.0, 0.5) * rng.choice([-1.0, 1.0])

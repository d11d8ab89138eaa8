"""Simulated observational studies with a true effect of 0.5, attached with public bounds.

"plain" is the library's own Synth; "aligned" makes the same covariates drive treatment and outcome; "nonlinear"
adds a square, a product and an effect that varies; "correlated" has skewed covariates that hang together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from counterveil.data import Observational, Outcome, Range, Study, Table, Treatment
from counterveil.datasets import synth

EFFECT = 0.5
KINDS = ("plain", "aligned", "nonlinear", "correlated")


@dataclass(frozen=True)
class Instance:
    table: Table
    truth: float
    ols: tuple[float, float]  # non-private estimate and standard error


def frame(kind: str, seed: int, n: int, d: int) -> dict[str, np.ndarray]:
    if kind == "plain":
        return dict(synth(seed, n, d).frame)
    r = np.random.default_rng([seed, KINDS.index(kind)])
    a, b = r.uniform(-1, 1, d), r.uniform(0, 0.4, d)
    x = r.uniform(size=(n, d))
    if kind == "correlated":
        x = ndtr(np.sqrt(0.6) * r.normal(size=(n, d)) + np.sqrt(0.4) * r.normal(size=(n, 1))) ** 2
    if kind == "aligned":
        b = 0.2 * a
    t = r.uniform(size=n) < expit((2 * x - 1) @ a)
    y = x @ b + EFFECT * t + r.uniform(0, 0.1, n)
    if kind == "nonlinear":
        y = y + 0.6 * (x[:, 0] - 0.5) ** 2 + 0.5 * x[:, 1] * x[:, 2] + (x[:, 3] - 0.5) * t
    names = [f"x{j}" for j in range(1, d + 1)]
    return {"treated": t.astype(np.int64), "y": y} | dict(zip(names, x.T, strict=True))


def instance(kind: str, seed: int, n: int, d: int = 20, wide: bool = False) -> Instance:
    """Return a study; bounds of the outcome are the observed ones widened by 2 %, or [-5, 10] if `wide`."""
    columns = frame(kind, seed, n, d)
    y = columns["y"]
    margin = 0.02 * float(y.max() - y.min())
    bounds = (-5.0, 10.0) if wide else (float(y.min()) - margin, float(y.max()) + margin)
    names = [name for name in columns if name.startswith("x")]
    study = Study(
        Treatment("treated", control=0),
        Outcome("y", bounds),
        dict.fromkeys(names, Range(0, 1)),
        assignment=Observational(),
    )
    x = np.column_stack([columns[name] for name in names])
    return Instance(Table.attach(columns, study), EFFECT, ols(x, columns["treated"], y))


def ols(x: np.ndarray, t: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    z = np.column_stack([t, np.ones(len(y)), x])
    gram = z.T @ z + 1e-8 * np.eye(z.shape[1])
    inverse = np.linalg.inv(gram)
    coefficients = inverse @ (z.T @ y)
    left = y - z @ coefficients
    weights = z @ inverse[0]
    variance = float(((weights * left) ** 2).sum()) * len(y) / (len(y) - z.shape[1])
    return float(coefficients[0]), variance**0.5

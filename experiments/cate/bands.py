"""Coverage and width of bands of effects as functions; epsilon 1, seeds from 1000 on, n = 30,000.

Pointwise: the part of 1,000 new people whose effect lies in its interval, averaged over studies. Simultaneous: the part
of studies whose band holds all of them.
"""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2, kink, skewed
from experiments.cate.instances import FIRST_SEED
from experiments.cate.ours import OUTCOMES
from experiments.runner import Table, mean, of_draws

DESIGNS = {"dataset 1": dataset_1, "dataset 2": dataset_2, "kink": kink, "skewed": skewed}
METHODS = ("auto", "t_learner", "r_learner", *OUTCOMES)
ROWS, PEOPLE = 30_000, 1000


def draw(design: str, method: str, *, seed: int, rows: int = ROWS, epsilon: float = 1) -> dict[str, float]:
    """Return coverage of people, whether the band holds all of them, mean widths of both, and the error."""
    data = DESIGNS[design](rows + PEOPLE, seed)
    assert data.effects is not None
    learn = {name: values[:rows] for name, values in data.frame.items()}
    people = {name: data.frame[name][rows:] for name in data.study.covariates}
    truth = data.effects[rows:]
    model = cv.cate(
        learn,
        data.study,
        protects="outcome" if method in OUTCOMES else "record",
        epsilon=epsilon,
        delta="1e-6",
        method=OUTCOMES.get(method, method),
        noise=cv.SeededNoise(seed),
    )
    assert isinstance(model, cv.results.CateModel)
    low, high = model.interval(people)
    least, most = model.band(people)
    return {
        "pointwise": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "simultaneous": bool(np.all((least <= truth) & (truth <= most))),
        "band": float(np.mean(most - least)),
        "error": float(np.sqrt(np.mean((model.effect(people) - truth) ** 2))),
    }


TABLE = Table(
    columns=(
        "design | method | pointwise :.3f | width :.3g | simultaneous :.3f | width :.3g | error (PEHE) :.3g"
    ),
    cells=[(design, method) for design in DESIGNS for method in METHODS],
    row=of_draws(
        lambda design, method: [design, method],
        draw,
        [mean(name) for name in ("pointwise", "width", "simultaneous", "band", "error")],
    ),
    title=f"n = {ROWS:,}, epsilon 1, {{draws}} studies",
    draws=60,
    first_seed=FIRST_SEED,
    apart=True,
)

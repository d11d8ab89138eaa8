"""The published forms at several epsilons from one fit: their noise is normal, and its scale is 1/epsilon times one.

So one fit and one set of normals give an exact draw of the release at every epsilon.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget
from counterveil.published.cate import InfluenceSettings, KernelSettings, StageSettings
from counterveil.published.cate_learners import FeatureBox, Nuisances, Rows, fitted_nuisances
from counterveil.published.finite_queries import published, published_factor
from counterveil.published.gaussian_process import PublishedFunction, batch_factor, public_centres
from counterveil.results.cate_question import default_delta
from experiments.cate.instances import Instance

Floats = NDArray[np.float64]

FINITE = {"paper, forest": "forest", "paper, network": "network", "paper, linear": "linear"}
KERNEL = {"paper, kernel, lambda": "literal", "paper, kernel, alpha": "alpha"}
# Starts and points of the search for the largest influence.
_STARTS, _POINTS = 4, 4000
_FEW = 3


def published_answers(study: Instance, method: str, epsilons: tuple[float, ...], seed: int) -> list[Floats]:
    """Return the answers of a published form at each epsilon."""
    box, second, nuisances = _first_stage(study)
    settings, total = _settings(method, box), study.table.rows
    points = box.points(study.queries.columns)
    drawn = np.random.default_rng(seed).standard_normal(len(points))
    if isinstance(settings, KernelSettings):
        return _kernel(study, box, settings, second, nuisances, epsilons, drawn)
    factor = published_factor(Budget(1, default_delta(total)), settings.counted_rows(total))
    found = published(second, nuisances, points, box, settings, factor)
    return [found.effects + found.scale / epsilon * drawn for epsilon in epsilons]


@lru_cache(maxsize=1)
def _first_stage(study: Instance) -> tuple[FeatureBox, Rows, Nuisances]:
    """Return the rows of the second stage and the nuisances, which all published forms of a study share."""
    box, shared = FeatureBox.of(study.study), StageSettings()
    rows = box.rows(study.table)
    parts = two_parts(len(rows), shared.first_rows(len(rows)))
    nuisances = fitted_nuisances(rows.part(parts[0]), shared.outcome, shared.propensity, shared.clip)
    return box, rows.part(parts[1]), nuisances


def _settings(method: str, box: FeatureBox) -> InfluenceSettings | KernelSettings:
    if method in FINITE:
        return InfluenceSettings(effect=FINITE[method], starts=_STARTS, points=_POINTS)
    return KernelSettings(bandwidth=0.2 if box.columns <= _FEW else 1.0, penalty_meaning=KERNEL[method])


def _kernel(
    study: Instance,
    box: FeatureBox,
    settings: KernelSettings,
    second: Rows,
    nuisances: Nuisances,
    epsilons: tuple[float, ...],
    drawn: Floats,
) -> list[Floats]:
    points, total = box.points(study.queries.columns), study.table.rows
    budget = Budget(1, default_delta(total))
    form = PublishedFunction.of(box, budget, settings, settings.counted_rows(total))
    centres = public_centres(box, settings.centres)
    effects = form.effects(second, nuisances, settings.learner, centres, points)
    factor, places = batch_factor(form.kernel, points)
    path = (factor @ drawn[: len(factor)])[places]
    return [effects + form.scale / epsilon * path for epsilon in epsilons]

"""The published forms at every epsilon from one fit: their noise is normal, and its scale is 1/epsilon times one.

So one fit and one set of normals give an exact draw of the release at every epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget, Number
from counterveil.published.cate import InfluenceSettings, KernelSettings, StageSettings
from counterveil.published.cate_learners import FeatureBox, Nuisances, Rows, fitted_effect, fitted_nuisances
from counterveil.published.finite_queries import published, published_factor
from counterveil.published.gaussian_process import PublishedFunction, batch_factor, public_centres
from counterveil.reproduce.papers.cate.studies import Instance

FINITE = {"DP-CATE forest": "forest", "DP-CATE network": "network", "DP-CATE linear": "linear"}
# Both readings of lambda = 1: beside the mean loss, as printed, and as scikit-learn's alpha.
KERNEL = {"DP-CATE kernel": "literal", "DP-CATE kernel, alpha": "alpha"}
# Starts and points of the search for the largest influence.
_STARTS, _POINTS = 4, 4000
# The bandwidth is not printed: these are for few and for many covariates.
_FEW, _NARROW, _WIDE = 3, 0.2, 1.0


@dataclass(frozen=True, eq=False)
class Fit:
    """The answers of a published form without noise, and its noise at epsilon 1."""

    effects: Floats
    noise: Floats

    def answers(self, epsilon: float) -> Floats:
        """Return the release at an epsilon."""
        return self.effects + self.noise / epsilon


def published_fit(study: Instance, method: str, seed: int, delta: Number, learner: str = "R") -> Fit:
    """Return the fit of a published form, R- or DR-learner, and a draw of its noise."""
    box, second, nuisances = _first_stage(study)
    points, total = box.points(study.queries.columns), study.table.rows
    drawn = np.random.default_rng(seed).standard_normal(len(points))
    budget = Budget(1, delta)
    if method in FINITE:
        settings = InfluenceSettings(learner=learner, effect=FINITE[method], starts=_STARTS, points=_POINTS)
        factor = published_factor(budget, settings.counted_rows(total))
        found = published(second, nuisances, points, box, settings, factor)
        return Fit(found.effects, found.scale * drawn)
    bandwidth = _NARROW if box.columns <= _FEW else _WIDE
    form_settings = KernelSettings(learner=learner, bandwidth=bandwidth, penalty_meaning=KERNEL[method])
    form = PublishedFunction.of(box, budget, form_settings, form_settings.counted_rows(total))
    effects = form.effects(second, nuisances, learner, public_centres(box, form_settings.centres), points)
    factors, places = batch_factor(form.kernel, points)
    return Fit(effects, form.scale * (factors @ drawn[: len(factors)])[places])


def finite_effects(study: Instance, method: str, learner: str = "R") -> Floats:
    """Return what a published form of finite queries answers without noise."""
    box, second, nuisances = _first_stage(study)
    return fitted_effect(second, nuisances, learner, FINITE[method])(box.points(study.queries.columns))


@lru_cache(maxsize=2)
def _first_stage(study: Instance) -> tuple[FeatureBox, Rows, Nuisances]:
    """Return the rows of the second stage and the nuisances, which all published forms of a study share."""
    box, shared = FeatureBox.of(study.study), StageSettings()
    rows = box.rows(study.table)
    parts = two_parts(len(rows), shared.first_rows(len(rows)))
    nuisances = fitted_nuisances(rows.part(parts[0]), shared.outcome, shared.propensity, shared.clip)
    return box, rows.part(parts[1]), nuisances

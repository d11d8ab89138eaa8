"""People like those of a public sample: its covariates, drawn with replacement, with treatments and outcomes of models.

The sample is taken as public. Its rows are not repeated as they are: two that are alike in everything would make
outcomes look certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.data import Categories, Study, Table
from counterveil.numerics.arrays import Floats
from counterveil.questions.plan.simulated_study import People, assigned, people_of

# The prior standard deviation of a slope of the log-odds of treatment, so that few people are not fitted too closely.
_SLOPE = 0.5
_STEPS = 30


@dataclass(frozen=True, slots=True)
class PublicSample:
    """A sample with what was fitted to it: covariates (n, d) as features, slopes of treatment and of outcomes."""

    study: Study
    coded: dict[str, Floats]
    features: Floats
    lean: Floats
    base: Floats  # mean outcome of everybody without treatment
    effect: float
    residuals: tuple[Floats, Floats]  # of those not treated and of those treated
    share: float
    binary: bool

    @classmethod
    def of(cls, source: object, study: Study) -> PublicSample:
        """Return the sample, attached as the data of a study are, with its models fitted."""
        table = source if isinstance(source, Table) else Table.attach(source, study)
        low = float(study.outcome_range[0])
        y = low + float(table.outcome_unit) * table.outcome.astype(np.float64)
        features, treated = _features(table), table.treated.astype(np.float64)
        share = float(treated.mean())
        design = np.column_stack([np.ones(table.rows), treated, features])
        effect = float(np.linalg.lstsq(design, y, rcond=None)[0][1])
        base, lost = _ridge(np.column_stack([features, features**2]), y - effect * treated)
        # A fit leaves too little: degrees of freedom are lost.
        left = (y - base - effect * treated) * np.sqrt(table.rows / max(table.rows - lost - 1, 1.0))
        ends = (low, float(study.outcome_range[1]))
        return cls(
            study=study,
            coded=dict(table.covariates),
            features=features,
            lean=_lean(features, treated),
            base=base,
            effect=effect,
            residuals=(left[~table.treated], left[table.treated]),
            share=share,
            binary=bool(np.isin(np.round(y, 6), np.round(ends, 6)).all()),
        )

    @property
    def rows(self) -> int:
        """Number of people in the sample."""
        return len(self.features)

    def people(self, rows: int, generator: np.random.Generator) -> People:
        """Return `rows` people like those of the sample."""
        chosen = generator.integers(0, self.rows, rows)
        treated, chance = assigned(self.study, self.lean[chosen], self.share, generator)
        coded = {name: values[chosen] for name, values in self.coded.items()}
        features = self.features[chosen]
        outcomes = self._outcomes(self.base[chosen], generator)
        return people_of(self.study, coded, features, treated, chance, outcomes, generator)

    def _outcomes(self, base: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
        low, high = self.study.outcome_bounds.floats()
        if self.binary:
            luck = generator.random(len(base))
            chances = [np.clip((mean - low) / (high - low), 0.0, 1.0) for mean in (base, base + self.effect)]
            none, with_treatment = (np.where(luck < chance, high, low) for chance in chances)
            return none, with_treatment
        ranks = generator.random(len(base))
        errors = [np.sort(pool)[(ranks * len(pool)).astype(np.intp)] for pool in self.residuals]
        return np.clip(base + errors[0], low, high), np.clip(base + self.effect + errors[1], low, high)


def _features(table: Table) -> Floats:
    """Return (n, d) standardised numbers, truth values and indicators of labels but the first."""
    columns = []
    for name, domain in table.study.covariates.items():
        values = table.covariates[name]
        codes = range(1, len(domain.labels)) if isinstance(domain, Categories) else (None,)
        columns += [values if code is None else (values == code) * 1.0 for code in codes]
    found = np.column_stack(columns) if columns else np.empty((table.rows, 0))
    sd = found.std(axis=0)
    return np.asarray((found - found.mean(axis=0)) / np.where(sd > 0, sd, 1.0))


def _ridge(features: Floats, y: Floats) -> tuple[Floats, float]:
    """Return fitted values and degrees of freedom; the penalty has the least generalised cross-validation error."""
    centred = features - features.mean(axis=0)
    u, size, _ = np.linalg.svd(centred, full_matrices=False)
    mean = float(y.mean())
    along, rows = u.T @ (y - mean), len(y)
    best = (np.inf, np.full(rows, mean), 1.0)
    for penalty in rows * np.geomspace(1e-4, 1e2, 25):
        kept = size**2 / (size**2 + penalty)
        fitted, lost = mean + u @ (kept * along), float(kept.sum()) + 1
        error = float(((y - fitted) ** 2).sum()) / (1 - lost / rows) ** 2 if lost < rows else np.inf
        if error < best[0]:
            best = (error, fitted, lost)
    return best[1], best[2]


def _without(fitted: Floats, noise: float) -> Floats:
    """Return fitted values drawn towards their mean, so that errors of the fit are no part of their variance."""
    spread = float(fitted.var())
    kept = max(spread - noise, 0.0) / spread if spread > 0 else 0.0
    return np.asarray(fitted.mean() + np.sqrt(kept) * (fitted - fitted.mean()))


def _lean(features: Floats, treated: NDArray[np.float64]) -> Floats:
    """Return the log-odds of treatment that follow the covariates, by a logistic regression with a prior."""
    design = np.column_stack([np.ones(len(treated)), features])
    held = np.full(design.shape[1], 1 / _SLOPE**2)
    held[0] = 1e-6
    weights, hessian = np.zeros(design.shape[1]), np.eye(design.shape[1])
    for _ in range(_STEPS):
        chance = expit(design @ weights)
        spread = np.maximum(chance * (1 - chance), 1e-6)
        slope = design.T @ (treated - chance) - held * weights
        hessian = (design * spread[:, None]).T @ design
        step = np.linalg.solve(hessian + np.diag(held), slope)
        weights += np.clip(step, -2.0, 2.0)
        if float(np.abs(step).max()) < 1e-8:
            break
    inverse = np.linalg.inv(hessian + np.diag(held))
    noise = (inverse @ hessian @ inverse)[1:, 1:]
    return _without(features @ weights[1:], float(np.einsum("ij,jk,ik->i", features, noise, features).mean()))

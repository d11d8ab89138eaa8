"""Designs on real covariates and treatments; those without known mean outcomes get fitted ones."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from counterveil.data import Study, Table, covariate_columns
from counterveil.data.features import feature_map
from counterveil.datasets import acic2016, ihdp, lalonde, nhefs, pension401k, star
from counterveil.datasets.dataset import Dataset
from experiments.causal.designs import Design, normal, replace_range

# Draws that a range is taken over where a data set declares none that fits: the observed one, widened by a part of it.
FOR_RANGE, MARGIN = 20, 0.02
# Residuals of an arm that errors are drawn from.
_RESIDUALS = 400


def surfaces(folder: str, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean outcomes mu0 and mu1 of a semi-synthetic data set."""
    with gzip.open(Path(os.environ["COUNTERVEIL_DATA"], folder, file), "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return tuple(np.array([float(row[name]) for row in rows]) for name in ("mu0", "mu1"))  # type: ignore[return-value]


def with_surfaces(name: str, data: Dataset, means: tuple[np.ndarray, np.ndarray], sd: float) -> Design:
    """Return the design of known mean outcomes with normal errors; the range is that of a few draws."""
    study = data.study
    treated = np.asarray(data.frame[study.treatment]) == study.treated
    columns = {key: column for key, column in data.frame.items() if key != study.outcome}
    wide = replace_range(study, (-1e6, 1e6))
    design = Design(name, wide, columns, treated, means, normal(sd, len(treated)))
    drawn = np.concatenate([design.outcomes(10_000 + k) for k in range(FOR_RANGE)])
    margin = MARGIN * float(np.ptp(drawn))
    bounds = float(drawn.min()) - margin, float(drawn.max()) + margin
    return Design(name, replace_range(study, bounds), columns, treated, means, normal(sd, len(treated)))


def ihdp_file(number: int) -> Design:
    return with_surfaces(f"IHDP {number}", ihdp(number), surfaces("ihdp", f"ihdp_npci_{number}.csv.gz"), 1.0)


def acic(setting: int) -> Design:
    with gzip.open(
        Path(os.environ["COUNTERVEIL_DATA"], "acic2016", f"zymu_{setting}.csv.gz"), "rt", newline=""
    ) as lines:
        rows = list(csv.DictReader(lines))
    means = surfaces("acic2016", f"zymu_{setting}.csv.gz")
    sd = float(np.std([float(row["y0"]) - float(row["mu0"]) for row in rows]))
    return with_surfaces(f"ACIC {setting}", acic2016(setting), means, sd)


def other_acic(folder: Path) -> list[Design]:
    """Return the settings of ACIC 2016 whose files zymu_K.csv lie in a folder, on the covariates of the others."""
    base, found = acic2016(1), []
    for path in sorted(folder.glob("zymu_*.csv"), key=lambda one: int(one.stem.split("_")[1])):
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        z, y0, y1, mu0, mu1 = (
            np.array([float(row[k]) for row in rows]) for k in ("z", "y0", "y1", "mu0", "mu1")
        )
        data = replace(base, frame={**base.frame, "z": z.astype(int), "y": np.where(z == 1, y1, y0)})
        design = with_surfaces(f"ACIC {path.stem.split('_')[1]}", data, (mu0, mu1), float(np.std(y0 - mu0)))
        found.append(replace(design, estimands=("ATE", "ATT")))
    return found


def fitted(data: Dataset, **more: object) -> Design:
    """Return a data set whose mean outcomes are ridge regressions on squares and products in each arm."""
    table = Table.attach(data.frame, data.study)
    low = float(data.study.outcome_range[0])
    y = low + float(table.outcome_unit) * table.outcome.astype(float)
    z = feature_map(data.study, 2).block(table.covariates, slice(0, table.rows))
    z = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-9)
    means, residuals = [], np.zeros(table.rows)
    for arm in (~table.treated, table.treated):
        slopes, constant = _ridge(z[arm], y[arm])
        means.append(np.clip(constant + z @ slopes, *(float(bound) for bound in data.study.outcome_range)))
        residuals[arm] = (y - means[-1])[arm]
    pools = [_thinned(residuals[arm]) for arm in (~table.treated, table.treated)]
    expected = [_clamped(mean, pool, data.study) for mean, pool in zip(means, pools, strict=True)]

    def errors(rng: np.random.Generator) -> np.ndarray:
        untreated, treated = (rng.choice(pool, table.rows) for pool in pools)
        return np.where(table.treated, treated, untreated)

    # Of the rows that the study keeps.
    control = 0 if data.study.control is None else data.study.control
    columns = {data.study.treatment: np.where(table.treated, data.study.treated, control)}  # type: ignore[arg-type]
    columns |= covariate_columns(table)
    return Design(
        data.name,
        data.study,
        columns,
        table.treated,
        (means[0], means[1]),
        errors,
        expected=(expected[0], expected[1]),
        **more,  # type: ignore[arg-type]
    )


def _thinned(residuals: np.ndarray) -> np.ndarray:
    """Return evenly placed residuals, few enough for means over all of them in every row."""
    places = np.linspace(0, len(residuals) - 1, min(len(residuals), _RESIDUALS)).round().astype(int)
    kept = np.sort(residuals)[places]
    return kept - kept.mean()


def _clamped(mean: np.ndarray, pool: np.ndarray, study: Study) -> np.ndarray:
    """Return the mean of outcomes clamped to the range, which is what an effect is about."""
    low, high = (float(bound) for bound in study.outcome_range)
    return np.mean([np.clip(mean + error, low, high) for error in pool], axis=0)


def _ridge(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return slopes and constant; the penalty is the one of least generalised cross-validation error."""
    centre, constant = z.mean(axis=0), float(y.mean())
    u, s, v = np.linalg.svd(z - centre, full_matrices=False)
    along, best = u.T @ (y - constant), (np.inf, np.zeros(z.shape[1]))
    for penalty in len(y) * np.geomspace(1e-4, 100, 25):
        kept = s**2 / (s**2 + penalty)
        left = float(((y - constant - u @ (kept * along)) ** 2).sum())
        error = left / (1 - (kept.sum() + 1) / len(y)) ** 2
        if error < best[0]:
            best = error, v.T @ (s / (s**2 + penalty) * along)
    return best[1], constant - float(centre @ best[1])


def real() -> list[Design]:
    """Return the designs on real covariates."""
    return [
        *(ihdp_file(number) for number in (6, 11, 20)),
        *(acic(setting) for setting in range(1, 6)),
        fitted(nhefs(), estimands=("ATE", "ATT", "ATC")),
        fitted(pension401k()),
        fitted(lalonde()),
        fitted(star()),
    ]

"""A private function of ten covariates beside the same regression without privacy; a query; the stored size."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.moments.learner_design import choose_design
from counterveil.numerics.products import blocks, gram, sums
from counterveil.settings import Cate

TITLE = (
    "CPU seconds at 10 covariates (aim at 1e6 rows: 5 times the regression without privacy), queries, size"
)
SIZES = (10**5, 10**6)
QUERIES = 300


def study_of(size: int) -> tuple[dict[str, np.ndarray], cv.Study]:
    rng = np.random.default_rng(1)
    names = [f"x{place}" for place in range(10)]
    frame = {name: rng.uniform(size=size) for name in names}
    treated = rng.uniform(size=size) < 0.4 + 0.2 * frame["x0"]
    y = np.exp(frame["x1"]) + treated * (1 + np.sin(4 * frame["x2"])) + rng.uniform(-1, 1, size)
    frame |= {"t": treated.astype(np.int64), "y": y}
    return frame, cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-1, 6)), dict.fromkeys(names, cv.Range(0, 1))
    )


def plain(table: Table, degree: int) -> np.ndarray:
    """Regression of the outcome on the same functions and their products with treatment, without privacy."""
    design = choose_design(table.study, table.rows, cv.Budget(1, "1e-6"), Cate(degree=degree))
    size = 2 * design.basis.size
    total, products = np.zeros((size, size)), np.zeros(size)
    for part in blocks(table.rows):
        psi = design.basis.features(table.covariates, part)
        rows = np.concatenate((psi, psi * table.treated[part][:, None]), axis=1)
        total += gram(rows)
        products += sums(rows, table.outcome[part].astype(np.float64))
    return np.linalg.solve(total, products)


def seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def run() -> list[dict[str, str]]:
    rows = []
    for size in SIZES:
        frame, study = study_of(size)
        table = Table.attach(frame, study)
        cv.cate(
            table, study, protects="record", epsilon=1, delta=1e-6
        )  # so that nothing is compiled or built while the clock runs
        for method in ("t_learner", "r_learner"):
            models: list[cv.results.CateModel] = []
            own = seconds(
                lambda method=method, models=models, table=table: models.append(
                    cv.cate(table, table.study, protects="record", epsilon=1, delta=1e-6, method=method)
                )
            )
            model = models[0]
            degree = int(max(axis.size for axis in model.basis.axes))
            bare = seconds(lambda table=table, degree=degree: plain(table, degree))
            person = {name: np.array([0.3]) for name in study.covariates}
            asked = seconds(lambda model=model, person=person: [model.effect(person) for _ in range(QUERIES)])
            with TemporaryDirectory() as folder:
                stored = model.save(Path(folder) / "model.json").stat().st_size
            rows.append(
                {
                    "rows": f"{size:.0e}",
                    "method": method,
                    "functions": str(model.basis.size),
                    "private": f"{own:.2f}",
                    "not private": f"{bare:.2f}",
                    "ratio": f"{own / bare:.1f}",
                    "one query, ms": f"{1000 * asked / QUERIES:.2f}",
                    "stored, kB": f"{stored / 1000:.0f}",
                }
            )
    return rows

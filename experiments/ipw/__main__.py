"""`python -m experiments.ipw [--runs N] [--workers N]`: prints Tables 2 and 3 in Markdown; needs COUNTERVEIL_DATA.

Every run draws the rows anew, as the paper did, and then one release of the published form and one of ours at each
epsilon. A sign error is a sign other than that of the same weighting without noise (the published form's own
yardstick). Sampling with replacement puts a person into several rows: these are experiments, not private releases.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.privacy import Estimand
from counterveil.published import weighting as published
from counterveil.published.matching import fit_without_intercept
from counterveil.questions.ate import ask
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.moments import ipw
from counterveil.statistics.moments.ipw import chosen_penalty
from counterveil.statistics.moments.ipw_nuisances import Fitting
from experiments.ipw.samples import FIT, OUTCOME_UNIT, sample

EPSILONS = ("0.2", "0.4", "0.6", "0.8", "0.99")
DELTA = "1e-6"
PENALTY = published.IPWSettings().penalty
PRINTED = {
    "ihdp": {
        "mean before the last noise": (-237487.30, 32.34, 8.37, 5.22, 5.31),
        "mean released": (-237477.13, 32.20, 8.50, 5.09, 5.40),
        "sign errors before the last noise": (0.515, 0.425, 0.344, 0.287, 0.229),
        "sign errors released": (0.517, 0.425, 0.347, 0.301, 0.228),
    },
    "lalonde": {
        "mean before the last noise": (872.21, 899.15, 895.26, 906.70, 904.17),
        "mean released": (876.83, 897.75, 893.37, 903.95, 900.25),
        "sign errors before the last noise": (0.143, 0.072, 0.049, 0.027, 0.035),
        "sign errors released": (0.154, 0.071, 0.050, 0.039, 0.034),
    },
}
TITLES = {"ihdp": "Table 2, IHDP", "lalonde": "Table 3, LaLonde (dollars)"}


def one_run(family: str, run: int) -> NDArray[np.float64]:
    """Return, for every epsilon, the estimates: without noise, published, ours."""
    table, first, second = sample(family, run)
    features = UnitFeatures.of(table.study)
    z = published.unit_rows(features, table)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome[second]
    fitted = fit_without_intercept(z[first], table.treated[first], PENALTY)
    plain = published.weighted_sum(z[second] @ fitted, table.treated[second], y, Estimand.ATE)
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        asked = ask(
            table.study, "ipw", protects="record", epsilon=epsilon, delta=DELTA, estimand="ATE", level=0.95,
            mechanism=None, request_id=None,
        )  # fmt: skip
        seed = 1000 * run + 10 * place
        plan = published.paper_plan(asked)
        gate = Gate(plan, SeededNoise(seed))
        drawn = published.release(gate, plan, table, (first, second), published.IPWSettings(), Estimand.ATE)
        found = [plain, drawn.partly, drawn.value, as_they_come(table, first, second, y, epsilon, seed)]
        for form in ("hajek", "ht"):
            design = ours(asked, table.study, features, (first, second), form)
            gate = Gate(design.plan, SeededNoise(seed + 1))
            _, weighing, weighted = ipw.release(gate, table, design, Estimand.ATE)
            found.append(ipw.effect_of(table, weighing, weighted)[0])
        rows.append(found)
    return np.array(rows) * OUTCOME_UNIT[family]


def as_they_come(
    table: Table,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    y: NDArray[np.float64],
    epsilon: str,
    seed: int,
) -> float:
    """Return the published form before its last noise with rows of any length: what its figures look like."""
    x = np.column_stack([table.covariates[name] for name in table.study.covariates])
    fitted = fit_without_intercept(x[first], table.treated[first], PENALTY)
    sigma = 2 * sqrt(2 * log(1.25 / float(DELTA))) / (float(epsilon) * len(first) * PENALTY)
    noisy = fitted + np.random.default_rng(seed).normal(scale=sigma, size=len(fitted))
    return published.weighted_sum(x[second] @ noisy, table.treated[second], y, Estimand.ATE)


def ours(
    asked: Question,
    study: cv.Study,
    features: UnitFeatures,
    parts: tuple[NDArray[np.intp], NDArray[np.intp]],
    form: str,
) -> ipw.Design:
    """Return the design of our form on the paper's two parts of the rows."""
    size = len(parts[0])
    settings = cv.settings.IPW(form=form, fit_part=size / sum(map(len, parts)))
    design = ipw.design_of(study, sum(map(len, parts)), replace(asked, settings=settings))
    penalty = chosen_penalty(size, features, asked.budget, asked.mechanism)
    return replace(design, fitting=Fitting(size, features, penalty), first=parts[0], second=parts[1])


def rows_of(runs: NDArray[np.float64], family: str) -> dict[str, list[float]]:
    """Return the rows of a table from (runs, epsilons, estimates)."""
    plain = runs[:, :, 0]
    names = (
        "published form before the last noise",
        "published form released",
        "published form before the last noise, rows longer than one",
        "ours, hajek",
        "ours, ht",
    )
    found: dict[str, list[float]] = {}
    for place, name in enumerate(names, start=1):
        if family == "lalonde" and name.endswith("longer than one"):
            continue  # earnings and years as they come have weights beyond all bounds
        found[f"{name}: mean"] = list(runs[:, :, place].mean(axis=0))
        found[f"{name}: median"] = list(np.median(runs[:, :, place], axis=0))
        wrong = np.sign(runs[:, :, place]) != np.sign(plain)
        found[f"{name}: sign errors"] = list(wrong.mean(axis=0))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.ipw")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.workers) as pool:
        for family, title in TITLES.items():
            asked = [family] * chosen.runs
            runs = np.array(list(pool.map(one_run, asked, range(chosen.runs), chunksize=20)))
            print(
                f"\n**{title}**, {chosen.runs} runs, {2 * FIT} rows fitted and 200 weighted, delta {DELTA}; ",
                end="",
            )
            print(f"mean without noise {runs[:, :, 0].mean():.2f}\n\n| | " + " | ".join(EPSILONS) + " |")
            print("|---|" + "---|" * len(EPSILONS))
            printed = {f"as printed in the paper: {name}": values for name, values in PRINTED[family].items()}
            for name, values in (printed | rows_of(runs, family)).items():
                digits = 3 if "sign" in name else 2
                print(
                    f"| {name} | " + " | ".join(f"{value:.{digits}f}" for value in values) + " |", flush=True
                )


if __name__ == "__main__":
    main()

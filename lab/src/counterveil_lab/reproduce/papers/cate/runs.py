"""Cells of the paper's figures, their rows and tables: predictions along a covariate, and errors by epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.papers.cate.medical import HEMATOCRIT, MIMIC_FILES, TCGA_FILES, is_there
from counterveil_lab.reproduce.papers.cate.methods import BOOSTED, answered, has_boosted_trees
from counterveil_lab.reproduce.papers.cate.studies import MIMIC, TCGA, Instance, distance, study_of
from counterveil_lab.reproduce.protocol import Cell, Row

# Settings of ours were chosen on seeds below 100.
FIRST_SEED = 1000
STUDIES, QUICK_STUDIES = 3, 1
SHOWN = (0.1, 1.0, 10.0)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
SMALL = (0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
_BINS = 12
_FILES = {MIMIC: MIMIC_FILES, TCGA: TCGA_FILES}
_TAILS = (0.1, 0.9)


def cells_of(study: str, methods: Sequence[str], learner: str = "R") -> Callable[[bool], list[Cell]]:
    """Return what lists the cells of a figure: none where a file or an extra that they need is missing."""

    def cells(quick: bool) -> list[Cell]:
        if study in _FILES and not is_there(_FILES[study]):
            return []
        known = [method for method in methods if method != BOOSTED or has_boosted_trees()]
        seeds = range(FIRST_SEED, FIRST_SEED + (QUICK_STUDIES if quick else STUDIES))
        return [
            {"study": study, "learner": learner, "seed": seed, "method": method}
            for seed in seeds
            for method in known
        ]

    return cells


def predictions(cell: Cell) -> list[Row]:
    """Return a method's predictions in bins of equally many queries, sorted by the covariate that is shown."""
    study, method, learner, seed = _named(cell)
    people = study_of(study, seed)
    found = answered(study, method, learner, seed, SHOWN)
    place = _covariate(people, study)
    bins = np.array_split(np.argsort(place, kind="stable"), min(_BINS, len(place)))
    return [
        {"epsilon": epsilon, "bin": number, "x": float(place[own].mean())}
        | _in_bin(own, people.truth, found.without, answers)
        for epsilon, answers in found.answers.items()
        for number, own in enumerate(bins)
    ]


def _in_bin(own: NDArray[np.intp], truth: Floats, without: Floats, answers: Floats) -> dict[str, float]:
    low, high = np.quantile(answers[own], _TAILS)
    return {
        "truth": float(truth[own].mean()),
        "fitted": float(without[own].mean()),
        "low": float(low),
        "middle": float(np.median(answers[own])),
        "high": float(high),
        "error": distance(answers[own], truth[own]),
        "noise": distance(answers[own], without[own]),
        # The average of the noise over all queries, which independent noise does not have.
        "shift": abs(float(np.mean(answers - without))),
    }


def errors(epsilons: Sequence[float]) -> Callable[[Cell], list[Row]]:
    """Return what gives a method's errors at each epsilon."""

    def run(cell: Cell) -> list[Row]:
        study, method, learner, seed = _named(cell)
        people = study_of(study, seed)
        found = answered(study, method, learner, seed, epsilons)
        return [
            {
                "epsilon": epsilon,
                "error": distance(answers, people.truth),
                "clipped": people.error(answers),
                "noise": distance(answers, found.without),
                "floor": distance(found.without, people.truth),
            }
            for epsilon, answers in found.answers.items()
        ]

    return run


def predictions_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions by method, epsilon and bin, over studies: means, and root mean squares of errors."""
    means = dict.fromkeys(("x", "truth", "fitted", "low", "middle", "high"), "mean")
    squares = dict.fromkeys(("error", "noise", "shift"), _root_mean_square)
    kept: pd.DataFrame = rows.groupby(["method", "epsilon", "bin"], sort=False, as_index=False).agg(
        means | squares
    )
    return kept


def errors_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors by method and epsilon: means over studies, and how far the error varies between them."""
    grouped = rows.groupby(["method", "epsilon"], sort=False)
    kept: pd.DataFrame = grouped[["error", "clipped", "noise", "floor"]].mean().reset_index()
    kept["spread"] = grouped["error"].std(ddof=0).to_numpy()
    return kept


def _root_mean_square(values: pd.Series[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _named(cell: Mapping[str, object]) -> tuple[str, str, str, int]:
    study, method, learner = (str(cell[name]) for name in ("study", "method", "learner"))
    return study, method, learner, int(str(cell["seed"]))


def _covariate(people: Instance, study: str) -> Floats:
    """Return what predictions are drawn against: hematocrit, the sum of all genes, or the first covariate."""
    columns = people.queries.columns
    if study == MIMIC:
        return np.asarray(columns[HEMATOCRIT])
    if study == TCGA:
        return np.asarray(np.sum(list(columns.values()), axis=0), dtype=np.float64)
    return np.asarray(next(iter(columns.values())))


def relative_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors with their size in per cent of the same learner's error without noise."""
    kept = errors_table(rows)
    return kept.assign(relative=100 * kept["error"] / kept["floor"])

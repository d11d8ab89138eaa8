"""The figures of the paper that have numbers (1, 2 and 8 are drawings), and tables of what its theorems promise."""

from __future__ import annotations

from counterveil.reproduce.papers.cate.drawing import draw_errors, draw_predictions, draw_relative
from counterveil.reproduce.papers.cate.guarantees import (
    algorithm,
    algorithm_cells,
    algorithm_table,
    guarantee,
    guarantee_cells,
    guarantee_table,
    size,
    size_cells,
    size_table,
)
from counterveil.reproduce.papers.cate.methods import (
    ALPHA,
    ANONYMOUS,
    BOOSTED,
    CONSTANT,
    DIFFERENCE,
    FOREST,
    LINEAR,
    LITERAL,
    NETWORK,
    OURS,
    OURS_OUTCOME,
    WITHOUT,
    ZERO,
)
from counterveil.reproduce.papers.cate.runs import (
    EPSILONS,
    SMALL,
    cells_of,
    errors,
    errors_table,
    predictions,
    predictions_table,
    relative_table,
)
from counterveil.reproduce.papers.cate.studies import DATASET_1, DATASET_2, MIMIC, TCGA
from counterveil.reproduce.protocol import Figure

_OTHERS = (OURS, OURS_OUTCOME, CONSTANT, DIFFERENCE, ZERO, WITHOUT)


def _predictions(
    name: str, title: str, study: str, methods: tuple[str, ...], learner: str = "R", across: str = "x1"
) -> Figure:
    return Figure(
        name,
        title,
        cells_of(study, methods, learner),
        predictions,
        predictions_table,
        draw_predictions(across),
    )


def _errors(name: str, title: str, study: str, methods: tuple[str, ...]) -> Figure:
    return Figure(name, title, cells_of(study, methods), errors(EPSILONS), errors_table, draw_errors)


FIGURES = (
    _predictions(
        "figure3",
        "Figure 3: Dataset 1, finite queries, R-learner",
        DATASET_1,
        (FOREST, NETWORK, OURS, OURS_OUTCOME),
    ),
    _predictions(
        "figure4",
        "Figure 4: Dataset 1, functional queries, R-learner",
        DATASET_1,
        (LITERAL, ALPHA, OURS, OURS_OUTCOME),
    ),
    _errors(
        "figure5",
        "Figure 5: errors on Dataset 2, finite and functional queries (empty where a method refuses)",
        DATASET_2,
        (FOREST, NETWORK, LITERAL, ALPHA, *_OTHERS),
    ),
    _predictions(
        "figure6", "Figure 6: MIMIC-III, finite queries", MIMIC, (FOREST, NETWORK, OURS), across="hematocrit"
    ),
    _predictions(
        "figure7", "Figure 7: TCGA, finite queries", TCGA, (FOREST, NETWORK, OURS), across="sum of covariates"
    ),
    _predictions(
        "figure9", "Figure 9: Dataset 1, finite queries, DR-learner", DATASET_1, (FOREST, NETWORK), "DR"
    ),
    _predictions(
        "figure10", "Figure 10: Dataset 1, functional queries, DR-learner", DATASET_1, (LITERAL, ALPHA), "DR"
    ),
    _predictions("figure11", "Figure 11: Dataset 1, private boosted trees", DATASET_1, (BOOSTED,)),
    _predictions(
        "figure12",
        "Figure 12: Dataset 1, finite queries beside Figure 11",
        DATASET_1,
        (FOREST, NETWORK, OURS),
    ),
    _errors(
        "figure13",
        "Figure 13: errors on Dataset 1 beside k-anonymisation",
        DATASET_1,
        (FOREST, NETWORK, *ANONYMOUS, OURS),
    ),
    _errors(
        "figure14",
        "Figure 14: errors on Dataset 1, finite queries",
        DATASET_1,
        (FOREST, NETWORK, LINEAR, *_OTHERS),
    ),
    Figure(
        "figure15",
        "Figure 15: errors on Dataset 1 in per cent of those without noise",
        cells_of(DATASET_1, (FOREST, NETWORK)),
        errors(SMALL),
        relative_table,
        draw_relative,
    ),
    Figure(
        "guarantees",
        "Theorems 1 and 2: lower bounds on the true epsilon",
        guarantee_cells,
        guarantee,
        guarantee_table,
    ),
    Figure("sizes", "Noise by people, seconds by queries", size_cells, size, size_table),
    Figure("algorithm2", "Algorithm 2: one query after another", algorithm_cells, algorithm, algorithm_table),
)

"""The releases behind groups, policies and curves under the auditor, on worst neighbours in one cell and in two.

Every sample runs the estimator's own release code through a real gate; the weakened copy sees a gate that draws
a third of every noise and must be caught. Many samples are drawn all at once.
"""

import numpy as np
import pytest
from tests.statistical.released_alone import ReleasedAlone, check
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.numerics.products import Standard
from counterveil.privacy import Budget
from counterveil.questions.groups.question import LayoutPlaces, layout_of
from counterveil.statistics.moments.kernels.scores import Models
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.scoring import (
    AdjustedScore,
    ArmPlaces,
    ArmScore,
    Clip,
    PlainScore,
    release_cells,
    release_histogram,
)

STUDY = cv.Study("t", "y", (-1, 1), {"g": cv.Categories(["a", "b"])}, control=0, randomised=True)
LAYOUT = layout_of(STUDY, "g")
REST = (("a", 0, 0.0), ("b", 1, 0.0), ("a", 1, 0.0), ("b", 0, 0.0))
CLIP = Clip(0.0, 0.5)


def records(rows):
    g, t, y = zip(*rows, strict=True)
    return Records(Table.attach({"g": list(g), "t": list(t), "y": list(y)}, STUDY), feature_map(STUDY, 1))


def adjusted(rows):
    size = rows.features.size
    none = np.zeros(size + 1)
    standard = Standard(np.zeros(size), np.ones(size), 2.0, 4.0)
    return AdjustedScore(standard, Models(0.5, 0.0, none, none, none, 0.0), 0.1, 0.5, 0.1, 1e-4, 0.0, 0.0)


def cells(score, gate, rows, pure, arms=False):
    places = LayoutPlaces(LAYOUT)
    place = ArmPlaces(places) if arms else places
    release_cells(gate, rows, score(rows), place, 4 if arms else 2, CLIP, pure)


# What is released, and the two values of the first record that move it furthest.
CASES = {
    "one cell": (
        "cells",
        lambda *rest: cells(lambda rows: PlainScore(0.5, 0.0, 0.0, 0.3), *rest),
        (("a", 1, 1.0), ("a", 1, -1.0)),
    ),
    "two cells": (
        "cells",
        lambda *rest: cells(lambda rows: PlainScore(0.5, 0.0, 0.0, 0.3), *rest),
        (("a", 1, 1.0), ("b", 1, -1.0)),
    ),
    "arms": (
        "cells",
        lambda *rest: cells(lambda rows: ArmScore(0.0, 0.3), *rest, arms=True),
        (("a", 1, 1.0), ("b", 0, 1.0)),
    ),
    "models": ("cells", lambda *rest: cells(adjusted, *rest), (("a", 1, 1.0), ("a", 0, 1.0))),
    "histogram": (
        "histogram",
        lambda gate, rows, pure: release_histogram(gate, rows, ArmScore(0.0, 0.3), pure),
        (("a", 1, 1.0), ("a", 1, -1.0)),
    ),
}


GAUSSIAN, PURE = Budget(2, "1e-2"), Budget(2)


def released(case, claim, at_once=False):
    name, release, candidates = CASES[case]
    return ReleasedAlone(
        name,
        lambda gate, rows, pure: release(gate, records(rows), pure),
        tuple((first, *REST) for first in candidates),
        claim,
        counts=True,
        at_once=at_once,
    )


# The gate is the same for every release: what it draws is looked at for one, and all have many samples below.
@pytest.mark.parametrize(
    ("case", "claim"),
    thinned_rows(
        [("one cell", PURE), ("two cells", GAUSSIAN), ("arms", PURE), ("models", GAUSSIAN)],
        ("one cell", PURE),
    ),
)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(case, claim):
    check(released(case, claim), 800, 7)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("claim", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_no_release_breaks_its_claim_over_more_samples(case, claim):
    check(released(case, claim, at_once=True), 20_000, 8)

"""Coverage of ratios and odds ratios of a trial's arms: risks, sizes of arms, people and budgets.

Releases are made from counts of outcomes by the functions that answer requests, without tables of rows: many draws take
seconds. The first draw of a cell of few rows is asked for by `cv.ate` as well, and is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.data import OUTCOME_STEPS
from counterveil.estimators.linear import both_means
from counterveil.estimators.linear.arm_means import share_of
from counterveil.estimators.linear.budget_split import effect_plan
from counterveil.estimators.moments.trial_means import means_plan, released_means
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.quotient import RATIO
from counterveil.numerics.arm_totals import Arm, TwoArms
from counterveil.privacy import Budget
from counterveil.results import MeasureResult
from counterveil.results.question import Question
from counterveil.rows.linear.arm_mean import plain_mean, release_means
from counterveil.rows.linear.sensitivity import ArmMean
from counterveil.rows.moments.centred_contrast import PrivateArms
from counterveil.session import Gate, SeededNoise
from counterveil.session.session import in_parallel
from experiments.measures.counting import COLUMNS, EFFECT
from experiments.measures.counting import covered as counted
from experiments.runner import Row, Table

RISKS, SHARES, SIZES, EPSILONS = (0.5, 0.1, 0.01), (0.5, 0.2), (500, 5000, 50_000), (0.5, 1.0, 4.0)
# The cells of the short table.
KEY = [
    (0.5, 0.5, 500, 1.0),
    (0.01, 0.2, 500, 4.0),
    (0.1, 0.2, 5000, 0.5),
    (0.01, 0.2, 5000, 0.5),
    (0.01, 0.5, 5000, 4.0),
    (0.01, 0.2, 50_000, 1.0),
]


def trial(seed: int, rows: int, risk: float, share: float) -> dict[str, np.ndarray]:
    """Return arms of fixed sizes and outcomes that are 0 or 1."""
    generator = np.random.default_rng(seed)
    treated = np.zeros(rows, np.int64)
    treated[: round(share * rows)] = 1
    chance = np.where(treated == 1, EFFECT * risk, risk)
    return {"t": treated, "y": (generator.random(rows) < chance).astype(np.int64)}


Means = IndependentArmMeans | JointArmMeans
METHODS = {"outcome": "difference_in_means", "record": "trial"}
_UNIT = Fraction(1, OUTCOME_STEPS)


def _arm(rows: int, events: int) -> Arm:
    return Arm(rows, events * OUTCOME_STEPS, events * OUTCOME_STEPS**2)


def outcome_draws(sizes: tuple[int, int], epsilon: float) -> Callable[[tuple[int, int], int], Means]:
    """Return what releases the means of both arms, given their events and a seed; outcomes are private."""
    left_open: dict[str, Any] = {"mechanism": None, "request_id": None}
    asked = {"protects": "outcome", "estimand": "ATE", "method": METHODS["outcome"]}
    question = Question.ask(epsilon=epsilon, delta=0, level=0.95, **asked, **left_open)
    bounds = ArmMean(Fraction(1), sizes[0]), ArmMean(Fraction(1), sizes[1])
    share = share_of(bounds, question)
    plan = in_parallel(
        effect_plan(question, share), {"effect": both_means.MEANS, "variance": both_means.VARIANCES}
    )

    def draw(events: tuple[int, int], seed: int) -> Means:
        exact = [plain_mean(_arm(rows, several), _UNIT) for rows, several in zip(sizes, events, strict=True)]
        gate = Gate(plan, SeededNoise(seed))
        found = release_means(gate, exact, bounds, [share > 0] * 2, both_means.MEANS, both_means.VARIANCES)
        return both_means.released_means(bounds, found, (Fraction(0), Fraction(1)))

    return draw


def record_draws(sizes: tuple[int, int], epsilon: float) -> Callable[[tuple[int, int], int], Means]:
    """Return the same where everything about a person is private."""
    plan = means_plan(sum(sizes), Budget(epsilon), "staircase")

    def draw(events: tuple[int, int], seed: int) -> Means:
        totals = TwoArms(_arm(sizes[0], events[0]), _arm(sizes[1], events[1]))
        arms = PrivateArms(totals, _UNIT, Fraction(1))
        return released_means(Gate(plan, SeededNoise(seed)), plan, arms, (Fraction(0), Fraction(1)))

    return draw


DRAWS = {"outcome": outcome_draws, "record": record_draws}


def coverage(
    number: int, protects: str, risk: float, share: float, rows: int, epsilon: float, *, seeds: range
) -> Row:
    """Return how often intervals cover, and how often they have no upper end."""
    own = range(seeds.start + 1000 * number, seeds.stop + 1000 * number)
    found = counted(_drawn(protects, risk, share, rows, epsilon, own), risk)
    return [protects, risk, share, rows, epsilon, *found.values]


# Cells of the whole table that covered least.
AGAIN = (
    ("outcome", 0.1, 0.2, 50_000, 1.0),
    ("outcome", 0.5, 0.5, 500, 4.0),
    ("outcome", 0.5, 0.2, 50_000, 4.0),
    ("record", 0.5, 0.5, 5000, 4.0),
)


def _drawn(
    protects: str, risk: float, share: float, rows: int, epsilon: float, seeds: range
) -> Iterator[Means]:
    treated = round(share * rows)
    draw = DRAWS[protects]((treated, rows - treated), epsilon)
    for seed in seeds:
        people = trial(seed, rows, risk, share)
        events = int(people["y"][:treated].sum()), int(people["y"][treated:].sum())
        means = draw(events, seed)
        if rows == min(SIZES) and seed == seeds[0]:
            assert means == _asked(people, protects, epsilon, seed)
        yield means


def _asked(people: dict[str, np.ndarray], protects: str, epsilon: float, seed: int) -> Means:
    """Return the means that a request for the ratio releases."""
    found = cv.ate(
        people,
        cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial()),
        protects=protects,
        epsilon=epsilon,
        method=METHODS[protects],
        measure=RATIO,
        noise=cv.SeededNoise(seed),
    )
    assert isinstance(found, MeasureResult)
    assert isinstance(found.means, IndependentArmMeans | JointArmMeans)
    return found.means


def table(cells: Iterable[tuple[Any, ...]], **more: Any) -> Table:
    """Return a table of numbered cells."""
    return Table(
        columns=("protects", "risk :.2f", "treated :.0%", "rows :,", "epsilon", *COLUMNS),
        cells=list(cells),
        row=coverage,
        **more,
    )


def _numbered(cells: Iterable[tuple[float, ...]]) -> Iterator[tuple[Any, ...]]:
    for number, (protects, cell) in enumerate(product(DRAWS, cells)):
        yield number, protects, *cell


TABLES = {
    "ratios": table(_numbered(KEY), first_seed=0),
    # Other draws of the cells of least coverage, five times as many.
    "again": table(((0, *cell) for cell in AGAIN), first_seed=900_000, draws=1000),
    "whole": table(_numbered(product(RISKS, SHARES, SIZES, EPSILONS)), first_seed=0, apart=True),
}

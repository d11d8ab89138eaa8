"""Stratified matching under the auditor, on neighbours that move it as far as is claimed.

Every sample runs the estimator's own release code through a real gate; the weakened copy sees a gate
that draws a third of every noise and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from counterveil.audit import Given, ThresholdTester, audit
from counterveil.data import Range
from counterveil.numerics.strata import (
    RANGE_STEPS,
    Strata,
    effect_sum,
    mean_sums,
    stratum_weights,
    weight_sum,
)
from counterveil.privacy import Budget, Estimand
from counterveil.published import proved_strata
from counterveil.published.proved_strata import SmoothDesign
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.strata import exact_matching as stratified_bounded
from counterveil.statistics.strata.data import BoughtCuts
from counterveil.statistics.strata.sensitivity import BoundedStrata, StrataOutcome
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)
LIMIT = Fraction(2)


def strata(records, public=2):
    """Return the strata of rows (stratum, treated, y in {0, 1})."""
    cells = np.zeros((3, 2, public), dtype=np.int64)
    for place, arm, y in records:
        steps = int(y * RANGE_STEPS)
        cells[:, arm, place] += (1, steps, steps * steps // RANGE_STEPS)
    count, total, square = cells
    squares = square.astype(np.float64) * RANGE_STEPS
    return Strata(public, np.arange(public), count[1], count[0], total[1], total[0], squares[1], squares[0])


def mostly(name, others, kinds=None):
    """Return the plan that gives `name` nearly everything: the auditor then has one large loss to look for."""
    shares = {other: Fraction(1, 50) for other in others}
    return Plan.split(CLAIM, shares | {name: 1 - sum(shares.values())}, "staircase", kinds or {})


@dataclass(frozen=True)
class Bounded:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        plan, source = mostly("effect", ("weight", "variance")), SeededNoise(int(rng.integers(2**62)))
        claim, held = BoundedStrata(len(dataset), LIMIT, Estimand.ATE), strata(dataset)
        rows = np.empty((count, 3))
        for row in rows:
            found = stratified_bounded.release(self.gate(plan, source), held, claim, Fraction(1))
            row[:] = float(found.effect), float(found.weight), float(found.variance)
        return rows


@dataclass(frozen=True)
class Smooth:
    gate: type[Gate] = Gate
    strata_variance: bool = False

    def sample(self, dataset, count, rng):
        variance = Fraction(1, 200) if self.strata_variance else None
        shares = {name: Fraction(1, 50) for name in ("variance", "scale")}
        shares["effect"] = 1 - sum(shares.values())
        design = SmoothDesign(tuple(shares.items()), Fraction(1, 250), variance)
        plan = Plan.split(CLAIM, shares, "staircase", design.kinds())
        source = SeededNoise(int(rng.integers(2**62)))
        held = strata(dataset)
        rows = np.empty((count, 3))
        for row in rows:
            drawn = proved_strata.release(self.gate(plan, source), held, design, Estimand.ATE)
            row[:] = drawn.effect, np.log(drawn.weight), drawn.variance
        return rows


@dataclass(frozen=True)
class Outcome:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        held = strata(dataset)
        weights, total = stratum_weights(held, "ATE", None), weight_sum(held, "ATE", None)
        claim = StrataOutcome.of(Fraction(1), weights, held.treated, held.control, total)
        plan, source = mostly("effect", ("variance",)), SeededNoise(int(rng.integers(2**62)))
        value = effect_sum(held, "ATE", None) / RANGE_STEPS / total
        rows = np.empty((count, 3))
        for row in rows:
            row[:] = float(self.gate(plan, source).release("effect", value, claim.effect))
        return rows


@dataclass(frozen=True)
class ArmMean:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        held = strata(dataset)
        weights, total = stratum_weights(held, "ATE", None), weight_sum(held, "ATE", None)
        claim = StrataOutcome.of_arm(Fraction(1), weights, held.treated, total, held.rows)
        plan, source = mostly("effect", ("variance",)), SeededNoise(int(rng.integers(2**62)))
        value = mean_sums(held, "ATE", None)[0] / RANGE_STEPS / total
        rows = np.empty((count, 3))
        for row in rows:
            row[:] = float(self.gate(plan, source).release("effect", value, claim.effect))
        return rows


@dataclass(frozen=True)
class CutPoints:
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        cuts = BoughtCuts("x", Range(0, 2), 2)
        plan, source = (
            mostly(cuts.release, (), {cuts.release: Kind.CELLS}),
            SeededNoise(int(rng.integers(2**62))),
        )
        counts = [Fraction(sum(place == cell for place, _, _ in dataset)) for cell in (0, 1)]
        rows = np.empty((count, 3))
        for row in rows:
            noisy = release_counts(self.gate(plan, source), cuts.release, counts, True).floats()
            row[:] = noisy[0] - noisy[1], *noisy
        return rows


# A treated person with y = 1 leaves the only control with y = 0 and joins, with y = 0, one with y = 1.
MOVE = (((0, 1, 1), (0, 0, 0), (1, 0, 1)), ((1, 1, 0), (0, 0, 0), (1, 0, 1)))
CHANGE = (((0, 1, 1), (0, 0, 0), (0, 0, 1)), ((0, 1, 0), (0, 0, 0), (0, 0, 1)))
FIRST = Given(lambda rows: rows[:, 0])
ALL = tuple(Given(lambda rows, place=place: rows[:, place]) for place in range(3))
SMOOTH = pytest.param(Smooth, MOVE, marks=pytest.mark.slow)
CASES = [(Bounded, MOVE), SMOOTH, (Outcome, CHANGE), (ArmMean, CHANGE), (CutPoints, MOVE)]


@pytest.mark.parametrize(("estimator", "pair"), CASES)
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(estimator, pair):
    tester = ThresholdTester(samples=800, projections=(FIRST,))
    report = audit(CLAIM, estimator(), estimator(WeakGate), [pair], [tester], seed=1)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "weak", "pair"),
    [
        (Bounded(), Bounded(WeakGate), MOVE),
        (Smooth(), Smooth(WeakGate), MOVE),
        (Smooth(strata_variance=True), Smooth(WeakGate, strata_variance=True), MOVE),
    ],
)
def test_no_projection_of_many_samples_breaks_the_claim(estimator, weak, pair):
    tester = ThresholdTester(samples=4_000, projections=ALL)
    report = audit(CLAIM, estimator, weak, [pair], [tester], seed=2)
    assert report.passed, str(report)

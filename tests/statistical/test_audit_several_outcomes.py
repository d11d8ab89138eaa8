"""Several outcomes under the auditor: neighbours differ in all outcomes of a row, or in a whole record."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.unit.statistics.linear.test_several_outcomes import listed, question, table
from tests.unit.statistics.moments.test_several_outcomes import CENTRES, SHARE, WIDTHS, exact

from counterveil.audit import Cloud, ExactTester, LikelihoodRatio, ThresholdTester, audit
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.linear.several_outcomes import design, effects_plan, release
from counterveil.statistics.moments.sensitivity import CentredContrast
from counterveil_lab.attacks.watching import WeakGate


def log_density(noises, x):
    """Return the log density of noises at the columns of x: jointly for the box, one by one else."""
    if noises[0].name == "box":
        scaled = np.column_stack([x[:, j] / float(n.sensitivity) for j, n in enumerate(noises)])
        unit = type(noises[0])(1, noises[0].epsilon, noises[0].dimension)
        return unit.log_density(scaled) - sum(np.log(float(n.sensitivity)) for n in noises)
    return sum(noise.log_density(x[:, j]) for j, noise in enumerate(noises))


@cache
def made_of(asked, dataset):
    rows = table(*dataset)
    # With so few rows the variance would not be paid for.
    made = replace(design(rows, asked, listed()), share=Fraction(1, 4))
    return made, effects_plan(asked, made)


@dataclass(frozen=True)
class Both:
    """Four released numbers: value and variance of two outcomes; a data set is both columns."""

    asked: object
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        source, (made, plan) = SeededNoise(int(rng.integers(2**62))), made_of(self.asked, dataset)
        out = np.empty((count, 4))
        for row in out:
            ((one, other),) = release(self.gate(plan, source), made, listed())
            row[:] = [float(one[0]), float(other[0]), float(one[1]), float(other[1])]
        return out

    def log_density(self, dataset, outputs):
        (made, plan), total, part = made_of(self.asked, dataset), 0.0, 3 if self.gate is WeakGate else 1
        (group,) = made.groups
        (exact_numbers,) = made.exact(listed())
        for place, (what, power, bound) in enumerate(
            [("values", 1, group.largest), ("variances", 2, group.variance)]
        ):
            widths = [width**power for width in listed().widths]
            noises = plan.several_noise(
                f"{what} of the arms", [bound * width / part for width in widths], listed().weights
            )
            centre = np.array(
                [float(pair[place] * width) for pair, width in zip(exact_numbers, widths, strict=True)]
            )
            total = total + log_density(noises, outputs[:, 2 * place : 2 * place + 2] - centre)
        return total


PAIR = (((0, 0, 0, 0, 0), (-1, -1, -1, -1, -1)), ((1, 0, 0, 0, 0), (4, -1, -1, -1, -1)))


def test_all_outcomes_together_keep_the_claim_and_a_third_of_the_noise_does_not():
    asked = question(epsilon=2)
    testers = [ExactTester(Cloud(draws=200))]
    report = audit(Budget(2), Both(asked), Both(asked, WeakGate), [PAIR], testers, seed=1)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(2), Budget(2, "1e-3")], ids=["box", "gaussian"])
def test_black_box(budget):
    asked = question(epsilon=budget.epsilon, delta=budget.delta)
    testers = [ThresholdTester(samples=3000, projections=(LikelihoodRatio(),))]
    report = audit(budget, Both(asked), Both(asked, WeakGate), [PAIR], testers, seed=2)
    assert report.passed, str(report)


@dataclass(frozen=True)
class Contrasts:
    """Contrasts and second moments of two outcomes at a fixed share and centre; a data set is its records."""

    plan: Plan
    part: int = 1

    def _bounds(self):
        found = [
            CentredContrast(width, 4, SHARE, centre) for width, centre in zip(WIDTHS, CENTRES, strict=True)
        ]
        return {"contrast": [b.mean for b in found], "moment": [b.second_moment for b in found]}

    def sample(self, dataset, count, rng):
        source, numbers = SeededNoise(int(rng.integers(2**62))), exact(dataset)
        out = np.empty((count, 4))
        for row in out:
            gate = Gate(self.plan, source)
            for place, (name, bounds) in enumerate(self._bounds().items()):
                values = [pair[place] for pair in numbers]
                weak = [bound / self.part for bound in bounds]
                noisy = gate.release_several(name, values, weak, [Fraction(1)] * 2)
                row[2 * place : 2 * place + 2] = [float(one) for one in noisy]
        return out

    def log_density(self, dataset, outputs):
        numbers, total = exact(dataset), 0.0
        for place, (name, bounds) in enumerate(self._bounds().items()):
            noises = self.plan.several_noise(name, [b / self.part for b in bounds], [Fraction(1)] * 2)
            centre = np.array([float(pair[place]) for pair in numbers])
            total = total + log_density(noises, outputs[:, 2 * place : 2 * place + 2] - centre)
        return total


def test_contrasts_of_records_keep_the_claim_and_a_third_of_the_noise_does_not():
    shares = {"contrast": Fraction(3, 4), "moment": Fraction(1, 4)}
    plan = Plan.split(Budget(2), shares, "staircase", dict.fromkeys(shares, Kind.SEVERAL))
    rest = ((1, 0, 1), (0, 1, 0), (0, 0, 0))
    pairs = [(((1, 1, 1), *rest), ((0, 1, 1), *rest)), (((1, 0, 0), *rest), ((1, 1, 1), *rest))]
    testers = [ExactTester(Cloud(draws=200))]
    report = audit(Budget(2), Contrasts(plan), Contrasts(plan, 3), pairs, testers, seed=1)
    assert report.passed, str(report)

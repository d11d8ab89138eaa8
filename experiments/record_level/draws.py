"""Estimates of every record-level method on one instance, in units of the outcome's range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.estimators.moments import contrast
from counterveil.numerics.arm_totals import TwoArms, arm_totals
from counterveil.numerics.propensity import fit_propensity
from counterveil.privacy import Budget
from counterveil.published import matching as proved_matching
from counterveil.rows.moments.centred_contrast import PrivateArms
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil_lab.reproduce.papers.private_matching.studies import Sampled
from experiments.outcome_level.instances import load

SETTINGS = proved_matching.DEFAULTS
LAW = "staircase"
EPSILONS = ("0.5", "1", "1.5", "2", "3", "4")
_ROWS = {"scores": Kind.ROWS, "treatments": Kind.RESPONSE}


@dataclass(frozen=True)
class Prepared:
    """What does not depend on the noise: features, fitted weights, the published form's own, totals of the arms."""

    table: Table
    features: UnitFeatures
    z: np.ndarray
    fitted: np.ndarray
    published: Sampled
    totals: TwoArms
    arms: PrivateArms

    @property
    def width(self):
        low, high = self.table.study.outcome_range
        return high - low


@cache
def prepared(family: str, number: int) -> Prepared:
    table = load(family, number).table
    low, high = table.study.outcome_range
    features = UnitFeatures.of(table.study)
    z = features.values(table)
    totals = arm_totals(table.treated, table.outcome)
    return Prepared(
        table,
        features,
        z,
        fit_propensity(z, table.treated, SETTINGS.penalty).weights,
        Sampled.of(table, SETTINGS.penalty),
        totals,
        PrivateArms(totals, table.outcome_unit, high - low),
    )


def ours(data: Prepared, epsilon: str, source: SeededNoise) -> dict[str, float]:
    plan = Plan.split(Budget(epsilon), SETTINGS.shares(), LAW, _ROWS | {"weights": Kind.VECTOR})
    gate = Gate(plan, source)
    scores, responses = proved_matching.release_proved_scores(
        gate, data.table, data.features, data.z, data.fitted
    )
    matched = proved_matching.match_released(scores, responses, float(plan.amount("effect")))
    effect, _ = proved_matching.release_sum(gate, data.table, matched)
    shrunk = float(effect.value / data.width)
    return {
        "matching, proved form (shrunk)": shrunk,
        "matching, proved form, debiased": shrunk / proved_matching.shrinkage_of(responses).factor,
    }


def paper(data: Prepared, epsilon: str, source: SeededNoise) -> dict[str, float]:
    estimate, _ = data.published.draw(float(epsilon), SETTINGS, source)
    return {"matching as published (refuted)": estimate / float(data.width)}


def plain(data: Prepared, epsilon: str, source: SeededNoise) -> dict[str, float]:
    rows, budget = data.table.rows, Budget(epsilon)
    found = {}
    for name, centre in (("contrast", contrast.ARMS), ("difference in means", contrast.POOLED)):
        plan = contrast.plan_of(centre, rows, budget, LAW)
        drawn = contrast.release(Gate(plan, source), plan, data.arms, declared=None, centre=centre)
        found[name] = float(drawn.effect.value / data.width)
    return found


METHODS: tuple[Callable[[Prepared, str, SeededNoise], dict[str, float]], ...] = (paper, ours, plain)


def estimates(family: str, number: int, epsilon: str, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Return `draws` estimates of every method; the noise of each method has a stream of its own."""
    data = prepared(family, number)
    found: dict[str, list[float]] = {}
    for place, method in enumerate(METHODS):
        source = SeededNoise(1000 * seed + place)
        for _ in range(draws):
            for name, value in method(data, epsilon, source).items():
                found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}

"""What audits say of each method's claim, before anything is ranked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from counterveil.attacks.command import EVERYTHING, examine
from counterveil.attacks.gallery import Noisy, exact
from counterveil.attacks.refuted import GALLERY
from counterveil.audit import Given, ThresholdTester
from counterveil.audit.protocols import FloatArray
from counterveil.privacy import Budget as Exact
from counterveil.reproduce.rivals import simple
from counterveil.reproduce.rivals.catalogue import RIVALS
from counterveil.reproduce.rivals.protocol import Budget, Records, Rival

# Answers that each of two neighbours gives; enough to find a third of the noise.
SAMPLES = 1000
_ERROR = 0.05
_SAMPLED = {
    "difference in means, Laplace": "outcome",
    "OLS, Laplace": "outcome",
    "IPW, Laplace": "outcome",
    "OLS, noisy Gram": "record",
}
# What `counterveil audit` calls our methods.
_OURS = {
    "ours, auto (outcome)": "ate/auto/outcome",
    "ours, weighting (outcome)": "ate/weighting/outcome",
    "ours, matching (outcome)": "ate/matching/outcome",
    "ours, stratified (outcome)": "ate/stratified/outcome",
    "ours, difference in means (outcome)": "ate/difference_in_means/outcome",
    "ours, auto (record)": "ate/auto/record",
    "ours, auto, confounding bounded (record)": "ate/auto/record",
    "ours, doubly robust (record)": "ate/doubly_robust/record",
    "ours, cross-fit (record)": "ate/cross_fit/record",
    "ours, IPW (record)": "ate/ipw/record",
    "ours, stratified (record)": "ate/stratified/record",
    "ours, folds (record)": "ate/fold_aggregation/record",
    "ours, difference in means (record)": "ate/trial/record/pooled",
}


@dataclass(frozen=True)
class Estimates:
    """A rival as a mechanism: its values on one of two neighbours."""

    rival: Rival
    budget: Budget

    def sample(self, dataset: Records, count: int, rng: np.random.Generator) -> FloatArray:
        """Return values of fresh seeds."""
        seeds = rng.integers(0, 2**62, count)
        return np.array([self.rival.estimate(dataset, self.budget, int(seed)).value for seed in seeds])


def neighbours(unit: str) -> tuple[Records, Records]:
    """Return two small data sets that differ in one outcome, or in one record, as far as they can."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (12, 1))
    treated = np.arange(12) % 3 == 0
    first = Records(x, treated, np.zeros(12), ((-1.0, 1.0),), (0.0, 1.0))
    simple_weights = np.abs(simple.ols_coefficients(first))
    place = int(np.argmax(simple_weights))
    y = first.y.copy()
    y[place] = 1.0
    if unit == "outcome":
        return first, replace(first, y=y)
    moved, flipped = x.copy(), treated.copy()
    moved[place], flipped[place] = 1.0, ~treated[place]
    return first, replace(first, x=moved, treated=flipped, y=y)


def examined(rival: Rival, unit: str, part: float = 1.0) -> tuple[float, bool]:
    """Return the epsilon that samples show at a claim of 1, and whether it is more; `part` is that of the noise."""
    mechanism = Estimates(rival, Budget(1 / part, 0.0))
    tester = ThresholdTester(SAMPLES, (Given(lambda rows: rows[:, 0]),))
    found = tester.examine(mechanism, neighbours(unit), Exact(1), error=_ERROR, rng=np.random.default_rng(1))
    return found.found, found.violated


def verdict(rival: Rival) -> str:
    """Return what is known of one claim."""
    if rival.claim == "none":
        return "no claim"
    if rival.gallery is not None:
        found = GALLERY[rival.gallery].examine()
        size = "without bound" if found.found == np.inf else f"{found.found:.3g}"
        said = "refuted" if found.violated else "NOT REFUTED"
        return f"{said}: gallery, {rival.gallery} ({found.quantity.value} {size}, claimed {found.claimed:g})"
    if rival.name == "GlobalDPM":
        rows = 4
        entry = exact(
            "global", "", Exact(1), Noisy(lambda one: one, lambda _: 1.0), (0.0, 1 + 1 / rows), "", "", ""
        ).examine()
        return (
            f"{'refuted' if entry.violated else 'NOT REFUTED'}: epsilon {entry.found:.3g} at n = 4, claimed 1"
        )
    if rival.name in _SAMPLED:
        shown, broken = examined(rival, _SAMPLED[rival.name])
        third, caught = examined(rival, _SAMPLED[rival.name], 1 / 3)
        said = "VIOLATED" if broken else "passed" if caught else "inconclusive, by proof alone"
        return f"{said}: samples show epsilon {shown:.2g} of 1, a third of the noise {third:.2g}"
    if rival.ours:
        return (
            f"{examine(EVERYTHING[_OURS[rival.name]]).verdict.value}: counterveil audit {_OURS[rival.name]}"
        )
    return "by the authors' proof; not audited here" if rival.apart else "by proof; not audited here"


def verdicts() -> dict[str, str]:
    """Return the verdict of every method."""
    return {name: verdict(rival) for name, rival in RIVALS.items()}

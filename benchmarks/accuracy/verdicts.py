"""What audits say of each method's claim, before anything is ranked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from counterveil.privacy import Budget as Exact
from counterveil_lab.attacks.command import EVERYTHING, examine
from counterveil_lab.attacks.gallery import GALLERY, Noisy, exact
from counterveil_lab.audit import Given, LikelihoodRatio, ThresholdTester
from counterveil_lab.audit.report import FloatArray, Mechanism
from counterveil_lab.reproduce.rivals import ours, simple
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Budget, Records, Rival

# Answers, or matrices, that each of two neighbours gives; enough to find a third of the noise.
SAMPLES, _MATRICES = 1000, 20_000
_ERROR = 0.05
_SAMPLED = {
    "difference in means, Laplace": "outcome",
    "OLS, Laplace": "outcome",
    "IPW, Laplace": "outcome",
}
# Audited by the matrix that it releases: what is solved from it shows nothing at so few rows.
_GRAM = "OLS, noisy Gram"
# What `counterveil audit` calls our methods.
_OURS = {
    "ours, auto (outcome)": "ate/auto/outcome",
    "ours, weighting (outcome)": "ate/weighting/outcome",
    "ours, weighting, value alone (outcome)": "ate/weighting/outcome/value alone",
    "ours, matching (outcome)": "ate/matching/outcome",
    "ours, stratified (outcome)": "ate/stratified/outcome",
    "ours, difference in means (outcome)": "ate/difference_in_means/outcome",
    "ours, difference in means, value alone (outcome)": "ate/difference_in_means/outcome",
    "ours, auto (record)": "ate/auto/record",
    "ours, auto, confounding bounded (record)": "ate/auto/record/confounding bounded",
    "ours, doubly robust (record)": "ate/doubly_robust/record",
    "ours, stratified (record)": "ate/stratified/record",
    "ours, folds (record)": "ate/sample_and_aggregate/record",
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


@dataclass(frozen=True)
class Grams:
    """Noisy Gram matrices at pure epsilon with their density, without the last square: all that regression reads."""

    epsilon: float

    def sample(self, dataset: Records, count: int, rng: np.random.Generator) -> FloatArray:
        """Return the upper halves, a row for each matrix."""
        size = simple.gram_rows(dataset).shape[1]
        return _upper(dataset) + simple.upper_noise(size, Budget(self.epsilon, 0.0), rng, count)[:, :-1]

    def log_density(self, dataset: Records, outputs: FloatArray) -> FloatArray:
        """Return the log density of Laplace noise, but for its constant; the number of rows is the same in all."""
        size = simple.gram_rows(dataset).shape[1]
        scale = simple.gram_scale(size, Budget(self.epsilon, 0.0)) / np.sqrt(2)
        return np.asarray(-np.abs(outputs - _upper(dataset)).sum(axis=1) / scale)


def _upper(dataset: Records) -> FloatArray:
    z = simple.gram_rows(dataset)
    return np.asarray((z.T @ z)[np.triu_indices(z.shape[1])][:-1])


def neighbours(unit: str) -> tuple[Records, Records]:
    """Return two small data sets that differ in one outcome, or in an outcome and its treatment, as far as they can."""
    rng = np.random.default_rng(1)
    treated = np.arange(12) % 3 == 0
    first = Records(rng.uniform(-1, 1, (12, 1)), treated, np.zeros(12), ((-1.0, 1.0),), (0.0, 1.0))
    place = int(np.argmax(np.abs(simple.ols_coefficients(first))))
    y, flipped = first.y.copy(), treated.copy()
    y[place], flipped[place] = 1.0, ~treated[place]
    if unit == "outcome":
        return first, replace(first, y=y)
    # A covariate at its end makes the most of the other two in the products of a record.
    first.x[place] = 1.0
    return first, replace(first, y=y, treated=flipped)


def examined(rival: Rival, part: float = 1.0) -> tuple[float, bool]:
    """Return the epsilon that samples show at a claim of 1, and whether it is more; `part` is that of the noise."""
    if rival.name == _GRAM:
        mechanism: Mechanism = Grams(1 / part)
        pair, tester = neighbours("record"), ThresholdTester(_MATRICES, (LikelihoodRatio(),))
    else:
        mechanism, pair = Estimates(rival, Budget(1 / part, 0.0)), neighbours(_SAMPLED[rival.name])
        tester = ThresholdTester(SAMPLES, (Given(lambda rows: rows[:, 0]),))
    found = tester.examine(mechanism, pair, Exact(1), error=_ERROR, rng=np.random.default_rng(1))
    return found.found, found.violated


def moved_between_strata() -> tuple[Records, Records]:
    """Return four people with one treated, who is matched in the first stratum or, with the other outcome, the second.

    There two people count 1 each, here three count -1: of a range of 1 the effect moves by 5/4.
    """
    x, treated = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([True, False, False, False])
    first = Records(
        x, treated, np.array([1.0, 0.0, 1.0, 1.0]), ((0.0, 1.0),), (0.0, 1.0), values=((0.0, 1.0),)
    )
    return first, replace(first, x=np.array([[1.0], *x[1:]]), y=np.array([0.0, *first.y[1:]]))


def global_matching_refuted() -> str:
    """Return what two neighbours say of GlobalDPM: exact matching with noise for one range."""
    mechanism = Noisy(ours.matched_effect, lambda records: records.width)
    pair = moved_between_strata()
    found = exact("global", "", Exact(1), mechanism, pair, "", "", "").examine()
    said = "refuted" if found.violated else "NOT REFUTED"
    return f"{said}: epsilon {found.found:.3g} at n = {pair[0].rows}, claimed {found.claimed:g}"


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
        return global_matching_refuted()
    if rival.name in (*_SAMPLED, _GRAM):
        shown, broken = examined(rival)
        third, caught = examined(rival, 1 / 3)
        said = "VIOLATED" if broken else "passed" if caught else "inconclusive, by proof alone"
        what = "noisy matrices" if rival.name == _GRAM else "samples"
        return f"{said}: {what} show epsilon {shown:.2g} of 1, a third of the noise {third:.2g}"
    if rival.ours:
        return (
            f"{examine(EVERYTHING[_OURS[rival.name]]).verdict.value}: counterveil audit {_OURS[rival.name]}"
        )
    return "by the authors' proof; not audited here" if rival.apart else "by proof; not audited here"


def verdicts(names: list[str]) -> dict[str, str]:
    """Return the verdicts of methods, of all if none is named."""
    return {name: verdict(RIVALS[name]) for name in names or RIVALS}

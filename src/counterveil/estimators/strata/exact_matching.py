"""Effects from strata where whole records are private.

- `read_strata`: the strata of a question, with cut points that are released first where they are not public.
  Everything that can fail for the sake of the data is done there, before budget is reserved.
- `stratified`, `stratified_outcome`, `stratified_means`: exact matching on strata with bounded weights.
- `clustered_trial`: a trial whose people come in clusters, from noisy counts and sums by cluster and arm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Layout, Range, Study, Table
from counterveil.errors import CounterveilError, refusal
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.measures import IndependentArmMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.numerics.strata import (
    RANGE_STEPS,
    Strata,
    arm_variances,
    bounded_variance,
    effect_sum,
    mean_sums,
    stratum_weights,
    unmatched_rows,
    weight_sum,
)
from counterveil.privacy import Budget, Estimand, Guarantee
from counterveil.privacy.caveats import Caveat, Fact, StrataLeftOut
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question, causal_caveats, too_few_clusters
from counterveil.results.result import MeasureResult, Result
from counterveil.rows.counts import release_counts
from counterveil.rows.strata.sensitivity import BoundedStrata, ClusterCells, StrataOutcome
from counterveil.session import (
    BaseSession,
    Gate,
    Kind,
    KnownSensitivityMechanism,
    Plan,
    Released,
)
from counterveil.session.session import in_parallel
from counterveil.settings import Stratified, Trial

# Cut points of numeric covariates that are not known in public: private quantiles, paid for.
#
# A noisy histogram on an even public grid over the covariate's range is released; the cut points are the
# grid's points nearest to the quantiles of its running sum. All that follows is post-processing.


STRATA_PAGE = "rows/histogram.proof.md"
# Cells of the grid on which cut points can lie.
GRID = 64
# What the cut points of one covariate cost, in parts of the budget.
SHARE = Fraction(1, 20)
MOST_RELEASED_CUTS = 19


@dataclass(frozen=True, slots=True)
class PrivateCutPoints:
    """A numeric covariate whose cut points are to be found from the data."""

    name: str
    domain: Range
    bins: int

    @property
    def release(self) -> str:
        """The name of the release that pays for them."""
        return f"cut points of {self.name}"

    @property
    def points(self) -> tuple[Fraction, ...]:
        """The inner points of the even public grid on which they lie."""
        return tuple(self.domain.lo + self.domain.width * Fraction(k, GRID) for k in range(1, GRID))

    def nearest(self, counts: NDArray[Any]) -> tuple[Fraction, ...]:
        """Return at most bins - 1 grid points, those nearest to the quantiles of the counts, without repeats."""
        running = np.cumsum(counts)[:-1]
        aims = np.arange(1, self.bins) / self.bins * float(np.sum(counts))
        places = np.unique(np.abs(running[:, None] - aims).argmin(axis=0))
        return tuple(self.points[int(place)] for place in places)


def released_cuts(study: Study, settings: Stratified) -> tuple[PrivateCutPoints, ...]:
    """Return the covariates whose cut points are to be released, or raise CV-S080."""
    found = []
    for name, bins in (settings.cuts or {}).items():
        domain = study.covariates.get(name)
        wanted = settings.strata is None or name in settings.strata
        if not isinstance(domain, Range) or domain.cuts or not wanted:
            raise refusal("CV-S080", name=name, got="no such covariate" if domain is None else repr(domain))
        found.append(PrivateCutPoints(name, domain, bins))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StrataReader:
    """The strata of one question, or what is needed to find them once cut points are released."""

    session: BaseSession
    settings: Stratified
    released_cuts: tuple[PrivateCutPoints, ...]
    histograms: tuple[NDArray[np.int64], ...]
    known: Strata
    public: int  # strata of the layout; with released cut points, at most so many

    @property
    def rows(self) -> int:
        """The public number of rows."""
        return self.known.rows

    @property
    def left(self) -> Fraction:
        """The part of the budget that cut points leave; CV-P640 where that is nothing."""
        if len(self.released_cuts) > MOST_RELEASED_CUTS:
            raise refusal(
                "CV-P640", limit=MOST_RELEASED_CUTS, share=SHARE, released_cuts=len(self.released_cuts)
            )
        return 1 - SHARE * len(self.released_cuts)

    def shares(self, own: dict[str, Fraction]) -> dict[str, Fraction]:
        """Return the shares of the budget: the estimator's own, and those of the cut points."""
        return {cuts.release: SHARE for cuts in self.released_cuts} | {
            name: share * self.left for name, share in own.items()
        }

    def guarantee(self, question: Question, pages: tuple[str, ...]) -> Guarantee:
        """Return the guarantee of a question at record level, with what cut points add."""
        mechanisms: tuple[str, ...] = (question.mechanism,)
        if self.released_cuts:
            pages = (*pages, STRATA_PAGE)
            mechanisms = (*mechanisms, "laplace")
        return question.guarantee(self.session, pages, mechanisms=mechanisms)

    def releases(self) -> tuple[tuple[str, str], ...]:
        """Return the releases of cut points, as a result lists them."""
        return tuple((cuts.release, "histogram, sensitivity 2") for cuts in self.released_cuts)

    def kinds(self) -> dict[str, Kind]:
        """Return what the releases of cut points are planned as."""
        return {cuts.release: Kind.CELLS for cuts in self.released_cuts}

    def released(self, gate: Gate) -> tuple[Strata, dict[str, float | str]]:
        """Return the strata after the cut points were released, and the cut points as details."""
        found: dict[str, tuple[Fraction, ...]] = {}
        for cuts, counts in zip(self.released_cuts, self.histograms, strict=True):
            noisy = release_counts(gate, cuts.release, counts, pure=True)
            found[cuts.name] = cuts.nearest(noisy.floats())
        return self._strata(found), _shown(found)

    def free(self) -> tuple[Strata, dict[str, float | str]]:
        """Return the strata where covariates are public and quantiles cost nothing."""
        found = {
            cuts.name: cuts.nearest(counts)
            for cuts, counts in zip(self.released_cuts, self.histograms, strict=True)
        }
        return self._strata(found), _shown(found)

    def _strata(self, found: dict[str, tuple[Fraction, ...]]) -> Strata:
        if not found:
            return self.known
        layout = Layout.of(self.session.study, self.settings.strata, found)
        return self.session.strata(layout)


def read_strata(session: BaseSession, settings: Stratified) -> StrataReader:
    """Return the reader of a question's strata; refuses what does not fit the study."""
    private_cuts = released_cuts(session.study, settings)
    # One bin stands for the columns still to be cut, so that everything else is read and checked now.
    layout = Layout.of(session.study, settings.strata, {cuts.name: () for cuts in private_cuts})
    public = layout.public
    for cuts in private_cuts:
        public *= cuts.bins
    known = session.strata(layout, most=public)
    histograms = tuple(session.histogram(cuts.name, cuts.points) for cuts in private_cuts)
    return StrataReader(session, settings, private_cuts, histograms, known, public)


def _shown(found: dict[str, tuple[Fraction, ...]]) -> dict[str, Any]:
    said = "; ".join(
        f"{name}: {', '.join(f'{float(cut):.6g}' for cut in cuts)}" for name, cuts in found.items()
    )
    return {"cut_points": said} if said else {}


# Exact matching on strata with bounded weights: nobody's outcome counts more than a public number of times.
#
# A stratum with t treated and c controls speaks for h = min(t + c, w t, w c) people (ATE), so that no coefficient
# exceeds the limit w and every sensitivity is a public constant. The effect is the average over strata with weights
# h: where the limit does not bind these are the numbers of people. Sums of h are released as well.
#
# Lineage: subclassification on covariates (Cochran 1968) as exact matching; the limit on weights is ours.
#
# Exact matching on strata where only outcomes are private: counts are public, so are all weights.
#
# Lineage: subclassification on covariates (Cochran 1968) as exact matching.
#
# Means of both arms over strata where only outcomes are private, for ratios and odds ratios.
#
# One outcome is in one arm, so that both means are released for the price of one (`session/parallel.proof.md`). Means
# are standardised: those of strata count with the weights that their difference has (direct standardisation).


def caveats(study: Study, own: Fact) -> tuple[Fact, ...]:
    """Return what the interval does not cover, from what the study declares."""
    open_to = () if study.randomised is True else (Caveat.CONFOUNDING_WITHIN_STRATA,)
    return (*open_to, own, Caveat.CLAMPING, Caveat.FIXED_STRATA)


PAGE = "rows/strata/bounded_strata.proof.md"
# The weight kept is never taken below this, whatever the noise says: fewer strata cannot be compared anyway.
_LEAST_KEPT = Fraction(1, 50)
# The effect, in widths of the outcome's range, for which the budget is split.
_TYPICAL_EFFECT = 0.2


@dataclass(frozen=True, slots=True)
class Released3:
    """The three released numbers: sums of effects, of weights and of variances, each divided by its rows."""

    effect: Released
    weight: Released
    variance: Released


@lru_cache(maxsize=64)
def budget_shares(
    rows: int, budget: Budget, mechanism: str, limit: Fraction, estimand: Estimand
) -> dict[str, Fraction]:
    """Return the split over effect, weight and variance with the smallest expected error.

    Reads public numbers only. The expectation is taken for outcomes in [0, 1] and a typical effect.
    """
    claim = BoundedStrata(rows, limit, estimand)

    def expected(shares: dict[str, Fraction]) -> float:
        plan = Plan.split(budget, shares, mechanism)
        effect = plan.noise("effect", claim.effect / rows).variance
        weight = plan.noise("weight", claim.weight / rows).variance
        variance = sqrt(plan.noise("variance", claim.variance / rows**2).variance)
        return effect + _TYPICAL_EFFECT**2 * weight + variance

    splits = [
        {"effect": 1 - weight - variance, "weight": weight, "variance": variance}
        for weight, variance in product(
            [Fraction(k, 20) for k in range(2, 7)], [Fraction(k, 20) for k in range(1, 6)]
        )
    ]
    return min(splits, key=expected)


def stratified(session: BaseSession, question: Question) -> Result:
    """Return the effect with bounded weights; n and the layout of the strata are public, nothing else is."""
    settings = question.settings or Stratified()
    limit = settings.exact_limit
    width = session.study.outcome_bounds.width
    reader = read_strata(session, settings)
    own = budget_shares(reader.rows, question.budget, question.mechanism, limit, question.estimand)
    plan = Plan.split(question.budget, reader.shares(own), question.mechanism, reader.kinds())

    def compute(gate: Gate) -> Facts:
        strata, cuts = reader.released(gate)
        claim = BoundedStrata(reader.rows, limit, question.estimand)
        found = release(gate, strata, claim, width)
        kept = min(max(found.weight.value, _LEAST_KEPT), Fraction(1))
        estimate = float(found.effect.value / kept)
        return Facts(
            estimate=estimate,
            uncertainty=_uncertainty(plan, claim, width, found, kept, estimate),
            guarantee=reader.guarantee(question, (PAGE,)),
            method=f"exact matching on strata, weights up to {float(limit):g}",
            releases=_releases(claim, width, reader),
            not_covered=caveats(session.study, StrataLeftOut(question.estimand, float(limit))),
            details={
                **cuts,
                "rows": reader.rows,
                "strata": reader.public,
                "weight_limit": float(limit),
                "weight_kept": float(kept),
                "budget": plan.shares,
                "mechanism": question.mechanism,
            },
        )

    return answer_request(Result, session, question, plan, compute)


def release(gate: Gate, strata: Strata, claim: BoundedStrata, width: Fraction) -> Released3:
    """Return the released mean of h (effect), mean of h, and variance of the former."""
    rows = claim.rows
    word = claim.estimand.value
    unit = width / RANGE_STEPS
    effect = effect_sum(strata, word, claim.limit) * unit / rows
    weight = weight_sum(strata, word, claim.limit) / rows
    variance = bounded_variance(strata, word, claim.limit) * unit**2 / rows**2
    return Released3(
        gate.release("effect", effect, claim.effect * width / rows),
        gate.release("weight", weight, claim.weight / rows),
        gate.release("variance", variance, claim.variance * width**2 / rows**2),
    )


def _uncertainty(
    plan: Plan, claim: BoundedStrata, width: Fraction, found: Released3, kept: Fraction, estimate: float
) -> Uncertainty:
    """Return the uncertainty of (sum of effects) / (sum of weights), given the strata."""
    rows = claim.rows
    share = float(kept)
    noise: KnownSensitivityMechanism = plan.noise("effect", claim.effect * width / rows / kept)
    variance_noise = plan.noise("variance", claim.variance * width**2 / (rows * kept) ** 2)
    # h^2 (v_1/t + v_0/c) is at most 2 w h times the largest variance, half a squared range for two rows.
    cap = float(claim.limit * width**2 / rows) / share
    extra = estimate**2 * found.weight.noise.variance / share**2
    return Uncertainty(noise, float(found.variance) / share**2, cap, variance_noise, extra)


def _releases(claim: BoundedStrata, width: Fraction, reader: StrataReader) -> tuple[tuple[str, str], ...]:
    rows = claim.rows
    b = float(width)
    return (
        *reader.releases(),
        ("sum of stratum effects / n", f"sensitivity {float(claim.effect) * b / rows:.6g}"),
        ("sum of stratum weights / n", f"sensitivity {float(claim.weight) / rows:.6g}"),
        ("variance of the former", f"sensitivity {float(claim.variance) * b**2 / rows**2:.6g}"),
    )


OUTCOME_PAGE = "rows/strata/strata_outcome.proof.md"


@lru_cache(maxsize=64)
def variance_part(budget: Budget, mechanism: str) -> Fraction:
    """Return the part of the budget for the variance that adds least to a short interval."""

    def expected(part: Fraction) -> float:
        plan = Plan.split(budget, {"effect": 1 - part, "variance": part}, mechanism)
        # The variance's noise widens the interval about as its own standard deviation does.
        return plan.noise("effect", Fraction(1)).variance + sqrt(plan.noise("variance", Fraction(1)).variance)

    return min((Fraction(k, 20) for k in range(1, 9)), key=expected)


def stratified_outcome(session: BaseSession, question: Question) -> Result:
    """Return the effect with noise for one outcome; strata, treatments and counts are public."""
    settings = question.settings or Stratified()
    strata, cuts = read_strata(session, settings).free()
    word = question.estimand.value
    limit = settings.exact_limit
    width = session.study.outcome_bounds.width
    weights = stratum_weights(strata, word, limit)
    total = weight_sum(strata, word, limit)
    if total == 0:
        raise nothing_matched()
    claim = StrataOutcome.of(width, weights, strata.treated, strata.control, total)
    sizes = arm_sizes(strata, weights, float(total))
    part = variance_part(question.budget, question.mechanism)
    plan = Plan.split(question.budget, {"effect": 1 - part, "variance": part}, question.mechanism)

    def compute(gate: Gate) -> Facts:
        unit = width / RANGE_STEPS
        effect = gate.release("effect", effect_sum(strata, word, limit) * unit / total, claim.effect)
        exact = bounded_variance(strata, word, limit) * unit**2 / total**2
        variance = gate.release("variance", exact, claim.variance)
        # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
        cap = float(claim.weight * width**2 / total)
        plain = Uncertainty(effect.noise, float(variance), cap, variance.noise)
        known = with_rare_events(plain, session.study.outcome_range, sizes)
        details = strata_details(strata, question.estimand, claim) | cuts
        details |= {"budget": plan.shares, "mechanism": question.mechanism}
        estimate = float(effect)
        study = session.study
        return Facts(
            estimate=estimate,
            uncertainty=known,
            method="exact matching on strata",
            releases=(
                ("average of stratum effects", f"sensitivity {float(claim.effect):.6g}"),
                ("its variance", f"sensitivity {float(claim.variance):.6g}"),
            ),
            not_covered=caveats(study, StrataLeftOut(question.estimand, float(limit))),
            details=details,
            independent_variance=True,
        )

    return answer_request(Result, session, question, plan, compute, pages=OUTCOME_PAGE)


def arm_sizes(strata: Strata, weights: Floats, total: float) -> tuple[float, float]:
    """Return how many people of equal weight each arm is worth."""
    used = weights > 0
    shares = weights[weights > 0] / total
    treated, control = (
        1 / float((shares**2 / counts[used]).sum()) for counts in (strata.treated, strata.control)
    )
    return treated, control


def strata_details(strata: Strata, estimand: Estimand, claim: StrataOutcome) -> dict[str, float | str]:
    """Return public numbers of strata for a result."""
    both = (strata.treated > 0) & (strata.control > 0)
    return {
        "rows": strata.rows,
        "strata": strata.public,
        "matched_strata": int(np.count_nonzero(both)),
        "unmatched": unmatched_rows(strata, estimand.value),
        "max_weight": float(claim.weight),
    }


def nothing_matched() -> CounterveilError:
    """Return CV-S081."""
    return refusal("CV-S081")


_ARMS = ("treated", "control")
_MEANS, _VARIANCES = (tuple(f"{what} of {arm}" for arm in _ARMS) for what in ("mean", "variance"))


def stratified_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of both arms' means over strata; strata, treatments and counts are public."""
    settings = question.settings or Stratified()
    strata, cuts = read_strata(session, settings).free()
    word = question.estimand.value
    width = session.study.outcome_bounds.width
    limit = settings.exact_limit
    weights, total = stratum_weights(strata, word, limit), weight_sum(strata, word, limit)
    if total == 0:
        raise nothing_matched()
    claims = [
        StrataOutcome.of_arm(width, weights, counts, total, strata.rows)
        for counts in (strata.treated, strata.control)
    ]
    sizes = arm_sizes(strata, weights, float(total))
    part = variance_part(question.budget, question.mechanism)
    split = Plan.split(question.budget, {"effect": 1 - part, "variance": part}, question.mechanism)
    plan = in_parallel(split, {"effect": _MEANS, "variance": _VARIANCES})

    def compute(gate: Gate) -> Facts:
        unit = width / RANGE_STEPS
        values = [one * unit / total for one in mean_sums(strata, word, limit)]
        variances = [one * unit**2 / total**2 for one in arm_variances(strata, word, limit)]
        found = []
        for place, claim in enumerate(claims):
            mean = gate.release(_MEANS[place], values[place], claim.effect)
            variance = gate.release(_VARIANCES[place], variances[place], claim.variance)
            # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
            cap = float(claim.weight * width**2 / (2 * total))
            found.append((float(mean), Uncertainty(mean.noise, float(variance), cap, variance.noise)))
        details = strata_details(strata, question.estimand, max(claims, key=lambda one: one.weight)) | cuts
        details |= {"budget": split.shares, "mechanism": question.mechanism}
        low, high = map(float, session.study.outcome_range)
        (one, first), (other, second) = found
        means = IndependentArmMeans((low + one, low + other), (first, second), (low, high), sizes)
        releases = []
        for place, claim in enumerate(claims):
            releases += [
                (f"{_MEANS[place]} over strata", f"sensitivity {float(claim.effect):.6g}"),
                (f"its {_VARIANCES[place]}", f"sensitivity {float(claim.variance):.6g}"),
            ]
        return Facts(
            measure=question.measure,
            numbers=means,
            method="means of both arms over strata",
            releases=tuple(releases),
            not_covered=caveats(session.study, StrataLeftOut(question.estimand, float(limit))),
            details=details | {"mean_treated": means.values[0], "mean_control": means.values[1]},
        )

    return answer_request(
        MeasureResult, session, question, plan, compute, pages=(PAGE, "session/parallel.proof.md")
    )


# A trial whose people come in clusters, where whole records are private: noisy counts and sums by cluster and arm.
#
# A person is in one cluster, so that noise on every cluster's count and sum costs no more than noise on one. The
# effect and its clustered standard error are then made of released numbers alone, and the standard error holds the
# noise: it is drawn cluster by cluster, like what clusters have in common.
#
# Lineage: ratio means with a variance between clusters (Liang and Zeger 1986), t intervals for few clusters.


# Proof: cluster_cells.proof.md


CLUSTER_PAGE = "rows/strata/cluster_cells.proof.md"
# The part of the budget for the counts: sums are centred on the middle of the range, where counts matter little.
_FOR_COUNTS = Fraction(1, 3)
# The most noise of an arm's number of people, as a part of it, that the comparison of means is trusted with: as
# expected before anything is spent, and as released.
_EXPECTED_NOISE, _RELEASED_NOISE = 0.15, 0.25
# Fewest clusters of an arm.
_FEWEST = 3
# A public guess of the correlation within clusters and of an outcome's standard deviation, for degrees of freedom.
_CORRELATION, _TYPICAL_SD = 0.3, 1 / 6


@dataclass(frozen=True, slots=True)
class ClusterArms:
    """Which cells of cluster times arm there are; `cluster` and `arm` (0 or 1) name them in their public order."""

    cluster: NDArray[np.intp]
    arm: NDArray[np.intp]
    clusters: int

    @classmethod
    def of(cls, table: Table) -> ClusterArms:
        """Return the cells: the arm that each cluster was assigned to, or both arms of each."""
        assert table.cluster is not None
        assert table.study.cluster is not None
        count = int(table.cluster.max()) + 1
        if not table.study.cluster.assigned:
            return cls(np.repeat(np.arange(count), 2), np.tile([0, 1], count), count)
        arm = np.zeros(count, dtype=np.intp)
        arm[table.cluster] = table.treated
        return cls(np.arange(count), arm, count)

    @property
    def by_arm(self) -> tuple[int, int]:
        """The number of clusters in the control arm and in the treated one."""
        treated = int(self.arm.sum())
        return len(self.arm) - treated, treated

    def totals(
        self, table: Table, group: NDArray[np.int64] | int = 0, groups: int = 1
    ) -> tuple[list[int], list[int]]:
        """Return each cell's number of rows and its sum of outcomes less the middle of their range, in steps.

        With several `groups` these are the cells of the first group, then those of the next.
        """
        pairs = 2 * self.clusters
        cell = pairs * group + 2 * table.cluster + table.treated  # type: ignore[operator]  # it has clusters
        own = (pairs * np.arange(groups)[:, None] + 2 * self.cluster + self.arm).ravel()
        centred = (table.outcome - OUTCOME_STEPS // 2).astype(np.float64)
        # Doubles add steps below 2**24 exactly, up to 2**29 rows.
        counts, sums = (np.bincount(cell, values, groups * pairs)[own] for values in (None, centred))
        return [int(count) for count in counts], [int(total) for total in sums]


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """What is released of a trial of public clusters, in one group or in several, and under which plan."""

    question: Question
    plan: Plan
    cells: ClusterArms
    groups: int
    sensitivity: ClusterCells
    words: tuple[tuple[str, str], ...]
    details: dict[str, float | str]

    def release(
        self, gate: Gate, table: Table, group: NDArray[np.int64] | int = 0
    ) -> list[ClusterDifference]:
        """Return the difference of the arms in every group, from released counts and centred sums."""
        counts, sums = self.cells.totals(table, group, self.groups)
        bounds = self.sensitivity
        unit = self.sensitivity.width / OUTCOME_STEPS
        people = gate.release_cells("counts", [Fraction(count) for count in counts], bounds.counts)
        totals = gate.release_cells("sums", [total * unit for total in sums], bounds.sums)
        noises = (people.variance, totals.variance)
        by_group = zip(
            np.split(people.floats(), self.groups), np.split(totals.floats(), self.groups), strict=True
        )
        return [compared(self.cells, *own, noises, float(bounds.width)) for own in by_group]


def cluster_sums(session: BaseSession, question: Question, groups: int = 1) -> ClusterSums:
    """Return what is to be released, or refuse it; reads public numbers and the list of clusters."""
    study = session.study
    cluster = session.study.cluster
    rows = session.table.rows
    assert cluster is not None
    if question.open_noise:
        # A pure guarantee is one for every delta, and many numbers released together have Laplace noise.
        question = replace(question, mechanism="laplace")
    cells = ClusterArms.of(session.table)
    width = study.outcome_bounds.width
    plan = Plan.split(
        question.budget,
        {"counts": _FOR_COUNTS, "sums": 1 - _FOR_COUNTS},
        question.mechanism,
        dict.fromkeys(("counts", "sums"), Kind.CELLS),
    )
    _refuse_small(study, cells, rows // groups, float(plan.amount("counts", Kind.CELLS)))
    by = "by cluster and arm" if groups == 1 else "by group, cluster and arm"
    words = (
        (f"number of people {by}", "sensitivity 2"),
        (f"sums of outcomes {by}", f"sensitivity {float(width):.6g}"),
    )
    control, treated = cells.by_arm
    details: dict[str, float | str] = {"rows": rows, "clusters": cells.clusters, "mechanism": "laplace"}
    if cluster.assigned:
        details |= {"clusters_treated": treated, "clusters_control": control}
    return ClusterSums(question, plan, cells, groups, ClusterCells(width), words, details)


def clustered_trial(session: BaseSession, question: Question) -> Result:
    """Return the private effect in a trial of clusters; everything about a person is private, their cluster too."""
    settings = question.settings or Trial()
    study = session.study
    cluster = session.study.cluster
    assert cluster is not None
    if settings.adjustment == "covariates":
        raise _not_adjusted(study)
    sums = cluster_sums(session, question)

    def compute(gate: Gate) -> Facts:
        (found,) = sums.release(gate, session.table)
        by = f"standard error clustered by {cluster.column}, {sums.cells.clusters} clusters"
        return Facts(
            estimate=found.effect,
            uncertainty=found.uncertainty,
            method=f"comparison of means; {by}",
            releases=sums.words,
            not_covered=(*causal_caveats(study, question.estimand), Caveat.CLUSTERS_DEPEND),
            details=sums.details
            | {"share_treated": found.share, "degrees_of_freedom": found.uncertainty.freedom},
        )

    asked = (Result, session, sums.question, sums.plan, compute)
    return answer_request(*asked, pages=CLUSTER_PAGE, mechanisms=("laplace",))


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """The difference of the arms' means, with what is known of its error; made of released numbers."""

    effect: float
    uncertainty: ClusterUncertainty
    share: float  # of the people, in the treated arm
    people: float
    people_sd: float


def compared(
    cells: ClusterArms, people: Floats, totals: Floats, noises: tuple[float, float], width: float
) -> ClusterDifference:
    """Return the difference in means and its standard error by cluster, from noisy counts and centred sums."""
    several = np.array(cells.by_arm, dtype=np.float64)
    size = np.bincount(cells.arm, people, 2)
    least = sqrt(noises[0]) * np.sqrt(several) / _RELEASED_NOISE
    # An arm whose number of people is lost in its noise has no mean: the interval is then the whole range.
    lost = bool((size < least).any())
    size = np.maximum(size, least)
    mean = np.bincount(cells.arm, totals, 2) / size
    sign = np.where(cells.arm == 1, 1.0, -1.0)
    factor = (np.sqrt(several / (several - 1)) / size)[cells.arm]
    left = np.bincount(cells.cluster, sign * factor * (totals - mean[cells.arm] * people), cells.clusters)
    noise = float((factor**2 * (noises[1] + mean[cells.arm] ** 2 * noises[0])).sum())
    variance = max(float(left @ left) - noise, 0.0)
    freedom = _freedom(cells, people, factor, noises[1] / (width * _TYPICAL_SD) ** 2)
    effect = float(mean[1] - mean[0])
    # From anywhere in it, so much reaches both ends of the range of effects.
    whole = 2 * width + abs(effect) if lost else 0.0
    known = ClusterUncertainty(
        None,
        variance,
        max(variance, width**2),
        extra=width**2 if lost else noise,
        bias=whole,
        freedom=freedom,
    )
    people_sd = sqrt(noises[0] * len(people))
    return ClusterDifference(effect, known, float(size[1] / size.sum()), float(people.sum()), people_sd)


def _freedom(cells: ClusterArms, people: Floats, factor: Floats, noise: float) -> float:
    """Return the degrees of freedom (Satterthwaite) that the released counts suggest, at least one.

    `noise` is the variance of a sum's noise beside that of an outcome.
    """
    sizes = np.maximum(people, 0.0)
    own = factor**2 * ((1 - _CORRELATION) * sizes + _CORRELATION * sizes**2 + noise)
    if cells.clusters < len(cells.arm):
        both = np.bincount(cells.cluster, own, cells.clusters)
        return max(float(both.sum() ** 2 / (both @ both)) - 2, 1.0)
    total = np.bincount(cells.arm, own, 2)
    squares = np.bincount(cells.arm, own**2, 2)
    free = np.maximum(total**2 / squares - 1, 1.0)
    return max(float(total.sum() ** 2 / (total**2 / free).sum()), 1.0)


def _refuse_small(study: Study, cells: ClusterArms, rows: int, epsilon: float) -> None:
    """Raise CV-S066 for too few clusters, CV-P681 where noisy counts would say nothing; from public numbers alone."""
    assert study.cluster is not None
    fewest = min(cells.by_arm)
    needed = _FEWEST if study.cluster.assigned else 2 * _FEWEST
    if fewest < needed:
        arms = " in each arm" if study.cluster.assigned else ""
        raise too_few_clusters(study.cluster.column, f"at least {needed} clusters{arms}", f"{fewest}")
    arm = rows * fewest / len(cells.arm)
    noise = sqrt(8.0 * fewest) / epsilon / arm
    if noise > _EXPECTED_NOISE:
        raise refusal("CV-P681", noise=noise, rows=rows, clusters=cells.clusters)


def _not_adjusted(study: Study) -> CounterveilError:
    assert study.cluster is not None
    return refusal("CV-S026b", cluster=study.cluster.column)

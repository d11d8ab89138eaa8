"""The benchmark studies, attached, with everything public about them computed once; methods that are compared.

The outcome's range is the observed range widened by 2% at each end and treated as public (LaLonde: 60.308
thousand dollars). The paper names neither its realisation of IHDP nor the seed of Synth: realisation 6 is the first
that no setting of this library was tuned on, and seed 55 the first after those with 489 treated people, as printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.datasets import Dataset, acic2016, ihdp, lalonde, synth
from counterveil.estimators.linear.budget_split import effect_plan
from counterveil.estimators.linear.effect import effect_of
from counterveil.estimators.linear.kernels.balancing import (
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.estimators.linear.kernels.pairing import consecutive_pairs
from counterveil.estimators.linear.linear_estimator import LinearEffect
from counterveil.estimators.linear.matching_design import Scored, match, published_limits, scored
from counterveil.estimators.linear.spline_score import ScoredRows
from counterveil.estimators.linear.weighting_design import TOLERANCE, features_of
from counterveil.privacy import Budget, Unit
from counterveil.published import matching as published
from counterveil.published.asking import EffectForm, PublishedQuestion
from counterveil.published.matching import PaperNumbers
from counterveil.results.result import Result
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import BaseSession, Gate, Kind, Plan, SeededNoise
from counterveil.settings import Matching, Weighting
from counterveil_lab.reproduce.rivals import encoding
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Records
from counterveil_lab.reproduce.rivals.environment import unavailable
from counterveil_lab.reproduce.rivals.ours import KAPPA

STUDIES = {"IHDP": ("ihdp", 6), "LaLonde": ("lalonde", 0), "ACIC": ("acic", 1), "Synth": ("synth", 55)}
_MARGIN = 0.02
_LALONDE_RANGE = (0.0, 60.308)


@dataclass(frozen=True)
class Benchmark:
    """A table, its scores for matching, its outcomes on [0, 1], and in the same unit its effect (nan if unknown)."""

    table: Table
    design: Scored
    outcome: NDArray[np.float64]
    effect: float
    _matched: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    def matched_with(self, neighbours: int) -> float:
        """Return the effect by matching without privacy and without a limit on reuse."""
        if neighbours not in self._matched:
            found = match(self.design, neighbours, (None, None), "ATE").matching.coefficients
            self._matched[neighbours] = float(found @ self.outcome)
        return self._matched[neighbours]

    @property
    def width(self) -> float:
        """How far outcomes can be apart."""
        low, high = self.table.study.outcome_range
        return float(high - low)


def dataset(family: str, number: int) -> Dataset:
    """Return a data set with the range of its outcomes that is taken for public."""
    makers: dict[str, Callable[[int], Dataset]] = {
        "ihdp": ihdp,
        "acic": acic2016,
        "synth": synth,
        "lalonde": lambda _: lalonde(),
    }
    data = makers[family](number)
    y = np.asarray(data.frame[data.study.outcome], dtype=float)
    margin = _MARGIN * float(y.max() - y.min())
    bounds = _LALONDE_RANGE if family == "lalonde" else (float(y.min()) - margin, float(y.max()) + margin)
    exact = (Fraction(bounds[0]), Fraction(bounds[1]))
    return replace(data, study=data.study._changed(outcome_range=exact))


@cache
def benchmark(family: str, number: int) -> Benchmark:
    """Return a data set attached and scored."""
    data = dataset(family, number)
    table = Table.attach(data.frame, data.study)
    low, high = (float(bound) for bound in table.study.outcome_range)
    y = np.asarray(data.frame[data.study.outcome], dtype=float)
    outcome = (np.clip(y, low, high) - low) / (high - low)
    effect = float("nan") if data.true_effect is None else data.true_effect / (high - low)
    return Benchmark(table, scored(PublicRows(table, Unit.OUTCOME)), outcome, effect)


def study_named(name: str) -> Benchmark:
    """Return one of the paper's four studies."""
    return benchmark(*STUDIES[name])


COMPETITORS = ("IPW-PP", "SmoothDPM", "DPCI", "PrivSyn", "AIM")
# The paper does not print the delta of its competitors.
DELTA = 1e-5


@cache
def records_of(name: str) -> Records:
    """Return one of the paper's studies as records, labels as codes."""
    study = study_named(name)
    low, high = (float(bound) for bound in study.table.study.outcome_range)
    return encoding.records_of(study.table, low + study.outcome * (high - low))


@cache
def rival_draws(method: str, data: str, epsilon: float, draws: int, seed: int) -> NDArray[np.float64]:
    """Return draws of a competitor, in units of the outcome's range; they are kept for other numbers of neighbours."""
    records, rival = records_of(data), RIVALS[method]
    budget = encoding.Budget(epsilon, 0.0 if rival.delta == "none" else DELTA)
    values = [rival.estimate(records, budget, 1000 * seed + draw).value for draw in range(draws)]
    return np.array(values) / records.width


Floats = NDArray[np.float64]


def label_draws(
    study: Benchmark, epsilon: float, settings: Matching, draws: int, seed: int
) -> tuple[Floats, float]:
    """Return draws of PrivATE at label level as printed, and the epsilon that they really lose."""
    limits = published_limits(study.design, settings, epsilon, feasible=False)
    found = match(study.design, settings.neighbours, limits, "ATE").matching
    form, claim = linear_form(found.coefficients), Budget(epsilon)
    noise = published.published_noise(study.table, form, limits, settings.neighbours)
    loss = noise.loss(claim.epsilon)
    plan = Plan(Budget(max(loss, claim.epsilon)), "laplace", (("effect", loss),))
    source = SeededNoise(seed)
    values = [
        float(published.release_estimate(Gate(plan, source), study.table, form, noise, claim))
        for _ in range(draws)
    ]
    return np.array(values) / study.width, float(loss)


@dataclass(frozen=True)
class Sampled:
    """What the published form at sample level computes before its noise: features in [0, 1] and fitted weights."""

    table: Table
    box: Floats
    fitted: Floats
    penalty: float

    @classmethod
    def of(cls, table: Table, penalty: float) -> Sampled:
        """Return what a table gives."""
        features = UnitFeatures.of(table.study)
        box = features.values(table)
        box += features.middle
        return cls(table, box, published.fit_without_intercept(box, table.treated, penalty), penalty)

    def draw(
        self, epsilon: float, settings: PaperNumbers, source: SeededNoise, limit: int | None = None
    ) -> tuple[float, float]:
        """Return one draw of PrivATE at sample level in units of the outcome, and the epsilon that it loses at least.

        It is as printed, or under a fixed limit.
        """
        kinds = {"scores": Kind.ROWS, "treatments": Kind.RESPONSE, "weights": Kind.CELLS}
        plan = Plan.split(Budget(epsilon), settings.shares(), "laplace", kinds)
        gate = Gate(plan, source)
        scores, responses = published.release_scores(gate, self.table, self.box, self.fitted, self.penalty)
        matched = published.match_records(scores, responses, settings, float(plan.amount("effect")), limit)
        lost = float(epsilon) + (matched.excess - 1) * float(plan.amount("effect"))
        return float(published.release_sums(gate, plan, self.table, matched).value), lost


_sampled = cache(Sampled.of)


def sample_draws(
    study: Benchmark,
    epsilon: float,
    settings: PaperNumbers,
    draws: int,
    seed: int,
    limit: int | None = None,
) -> tuple[Floats, float]:
    """Return draws of PrivATE at sample level, as printed or under a fixed limit, and the largest epsilon lost."""
    data, source = _sampled(study.table, settings.penalty), SeededNoise(seed)
    found = np.array([data.draw(epsilon, settings, source, limit) for _ in range(draws)])
    return found[:, 0] / study.width, float(found[:, 1].max())


Asked = Callable[[Table, float, int, SeededNoise], float]


def _outcome(method: str) -> Asked:
    def asked(table: Table, epsilon: float, _: int, noise: SeededNoise) -> float:
        found = cv.ate(table, table.study, protects="outcome", method=method, epsilon=epsilon, noise=noise)
        return found.estimate

    return asked


def _weighted(session: BaseSession, question: PublishedQuestion, neighbours: int) -> Result:
    """Return the effect by weights close to matching, as the paper's errors are, all of epsilon spent on it."""
    public = PublicData(session, Unit.OUTCOME)
    rows = public.columns
    design = scored(rows)
    balanced = Weighting(features=("covariates", "squares", "products", "score"))
    features, *_ = features_of(rows, ScoredRows(rows.treated, design.score), balanced)
    supposed = WeightSettings(tolerance=TOLERANCE)
    found = balance_weights(
        features,
        rows.treated,
        noise_variance=effect_plan(question, Fraction(0)).noise("effect", Fraction(1)).variance,
        target=None,
        reference=match(design, neighbours, (None, None), "ATE").matching.coefficients,
        settings=supposed,
        rows=arm_rows(features, rows.treated, precision(supposed, rows.rows)),
    )
    pairs = consecutive_pairs(design.by_score.by_score(arm) for arm in (False, True))
    effect = LinearEffect("weighting close to matching", found.values, pairs, (), share=Fraction(0))
    return effect_of(public, question, effect).run(session)


def _close(table: Table, epsilon: float, neighbours: int, noise: SeededNoise) -> float:
    run = partial(_weighted, neighbours=neighbours)
    form = EffectForm("close_to_matching", Unit.OUTCOME, None, run, printed=False)
    return form(table, table.study, epsilon=epsilon, noise=noise).estimate


def _record(table: Table, epsilon: float, _: int, noise: SeededNoise) -> float:
    bounded = cv.settings.Auto(kappa=KAPPA)
    found = cv.ate(table, table.study, protects="record", epsilon=epsilon, settings=bounded, noise=noise)
    return found.estimate


# Our methods by their names in tables, as analysts ask for them; delta is zero, as for PrivATE.
OURS: dict[str, Asked] = {
    "ours, outcome": _close,
    "ours, outcome (auto)": _outcome("auto"),
    "ours, record": _record,
    "difference in means": _outcome("difference_in_means"),
}


def our_draws(
    method: str, study: Benchmark, epsilon: float, neighbours: int, draws: int, seed: int
) -> Floats:
    """Return draws of one of our methods."""
    source = SeededNoise(seed)
    values = [OURS[method](study.table, epsilon, neighbours, source) for _ in range(draws)]
    return np.array(values) / study.width


LABEL, SAMPLE, ZERO, PLAIN = "PrivATE (label)", "PrivATE (sample)", "zero", "without privacy"
COMPARED = (LABEL, SAMPLE, *COMPETITORS, *OURS, ZERO, PLAIN)
DRAWS, QUICK_DRAWS = 10, 4
# Synthesis takes seconds to minutes: few draws, and AIM on the smallest study at one budget alone.
SYNTHESES, AIM_STUDY, AIM_EPSILON = 3, "LaLonde", 1.0


def repetitions(method: str, data: str, epsilon: float, quick: bool) -> int:
    """Return how often a method is drawn for one point of Figure 2; none where it takes too long."""
    if method in (ZERO, PLAIN):
        return 1
    if method == "AIM":
        affordable = data == AIM_STUDY and epsilon == AIM_EPSILON and not quick
        return int(affordable and unavailable(RIVALS[method]) is None)
    if method == "PrivSyn":
        return 1 if quick else SYNTHESES
    return QUICK_DRAWS if quick else DRAWS


def estimates(method: str, data: str, epsilon: float, neighbours: int, draws: int, seed: int) -> Floats:
    """Return draws of a method, in units of the outcome's range."""
    study = study_named(data)
    if method == LABEL:
        return label_draws(study, epsilon, Matching(neighbours=neighbours), draws, seed)[0]
    if method == SAMPLE:
        return sample_draws(study, epsilon, PaperNumbers(neighbours=neighbours), draws, seed)[0]
    if method == ZERO:
        return np.zeros(draws)
    if method == PLAIN:
        return np.full(draws, study.matched_with(neighbours))
    if method in COMPETITORS:
        return rival_draws(method, data, epsilon, draws, seed)
    return our_draws(method, study, epsilon, neighbours, draws, seed)


COMPARISON = "figure-2"
OWN = (LABEL, SAMPLE)
# The mean of ten absolute errors is known to a fifth or so: less than this is no difference.
CLEAR = 1.25
# An error of this and more says no more than the answer zero.
USELESS = 1.0


def wide(table: pd.DataFrame, column: str = "error") -> pd.DataFrame:
    """Return errors by study and budget, one column for each method; a method that was not run has gaps."""
    found = table.pivot_table(
        index=["neighbours", "data", "epsilon"], columns="method", values=column, sort=False
    )
    return found.reset_index()


def rivals_in(found: pd.DataFrame) -> list[str]:
    """Return the competitors that were run; not AIM, which has one synthesis at one point."""
    return [name for name in COMPETITORS if name in found.columns and name != "AIM"]


def at(found: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """Return the lines of one budget, the nearest that was run."""
    nearest = min(set(found["epsilon"]), key=lambda value: abs(value - epsilon))
    return found[found["epsilon"] == nearest]


def listed(part: pd.DataFrame, method: str) -> str:
    """Return a method's errors by study in words."""
    by_study = dict(zip(part["data"], part[method], strict=True))
    return ", ".join(f"{name} {by_study[name]:.2g}" for name in STUDIES if name in by_study)


def falls(found: pd.DataFrame, method: str) -> list[bool]:
    """Return for every study whether the error at the largest budget is below that at the smallest."""
    kept = [
        own.dropna(subset=[method]).sort_values("epsilon") for _, own in found.groupby(["neighbours", "data"])
    ]
    return [bool(own[method].iloc[-1] < own[method].iloc[0]) for own in kept if len(own) > 1]


def geometric(values: pd.Series[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.log(values).mean()))

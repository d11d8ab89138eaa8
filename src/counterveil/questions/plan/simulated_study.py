"""Made-up people of a study: from its declarations and from assumptions alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr, ndtri

from counterveil.data import Binary, Categories, Range, Study, columns_as_written
from counterveil.data.outcomes import Before, earlier_name
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.questions.plan.assumptions import Assumptions

# A range is filled by a bell of this many standard deviations, cut off at its ends.
_BELL = 6
# Variance of the logistic law, which is the part of log-odds that covariates do not explain.
_LOGISTIC = pi**2 / 3
# No arm is left with fewer people.
_FEWEST = 2
# How far what moves treatment moves outcomes as well, as a correlation of their slopes.
_ALIGNED = 0.5
# Points of a table of quantiles.
_QUANTILES = 512


@dataclass(frozen=True, slots=True)
class People:
    """A table of people who do not exist, and what treatment does to them."""

    frame: dict[str, NDArray[Any]]
    columns: Floats  # covariates, standardised, a column each
    treated: NDArray[np.bool_]
    outcome: Floats
    gain: Floats  # what treatment adds to each outcome, which stays inside its range
    chance: Floats  # of treatment
    others: Mapping[str, tuple[Floats, Floats]] = field(
        default_factory=dict
    )  # further outcomes and their gains

    def effect(self, estimand: Estimand, outcome: str | None = None) -> float:
        """Return the mean effect on everybody, on those treated or on those not, or the overlap-weighted one."""
        return self._mean(self.others.get(outcome or "", (self.outcome, self.gain))[1], estimand)

    def means(self, estimand: Estimand, outcome: str | None = None) -> tuple[float, float]:
        """Return mean outcomes with treatment and without, of the same people."""
        seen, gain = self.others.get(outcome or "", (self.outcome, self.gain))
        without = self._mean(seen - gain * self.treated, estimand)
        return without + self._mean(gain, estimand), without

    def _mean(self, values: Floats, estimand: Estimand) -> float:
        if estimand is Estimand.ATE:
            return float(values.mean())
        if estimand is Estimand.ATO:
            return float(np.average(values, weights=self.chance * (1 - self.chance)))
        return float(values[self.treated if estimand is Estimand.ATT else ~self.treated].mean())


def simulate(study: Study, rows: int, assumed: Assumptions, generator: np.random.Generator) -> People:
    """Return `rows` people.

    Covariates go together as assumed. What moves outcomes and what moves treatment are sums of all standardised
    covariates with slopes that are drawn anew every time, and that are alike by half.
    """
    return simulate_around(study, rows, assumed, generator)[0]


def simulate_around(
    study: Study, rows: int, assumed: Assumptions, generator: np.random.Generator
) -> tuple[People, Floats, Floats]:
    """Return people, what of their covariates moves outcomes (standardised), and the luck of their outcomes."""
    coded = _covariates(study, rows, assumed, generator)
    columns = np.column_stack([_standard(values) for values in coded.values()] or [np.empty((rows, 0))])
    slopes = generator.standard_normal((2, columns.shape[1]))
    index = _standard(columns @ slopes[0])
    lean = _standard(columns @ (_ALIGNED * slopes[0] + sqrt(1 - _ALIGNED**2) * slopes[1]))
    treated, chance = assigned(study, assumed.confounding * lean, assumed.share, generator)
    luck = luck_of(assumed, rows, generator)
    outcomes = both_outcomes(study.outcome_bounds.floats(), index, assumed, luck)
    return people_of(study, coded, columns, treated, chance, outcomes, generator), index, luck


def people_of(
    study: Study,
    coded: dict[str, Floats],
    columns: Floats,
    treated: NDArray[np.bool_],
    chance: Floats,
    outcomes: tuple[Floats, Floats],
    generator: np.random.Generator,
) -> People:
    """Return people with their covariates as numbers and codes, and both outcomes of everybody."""
    without, with_treatment = outcomes
    outcome = np.where(treated, with_treatment, without)
    frame: dict[str, NDArray[Any]] = dict(columns_as_written(coded, study))
    frame[study.treatment] = _arms(study, treated, generator)
    frame[study.outcome] = outcome
    # One row a person: what several become is what a row stands for here.
    frame |= {} if study.person is None else dict.fromkeys(study.person.columns, np.arange(len(outcome)))
    if study.before is not None:
        frame |= _compared(study, study.before, outcome)
        frame = frame if study.before.time is None else _in_periods(study, study.before, frame)
    return People(frame, columns, treated, outcome, with_treatment - without, chance)


def _compared(study: Study, before: Before, change: Floats) -> dict[str, NDArray[Any]]:
    """Return measurements before and after that differ by everyone's change, near the middle of what was before."""
    (low, high), (least, most) = (tuple(map(float, ends)) for ends in (before.outcome_range, before.range))
    earlier = np.clip((least + most) / 2, np.maximum(least, low - change), np.minimum(most, high - change))
    names = before.columns or (earlier_name(study.outcome),)
    return {study.outcome: earlier + change} | dict.fromkeys(names, earlier)


def _in_periods(study: Study, before: Before, frame: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return one row for every person and period, with everyone's measurement before or after in it."""
    assert before.time is not None
    earlier, labels = frame.pop(earlier_name(study.outcome)), before.labels(study.outcome)
    outcomes = [earlier] * before.earlier + [frame[study.outcome]] * len(before.after)
    found = {name: np.tile(values, len(labels)) for name, values in frame.items()}
    times = np.empty(len(labels), dtype=object)
    times[:] = labels
    if study.person is not None and study.person.rules[study.treatment] == "ever":
        # Nobody is treated before treatment starts.
        found[study.treatment][: before.earlier * len(earlier)] = (
            0 if study.control is None else study.control
        )
    return found | {study.outcome: np.concatenate(outcomes), before.time: np.repeat(times, len(earlier))}


def _arms(study: Study, treated: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[Any]:
    """Return everybody's arm; those treated are in one of the arms beside the reference, equally often."""
    if study.arms is None:
        control = 0 if study.control is None else study.control
        return np.array([control, study.treated], dtype=object)[treated.astype(np.intp)]
    labels = np.empty(len(study.treatment_labels), dtype=object)
    labels[:] = study.treatment_labels
    codes = np.where(treated, generator.integers(1, len(labels), len(treated)), 0)
    # Whoever is needed for two people in each arm.
    codes[: _FEWEST * len(labels)] = np.repeat(np.arange(len(labels)), _FEWEST)[: len(codes)]
    return np.asarray(labels[codes])


# Covariates that go together: a normal for each, whose ranks become the values that were declared.


def _covariates(
    study: Study, rows: int, assumed: Assumptions, generator: np.random.Generator
) -> dict[str, Floats]:
    normals = generator.standard_normal((rows, len(study.covariates))) @ _root(study, assumed).T
    return {
        name: _covariate(domain, normals[:, place], assumed.covariates.get(name))
        for place, (name, domain) in enumerate(study.covariates.items())
    }


def _root(study: Study, assumed: Assumptions) -> Floats:
    """Return a root of the matrix of correlations."""
    size = len(study.covariates)
    if isinstance(assumed.correlation, int | float):
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        matrix = np.power(float(assumed.correlation), apart) if assumed.correlation else np.eye(size)
    else:
        matrix = np.array(assumed.correlation, dtype=np.float64)
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root / np.maximum(np.sqrt((root**2).sum(axis=1, keepdims=True)), 1e-12))


def _covariate(domain: Range | Binary | Categories, normal: Floats, known: list[float] | None) -> Floats:
    """Return values of a range, or codes of labels, by the ranks of a normal number."""
    if isinstance(domain, Range):
        low, high = domain.floats()
        if known is None:
            return np.clip((low + high) / 2 + (high - low) / _BELL * normal, low, high)
        width = high - low
        return np.asarray(low + width * _in_range(normal, (known[0] - low) / width, known[1] / width))
    shares = np.full(len(domain.labels), 1 / len(domain.labels)) if known is None else np.array(known)
    cuts = ndtri(np.clip(np.cumsum(shares)[:-1], 0.0, 1.0))
    return np.searchsorted(cuts, normal).astype(np.float64)


def _in_range(normal: Floats, mean: float, sd: float) -> Floats:
    """Return numbers in [0, 1] of this mean and standard deviation: a beta law, or its ends where it is wider."""
    most = mean * (1 - mean)
    if sd <= 0 or most <= 0:
        return np.full(len(normal), mean)
    if sd**2 >= 0.98 * most:
        return np.asarray(normal > ndtri(1 - mean), dtype=np.float64)
    size = most / sd**2 - 1
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    table = betaincinv(mean * size, (1 - mean) * size, levels)
    return np.asarray(np.interp(ndtr(normal), levels, table))


def _standard(values: Floats) -> Floats:
    sd = float(values.std())
    return np.zeros(len(values)) if sd == 0 else (values - values.mean()) / sd


def assigned(
    study: Study, lean: Floats, share: float, generator: np.random.Generator
) -> tuple[NDArray[np.bool_], Floats]:
    """Return who is treated and everybody's chance of it, given how far their log-odds differ."""
    rows = len(lean)
    if study.randomised:
        count = min(max(round(rows * share), _FEWEST), rows - _FEWEST)
        return generator.permutation(rows) < count, np.full(rows, count / rows)
    base = _level(lambda at: float(expit(at + lean).mean()), share)
    chance = np.asarray(expit(base + lean))
    found: NDArray[np.bool_] = generator.random(rows) < chance
    # Whoever is needed for two people in each arm: covariates play no part in so few.
    found[:_FEWEST], found[_FEWEST : 2 * _FEWEST] = True, False
    return found, chance


def luck_of(assumed: Assumptions, rows: int, generator: np.random.Generator) -> Floats:
    """Return the part of outcomes that covariates do not explain: normal, or even in [0, 1] for binary ones."""
    return generator.random(rows) if assumed.binary else generator.standard_normal(rows)


def both_outcomes(
    ends: tuple[float, float], index: Floats, assumed: Assumptions, luck: Floats
) -> tuple[Floats, Floats]:
    """Return everybody's outcome without and with treatment, inside the declared range."""
    low, high = ends
    if not assumed.binary:
        own = sqrt(assumed.explained) * index + sqrt(1 - assumed.explained) * luck
        without = assumed.mean + assumed.sd * own
        return np.clip(without, low, high), np.clip(without + assumed.effect, low, high)
    # Where covariates explain all, one tenth of a percent is left to chance so that log-odds stay finite.
    share = min(assumed.explained, 0.999)
    lean = sqrt(_LOGISTIC * share / (1 - share)) * index
    answers = []
    for mean in (assumed.mean, assumed.mean + assumed.effect):
        part = (mean - low) / (high - low)
        base = _level(lambda at: float(expit(at + lean).mean()), part)
        answers.append(np.where(luck < expit(base + lean), high, low))
    return answers[0], answers[1]


def _level(mean_at: Callable[[float], float], share: float) -> float:
    """Return where a rising function of the log-odds reaches a share; the ends are far out."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    if share <= 0 or share >= 1:
        return -1e3 if share <= 0 else 1e3
    odds = log(share / (1 - share))
    return float(brentq(lambda at: mean_at(at) - share, odds - 60, odds + 60))


# The interval that the same simulated people would give without privacy, to compare with.


def half_width(people: People, level: float) -> float:
    """Return half the length of the least-squares interval of the effect, adjusted for all covariates.

    Standard errors are robust to heteroskedasticity.
    """
    rows = len(people.outcome)
    design = np.column_stack([np.ones(rows), people.treated.astype(np.float64), people.columns])
    inverse = np.linalg.pinv(design.T @ design)
    residual = people.outcome - design @ (inverse @ (design.T @ people.outcome))
    lever = design @ inverse[1]
    loss = max(rows - design.shape[1], 1)
    variance = float(np.sum((lever * residual) ** 2)) * rows / loss
    return float(ndtri((1 + level) / 2)) * sqrt(variance)

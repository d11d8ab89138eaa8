"""Made-up people of a study: from its declarations and from assumptions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from counterveil.data import Binary, Categories, Range, Study, columns_as_written
from counterveil.errors import ParameterError, shown
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.settings.ranges import is_number

# What a planner assumes about people nobody has looked at yet.


# Without better knowledge the declared range is taken as six standard deviations wide.
_RANGE_IN_SDS = 6
# Twice the log-odds of a lean: beyond this nearly everybody's arm is certain.
_STRONGEST = 5.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What simulated data are made from; every number is an assumption, none is read off private rows.

    Attributes:
        mean: mean outcome of people who are not treated.
        sd: standard deviation of their outcomes; of no use where outcomes are binary.
        effect: what treatment adds to the mean outcome of everybody.
        explained: share of the variance of outcomes that follows the covariates (of their log-odds' where outcomes
            are binary).
        confounding: standard deviations of the log-odds of being treated that follow the same covariates.
        share: share of people who are treated.
        binary: whether outcomes are one end of their range or the other.
    """

    mean: float
    sd: float
    effect: float
    explained: float
    confounding: float
    share: float
    binary: bool

    @classmethod
    def of(
        cls,
        study: Study,
        mean: float | None = None,
        sd: float | None = None,
        effect: float = 0.0,
        explained: float = 0.0,
        confounding: float = 0.0,
        share: float | None = None,
        binary: bool = False,
    ) -> Assumptions:
        """Return the assumptions of a study, with what is left out taken from its declarations; raises CV-P700."""
        low, high = map(float, study.outcome_range)
        width = high - low
        declared = 0.5 if study.treated_share is None else float(study.treated_share)
        mean = (low + high) / 2 if mean is None else mean
        found = cls(
            mean=_between("mean", mean, low, high),
            sd=_between("sd", width / _RANGE_IN_SDS if sd is None else sd, 0.0, width / 2, open_low=True),
            effect=_between("effect", effect, low - mean, high - mean),
            explained=_between("explained", explained, 0.0, 1.0),
            confounding=_between("confounding", confounding, 0.0, _STRONGEST),
            share=_between(
                "share", declared if share is None else share, 0.0, 1.0, open_low=True, open_high=True
            ),
            binary=bool(binary),
        )
        if found.explained > 0 and not study.covariates:
            raise out_of_range("explained", "0 in a study without covariates", explained)
        if found.confounding > 0 and (study.randomised or not study.covariates):
            raise out_of_range("confounding", "0 in a trial, and where there are no covariates", confounding)
        return found

    def words(self) -> str:
        """Return the assumptions in one sentence."""
        outcomes = "binary, mean" if self.binary else "mean"
        said_sd = "" if self.binary else f", standard deviation {self.sd:.4g}"
        text = (
            f"outcomes without treatment {outcomes} {self.mean:.4g}{said_sd}; effect {self.effect:.4g} on everybody; "
            f"{100 * self.explained:.3g} % of the outcome variance explained by covariates; "
            f"{100 * self.share:.3g} % treated"
        )
        return text + (f"; confounding {self.confounding:.3g}" if self.confounding else "")


def _between(
    name: str, value: Any, low: float, high: float, open_low: bool = False, open_high: bool = False
) -> float:
    wanted = f"a number {'above' if open_low else 'from'} {low:.6g} {'and below' if open_high else 'to'} {high:.6g}"
    if not is_number(value, low, high) or (open_low and value == low) or (open_high and value == high):
        raise out_of_range(name, wanted, value)
    return float(value)


def out_of_range(name: str, expected: str, got: object) -> ParameterError:
    """Return CV-P700."""
    return ParameterError(
        "CV-P700",
        f"{name} cannot be assumed for this study",
        expected=expected,
        got=shown(got),
        fix="take it from what is published about such studies, in the unit of the outcome; never from private rows",
    )


# A range is filled by a bell of this many standard deviations, cut off at its ends.
_BELL = 6
# Variance of the logistic mechanism, which is the part of log-odds that covariates do not explain.
_LOGISTIC = pi**2 / 3
# No arm is left with fewer people.
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class People:
    """A table of people who do not exist, and what treatment does to them."""

    frame: dict[str, NDArray[Any]]
    columns: Floats  # covariates, standardised, a column each
    treated: NDArray[np.bool_]
    outcome: Floats
    gain: Floats  # what treatment adds to each outcome, which stays inside its range
    chance: Floats  # of treatment

    def effect(self, estimand: Estimand) -> float:
        """Return the mean effect on everybody, on those treated or on those not, or the overlap-weighted one."""
        if estimand is Estimand.ATE:
            return float(self.gain.mean())
        if estimand is Estimand.ATO:
            return float(np.average(self.gain, weights=self.chance * (1 - self.chance)))
        return float(self.gain[self.treated if estimand is Estimand.ATT else ~self.treated].mean())


def simulate(study: Study, rows: int, assumed: Assumptions, generator: np.random.Generator) -> People:
    """Return `rows` people.

    One index, the sum of all standardised covariates, moves outcomes and, where there is confounding, treatment: the
    case that harms an estimate most.
    """
    coded = {name: _covariate(domain, rows, generator) for name, domain in study.covariates.items()}
    columns = np.column_stack([_standard(values) for values in coded.values()] or [np.empty((rows, 0))])
    index = _standard(columns.sum(axis=1))
    treated, chance = _treated(study, index, assumed, generator)
    without, with_treatment = _outcomes(study, index, assumed, generator)
    outcome = np.where(treated, with_treatment, without)
    frame: dict[str, NDArray[Any]] = dict(columns_as_written(coded, study))
    control = 0 if study.control is None else study.control
    frame[study.treatment] = np.array([control, study.treated], dtype=object)[treated.astype(np.intp)]
    frame[study.outcome] = outcome
    return People(frame, columns, treated, outcome, with_treatment - without, chance)


def _covariate(domain: Range | Binary | Categories, rows: int, generator: np.random.Generator) -> Floats:
    """Return values of a range, or codes of labels that are all equally frequent."""
    if isinstance(domain, Range):
        low, high = domain.floats()
        bell = (low + high) / 2 + (high - low) / _BELL * generator.standard_normal(rows)
        return np.clip(bell, low, high)
    return generator.integers(0, len(domain.labels), rows).astype(np.float64)


def _standard(values: Floats) -> Floats:
    sd = float(values.std())
    return np.zeros(len(values)) if sd == 0 else (values - values.mean()) / sd


def _treated(
    study: Study, index: Floats, assumed: Assumptions, generator: np.random.Generator
) -> tuple[NDArray[np.bool_], Floats]:
    """Return who is treated, and everybody's chance of it."""
    rows = len(index)
    if study.randomised:
        count = min(max(round(rows * assumed.share), _FEWEST), rows - _FEWEST)
        return generator.permutation(rows) < count, np.full(rows, count / rows)
    lean = assumed.confounding * index
    base = _level(lambda at: float(expit(at + lean).mean()), assumed.share)
    chance = np.asarray(expit(base + lean))
    found: NDArray[np.bool_] = generator.random(rows) < chance
    # Whoever is needed for two people in each arm: the index plays no part in so few.
    found[:_FEWEST], found[_FEWEST : 2 * _FEWEST] = True, False
    return found, chance


def _outcomes(
    study: Study, index: Floats, assumed: Assumptions, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return everybody's outcome without and with treatment, inside the declared range."""
    low, high = study.outcome_bounds.floats()
    if not assumed.binary:
        luck = generator.standard_normal(len(index))
        own = sqrt(assumed.explained) * index + sqrt(1 - assumed.explained) * luck
        without = assumed.mean + assumed.sd * own
        return np.clip(without, low, high), np.clip(without + assumed.effect, low, high)
    # Where covariates explain all, one tenth of a percent is left to chance so that log-odds stay finite.
    share = min(assumed.explained, 0.999)
    lean = sqrt(_LOGISTIC * share / (1 - share)) * index
    luck = generator.random(len(index))
    answers = []
    for mean in (assumed.mean, assumed.mean + assumed.effect):
        part = (mean - low) / (high - low)
        base = _level(lambda at: float(expit(at + lean).mean()), part)
        answers.append(np.where(luck < expit(base + lean), high, low))
    return answers[0], answers[1]


def _level(mean_at: Callable[[float], float], share: float) -> float:
    """Return where a rising function of the log-odds reaches a share; the ends are far out."""
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

"""Made-up people of a study: from its declarations and from assumptions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from counterveil.data import Binary, Categories, Range, Study, columns_as_written
from counterveil.privacy import Estimand
from counterveil.rehearsal.assumptions import Assumptions

Floats = NDArray[np.float64]

# A range is filled by a bell of this many standard deviations, cut off at its ends.
_BELL = 6
# Variance of the logistic law, which is the part of log-odds that covariates do not explain.
_LOGISTIC = pi**2 / 3
# No arm is left with fewer people.
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A table of people who do not exist, and what treatment does to them."""

    frame: dict[str, NDArray[Any]]
    columns: Floats  # covariates, standardised, a column each
    treated: NDArray[np.bool_]
    outcome: Floats
    gain: Floats  # what treatment adds to each outcome, which stays inside its range

    def effect(self, estimand: Estimand) -> float:
        """Return the mean effect on everybody, on those treated or on those not."""
        if estimand is Estimand.ATE:
            return float(self.gain.mean())
        return float(self.gain[self.treated if estimand is Estimand.ATT else ~self.treated].mean())


def made_up(study: Study, rows: int, assumed: Assumptions, generator: np.random.Generator) -> MadeUp:
    """Return `rows` people.

    One index, the sum of all standardised covariates, moves outcomes and, where there is confounding, treatment: the
    case that harms an estimate most.
    """
    coded = {name: _covariate(domain, rows, generator) for name, domain in study.covariates.items()}
    columns = np.column_stack([_standard(values) for values in coded.values()] or [np.empty((rows, 0))])
    index = _standard(columns.sum(axis=1))
    treated = _treated(study, index, assumed, generator)
    without, with_treatment = _outcomes(study, index, assumed, generator)
    outcome = np.where(treated, with_treatment, without)
    frame: dict[str, NDArray[Any]] = dict(columns_as_written(coded, study))
    control = 0 if study.control is None else study.control
    frame[study.treatment] = np.array([control, study.treated], dtype=object)[treated.astype(np.intp)]
    frame[study.outcome] = outcome
    return MadeUp(frame, columns, treated, outcome, with_treatment - without)


def _covariate(domain: Range | Binary | Categories, rows: int, generator: np.random.Generator) -> Floats:
    """Return values of a range, or codes of labels that are all equally frequent."""
    if isinstance(domain, Range):
        low, high = domain.floats()
        bell = (low + high) / 2 + (high - low) / _BELL * generator.standard_normal(rows)
        return np.clip(bell, low, high)
    return generator.integers(0, len(domain.labels), rows).astype(np.float64)


def _standard(values: Floats) -> Floats:
    spread = float(values.std())
    return np.zeros(len(values)) if spread == 0 else (values - values.mean()) / spread


def _treated(
    study: Study, index: Floats, assumed: Assumptions, generator: np.random.Generator
) -> NDArray[np.bool_]:
    rows = len(index)
    if study.randomised:
        count = min(max(round(rows * assumed.share), _FEWEST), rows - _FEWEST)
        return generator.permutation(rows) < count
    lean = assumed.confounding * index
    base = _level(lambda at: float(expit(at + lean).mean()), assumed.share)
    found: NDArray[np.bool_] = generator.random(rows) < expit(base + lean)
    # Whoever is needed for two people in each arm: the index plays no part in so few.
    found[:_FEWEST], found[_FEWEST : 2 * _FEWEST] = True, False
    return found


def _outcomes(
    study: Study, index: Floats, assumed: Assumptions, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return everybody's outcome without and with treatment, inside the declared range."""
    low, high = study.outcome_bounds.floats()
    if not assumed.yes_no:
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

"""Effects by ridge regression on random Fourier features, released by noise on its weights: a published form, mended.

One half of the rows (by their public place) gives noisy models of treatment and outcome, the other half the
regression of y - m(x) on a - p(x) times the features: either half spends the whole budget, and no row is in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from counterveil.data import Range, Study, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, FourierFeatures
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.products import blocks, projected
from counterveil.privacy.caveats import Caveat, Target
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import CateQuestion, require_gaussian
from counterveil.session import Gate, Kind, Session
from counterveil.session.plan import in_branches
from counterveil.settings import Cate, RandomFeatures
from counterveil.statistics.moments.cate_fitting import choose_design, first_fit, half_range
from counterveil.statistics.moments.cate_releases import (
    ArmForm,
    Propensity,
    UnitRows,
    outcomes,
    release_statistics,
)
from counterveil.statistics.moments.kernels.unit_rows import STATISTIC_BITS, Block, statistics
from counterveil.statistics.moments.r_learner import propensity_of
from counterveil.statistics.moments.sensitivity import PenalisedEffect
from counterveil.statistics.moments.t_learner import arm_system, guess

PAGES = (
    "statistics/moments/arm_statistics.proof.md",
    "statistics/moments/penalised_effect.proof.md",
    "session/branches.proof.md",
    "mechanisms/gaussian.proof.md",
)
# Noise that the automatic penalty aims at, in units of half the outcome's range.
_AIM = 0.1
_LEAST_PENALTY, _LARGEST_PENALTY = 1e-4, 10.0
# The solver's gradient is below this for every data set; see the proof page.
_TOLERANCE = Fraction(1, 10**8)


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Released models of treatment and outcome on a basis of their own."""

    basis: Basis
    propensity: Propensity
    control: Floats
    effect: Floats

    def of(self, table: Table, part: slice) -> tuple[Floats, Floats]:
        """Return propensity and mean outcome of the rows of a block."""
        psi = self.basis.features(table.covariates, part)
        p = self.propensity.of(psi)
        return p, np.clip(projected(psi, self.control) + p * projected(psi, self.effect), -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ResidualRows:
    """Rows (a - p) phi and outcomes y - m, clipped to [-1, 1]."""

    table: Table
    features: FourierFeatures
    nuisances: Nuisances

    def __iter__(self) -> Iterator[Block]:
        for part in blocks(self.table.rows):
            p, m = self.nuisances.of(self.table, part)
            treatment_residual = self.table.treated[part] - p
            u = self.features.features(self.table.covariates, part) * treatment_residual[:, None]
            v = np.clip(outcomes(self.table, part) - m, -1.0, 1.0)
            yield u, np.zeros(len(v), dtype=np.intp), v


def random_features(session: Session, question: CateQuestion) -> CateModel:
    """Return the penalised effect as a function in random features."""
    require_gaussian(question, "random_features")
    settings = question.settings or RandomFeatures()
    table, half = session.table, session.table.rows // 2
    names = ("moments", "weights")
    one = {names[0]: Fraction(1)}, {names[0]: Kind.VECTOR}
    two = {names[1]: Fraction(1)}, {names[1]: Kind.VECTOR}
    plan = in_branches(question.budget, question.mechanism, (one, two))
    features = FourierFeatures(_axes(session.study), settings.pairs, settings.bandwidth, settings.seed)
    penalty = _penalty(settings, question, table.rows - half)
    reach = 1 - Fraction(settings.least_propensity)

    def compute(gate: Gate) -> dict[str, object]:
        nuisances = _nuisances(gate, session.study, table.take(slice(0, half)), question, settings)
        rest = table.take(slice(half, table.rows))
        residuals = ResidualRows(rest, features, nuisances)
        weights = solved(residuals, rest.rows, features.size, penalty)
        bound = PenalisedEffect(rest.rows, reach, Fraction(penalty), _TOLERANCE * (1 + Fraction(penalty)))
        values = [Fraction(float(weight)) for weight in weights]
        released = gate.release_vector(names[1], values, bound.weights)
        return _model(session, question, features, released.floats(), released.variance, penalty).stored()

    return CateModel.from_dict(session.run(question.request(plan, session.study), compute))


def _axes(study: Study) -> tuple[Axis, ...]:
    found = []
    for name, domain in study.covariates.items():
        if isinstance(domain, Range):
            low, high = domain.floats()
            found.append(Axis(name, "legendre", 1, low, high - low))
        elif len(domain.labels) > 1:
            found.append(Axis(name, "labels", len(domain.labels)))
    return tuple(found)


def _penalty(settings: RandomFeatures, question: CateQuestion, rows: int) -> float:
    """Return the penalty: the declared one, or the least at which the noise of an effect is about a tenth."""
    if settings.penalty is not None:
        return settings.penalty
    mu = float(mu_of(question.budget.epsilon, question.budget.delta))
    low, high = _LEAST_PENALTY, _LARGEST_PENALTY
    for _ in range(60):
        middle = sqrt(low * high)
        noise = 2 * (1 + 1 / (2 * sqrt(middle))) / (middle * rows * mu)
        low, high = (middle, high) if noise > _AIM else (low, middle)
    return high


def _nuisances(
    gate: Gate, study: Study, table: Table, question: CateQuestion, settings: RandomFeatures
) -> Nuisances:
    design = choose_design(study, table.rows, question.budget, Cate())
    moments = release_statistics(gate, "moments", UnitRows(table, ArmForm(design.basis, design.length)))
    system = arm_system(design, moments, table.rows)
    fit, _ = first_fit(system, moments, guess(system))
    control, treated = system.weights(fit.theta) / design.length
    propensity = propensity_of(study, design, system, moments, settings.least_propensity)
    return Nuisances(design.basis, propensity, control, treated - control)


def solved(row_blocks: Iterable[Block], rows: int, size: int, penalty: float) -> Floats:
    """Return the minimiser of the mean squared residual plus penalty times the squared weights."""
    total = statistics(row_blocks, 1)
    unit = 1.0 / (rows * 4.0**STATISTIC_BITS)
    gram = np.array(total.grams[0], dtype=np.float64) * unit
    products = np.array(total.products[0], dtype=np.float64) * unit
    return np.asarray(cho_solve(cho_factor(gram + penalty * np.eye(size)), products))


def _model(
    session: Session,
    question: CateQuestion,
    features: FourierFeatures,
    weights: Floats,
    variance: float,
    penalty: float,
) -> CateModel:
    unit = half_range(session)
    covariance = np.eye(features.size) * variance * unit**2
    return CateModel(
        study=session.study,
        method="penalised regression on random Fourier features, noise on its weights",
        basis=features,
        weights=weights * unit,
        covariance=covariance,
        noise_covariance=covariance,
        level=question.level,
        guarantee=question.guarantee(session, PAGES, mechanisms=()),
        spent=question.budget,
        releases=(
            ("moments", "Gaussian noise; the whole budget on one half of the rows"),
            ("weights", "Gaussian noise; the whole budget on the other half"),
        ),
        not_covered=(
            Caveat.PENALTY_BIAS,
            Caveat.UNDECLARED_COVARIATES,
            Caveat.ERRORS_OF_MODELS,
        ),
        details={"penalty": penalty, "bandwidth": features.bandwidth, "features": features.size},
        interval_of=Target.PENALISED_REGRESSION,
    )

"""The effect as a kernel regression plus a Gaussian process, as published (Theorem 2, Algorithms 1 and 2).

Its privacy claim is refuted: the sensitivity has the exponent q of the bandwidth's volume where q/2 is right, which
the unexplained factor 4 hides for small volumes only; rows of the nuisances are not counted; L is not the
Lipschitz constant of the loss. The scale is public, and for every number of queries one path of noise is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget, Proof
from counterveil.privacy.caveats import Target
from counterveil.published.asking import PublishedQuestion, QueryForm
from counterveil.published.cate import (
    BATCH,
    LEMMA,
    LITERAL,
    PRINTED,
    THEOREM,
    UNIT,
    FeatureBox,
    Function,
    KernelSettings,
    StageModels,
    StageRows,
    asked_queries,
    fitted_nuisances,
    loss_at,
    paper_answers,
    paper_plan,
    require_learners,
)
from counterveil.results.answering import Facts, settled
from counterveil.results.functions import CateAnswers
from counterveil.session import BaseSession, Gate, Kind, Plan

_SEED = 0
# Keeps the normal equations of many close centres solvable; far below the noise of any fit.
_RIDGE = 1e-10
# Variance that every query gets on top of the process, as a part of the process's own.
EXTRA_VARIANCE = 1e-9
REMARK = (
    "the published claim is false: the bound of how far a record moves the function has the exponent q where q/2 is "
    "right, so that the noise is too small wherever (sqrt(2 pi) h)^(q/2) is above 4 and vanishes with many covariates; "
    "rows of the nuisances are not counted; and the largest outcome is not the Lipschitz constant of the loss. The "
    "ledger is charged the claimed epsilon and delta"
)
REMARK_PRINTED = (
    "; the iterative algorithm as printed draws every answer after the first from the answers before it alone: those "
    "are noise, not estimates"
)


# Gaussian kernel regression of the pseudo-outcomes, with what the paper leaves open as explicit choices.
#
# All of it is computed with the kernel of height one. A kernel of height c has the squared norm |g|^2 / c for the same
# function, so that its penalty is lambda / c here, and its Gaussian process is sqrt(c) times ours.


@dataclass(frozen=True, slots=True)
class Kernel:
    """exp(-|x - y|^2 / (2 h^2)) on q features, and the height by which the paper multiplies it."""

    bandwidth: float
    features: int
    height: float

    @classmethod
    def normalised(cls, bandwidth: float, features: int, normalisation: str) -> Kernel:
        """Return the kernel: height 1, (sqrt(2 pi) h)^-q as in Lemma 3, or 1/(sqrt(2 pi) h) as in Theorem 2."""
        power = {UNIT: 0, LEMMA: features, THEOREM: 1}[normalisation]
        return cls(bandwidth, features, (sqrt(2 * pi) * bandwidth) ** -power)

    def unit(self, first: Floats, second: Floats) -> Floats:
        """Return the matrix of the kernel of height one."""
        squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
        found: Floats = np.exp(-np.maximum(squares, 0.0) / (2 * self.bandwidth**2))
        return found


def literal_penalty(penalty: float, meaning: str, rows: int) -> float:
    """Return lambda beside the mean loss: as printed, or alpha / n where it is scikit-learn's alpha."""
    return penalty if meaning == LITERAL else penalty / rows


def published_scale(
    kernel: Kernel, lipschitz: float, penalty: float, rows: int, epsilon: float, delta: float
) -> float:
    """Return the factor of the Gaussian process in Theorem 2; the exponent q is the paper's."""
    volume = (sqrt(2 * pi) * kernel.bandwidth) ** kernel.features
    return 4 * lipschitz * sqrt(2 * log(2 / delta)) / (volume * penalty * rows * epsilon)


def fitted_kernel(
    kernel: Kernel, x: Floats, target: Floats, weights: Floats, penalty: float, centres: Floats | None
) -> Function:
    """Return the minimiser of mean(weights (target - g)^2) + penalty |g|^2, in the span of the centres if any."""
    strength = penalty / kernel.height * len(x)
    if centres is None:
        centres = x
        system = kernel.unit(x, x) + np.diag(strength / np.maximum(weights, np.finfo(float).tiny))
        solved = np.linalg.solve(system, target)
    else:
        cross = kernel.unit(x, centres)
        own = kernel.unit(centres, centres)
        system = cross.T @ (weights[:, None] * cross) + strength * own
        # The ridge is beside the size of the system, which is tiny or huge with the penalty.
        system[np.diag_indices_from(system)] += _RIDGE * float(np.trace(system)) / len(system)
        solved = np.linalg.solve(system, cross.T @ (weights * target))
    held = centres
    return lambda points: kernel.unit(points, held) @ solved


# Gaussian process noise for one query after another: rows of a Cholesky factor that grows with the queries.
#
# With L L' = K + J at the queries so far, a path of the process is L z for independent normals z. Asking in
# whitened form, w = L^-1 g + s z, and answering L w is the same as adding s times the process to g: the noise of a
# query is drawn given the noise of those before it, which is never told. J only adds variance. A query that was
# asked before gets the same answer and no new row.


class QueryPath:
    """The queries asked so far and the Cholesky factor of their covariance, one row a new query."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._points: list[Floats] = []
        self._rows: list[Floats] = []
        self._places: dict[bytes, int] = {}

    def ask(self, point: Floats) -> int:
        """Return the place of this query, which is a new one unless it was asked before."""
        key = np.ascontiguousarray(point, dtype=np.float64).tobytes()
        if key not in self._places:
            self._places[key] = len(self._points)
            self._rows.append(self._row(point))
            self._points.append(point)
        return self._places[key]

    def _row(self, point: Floats) -> Floats:
        if not self._points:
            return np.array([np.sqrt(1 + EXTRA_VARIANCE)])
        covariances = self._kernel.unit(np.array(self._points), point[None])[:, 0]
        row = np.empty(len(covariances) + 1)
        for place, before in enumerate(self._rows):
            row[place] = (covariances[place] - before[:place] @ row[:place]) / before[place]
        left = 1 - float(row[:-1] @ row[:-1])
        row[-1] = np.sqrt(max(left, 0.0) + EXTRA_VARIANCE)
        return row

    def factor(self) -> Floats:
        """Return the lower triangular factor of all queries so far."""
        full = np.zeros((len(self._rows), len(self._rows)))
        for place, row in enumerate(self._rows):
            full[place, : place + 1] = row
        return full


def batch_factor(kernel: Kernel, points: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the factor of the distinct points and the place of every point among them."""
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    covariance = kernel.unit(distinct, distinct)
    covariance[np.diag_indices_from(covariance)] = 1 + EXTRA_VARIANCE
    factor: Floats = np.linalg.cholesky(covariance).astype(np.float64)
    return factor, places.reshape(-1).astype(np.intp)


def path_factor(kernel: Kernel, points: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the factor that grew with the queries in their order, and the place of every query."""
    path = QueryPath(kernel)
    places = [path.ask(point) for point in points]
    return path.factor(), np.array(places, dtype=np.intp)


# The release.


@dataclass(frozen=True, slots=True)
class PublishedFunction:
    """The kernel, the published scale of a process of height one, and the lambda beside the mean loss."""

    kernel: Kernel
    scale: float
    penalty: float

    @classmethod
    def of(cls, box: FeatureBox, budget: Budget, settings: KernelSettings, rows: int) -> PublishedFunction:
        """Return what the paper prints for these public numbers; `rows` is the n of the formula."""
        kernel = Kernel.normalised(settings.bandwidth, box.columns, settings.kernel)
        penalty = literal_penalty(settings.penalty, settings.penalty_meaning, rows)
        largest = max(abs(float(end)) for end in box.study.outcome_range)
        lipschitz = largest if settings.lipschitz is None else settings.lipschitz
        epsilon, delta = float(budget.epsilon), float(budget.delta)
        scale = published_scale(kernel, lipschitz, penalty, rows, epsilon, delta)
        return cls(kernel, scale * float(np.sqrt(kernel.height)), penalty)

    def effects(
        self, rows: StageRows, nuisances: StageModels, learner: str, centres: Floats | None, points: Floats
    ) -> Floats:
        """Return the non-private regression at these points."""
        loss = loss_at(nuisances, learner, rows.x, rows.treated)
        fitted = fitted_kernel(self.kernel, rows.x, loss.phi(rows.y), loss.rho, self.penalty, centres)
        return fitted(points)


def _functional(session: BaseSession, question: PublishedQuestion) -> CateAnswers:
    """Return a kernel regression plus a Gaussian process at queries, as in DP-CATE (Theorem 2); refuted."""
    settings = question.settings or KernelSettings()
    queries = asked_queries(question)
    plan = paper_plan(question)
    remark = REMARK + (REMARK_PRINTED if settings.algorithm == PRINTED else "")
    question.require_acceptance(Proof.REFUTED, remark)
    require_learners(settings.outcome, settings.propensity)
    box = FeatureBox.of(session.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> Facts:
        rows = box.rows(session.table)
        parts = two_parts(len(rows), settings.first_rows(len(rows)))
        nuisances = fitted_nuisances(
            rows.part(parts[0]), settings.outcome, settings.propensity, settings.clip
        )
        form = PublishedFunction.of(box, question.budget, settings, settings.counted_rows(len(rows)))
        centres = public_centres(box, settings.centres)
        effects = form.effects(rows.part(parts[1]), nuisances, settings.learner, centres, points)
        return paper_answers(
            session,
            question,
            release(gate, plan, form, effects, points, settings.algorithm),
            # As printed, later answers have no noise around anything that was estimated.
            noise=float("inf")
            if settings.algorithm == PRINTED
            else form.scale * float(np.sqrt(1 + EXTRA_VARIANCE)),
            remark=remark,
            method=f"{settings.learner}-learner by kernel regression, Gaussian process noise ({settings.algorithm}), "
            "as published",
            release=f"one path of a Gaussian process, standard deviation {form.scale:.4g} at a point",
            interval_target=Target.KERNEL_REGRESSION,
        )

    # With the settings that hold where none were given.
    return settled(CateAnswers, session, replace(question, settings=settings), plan, compute)


# What analysts call.
cate_functional = QueryForm("cate_functional", KernelSettings, _functional)


def public_centres(box: FeatureBox, count: int | None) -> Floats | None:
    """Return points of the box from a fixed seed: centres from the rows would tell them. None for all rows."""
    return None if count is None else box.draw(count, _SEED)


def release(
    gate: Gate, plan: Plan, form: PublishedFunction, effects: Floats, points: Floats, algorithm: str
) -> Floats:
    """Return the answers: independent normals at the gate, in the coordinates where the process is white."""
    if algorithm == BATCH:
        factor, places = batch_factor(form.kernel, points)
    else:
        factor, places = path_factor(form.kernel, points)
    values = np.empty(len(factor))
    values[places] = effects
    white = solve_triangular(factor, values, lower=True)
    scales = np.full(len(factor), form.scale)
    if algorithm == PRINTED:
        # Only the first answer reads the data, and all later ones have the process's own scale.
        white[1:], scales[1:] = 0.0, np.sqrt(form.kernel.height)
    noisy = _with_unit_noise(gate, plan, white / scales) * scales
    return np.asarray((factor @ noisy)[places], dtype=np.float64)


def _with_unit_noise(gate: Gate, plan: Plan, values: Floats) -> Floats:
    sensitivity = plan.amount("answers", Kind.VECTOR)
    return gate.release_vector("answers", [Fraction(float(value)) for value in values], sensitivity).floats()

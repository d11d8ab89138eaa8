"""The difference of two arms' ratios, each a sum over a sum, with the person as unit.

Both sums of an arm are released, then the sum of squared residuals N - r D around the released ratio, which is the
sampling variance of the numerator of Fieller's statistic. Where arms are public each arm spends the whole budget on
its own people.

Lineage: the delta method for metrics whose analysis unit is not the randomisation unit (Deng, Knoblich and Lu 2018);
Fieller's interval (1954), which stays right where a denominator is hardly larger than its noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Sums, Table
from counterveil.inference.measures import NoisyRatio
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat
from counterveil.results.answering import Facts, answer_request
from counterveil.results.effect import Effect
from counterveil.results.groups import RatioResult
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.counts import release_sums
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.rows.moments.sensitivity import Bounds, RatioSums, ResidualSquares
from counterveil.session import BaseSession, Gate, Kind, Plan, ReleasedVector
from counterveil.session.session import in_branches

PAGE = "rows/moments/ratio_sums.proof.md"
# The part of the budget for squared residuals, and how many standard deviations of its noise are added to their sum:
# sums below 0 are taken for 0, so that on average intervals keep their level with less than one. Measured by
# `python -m experiments.panels --only ratio_shapes`.
_RESIDUAL_SHARE = Fraction(1, 10)
_ADDED_SDS = 0.25
_ARMS = ("treated", "control")


@dataclass(frozen=True, slots=True)
class PairSums:
    """Exact sums over an arm: people, N, D, and the products of N and D with each other, in steps."""

    count: int
    above: int
    below: int
    squares: tuple[int, int, int]  # N N, N D, D D

    @classmethod
    def of(cls, sums: NDArray[np.object_]) -> PairSums:
        """Return a line of `pair_sums`."""
        count, above, below, both, cross, last = map(int, sums)
        return cls(count, above, below, (both, cross, last))


def arm_sums(above: NDArray[np.int64], below: NDArray[np.int64]) -> PairSums:
    """Return the sums over the people of one arm."""
    pairs = ((above, above), (above, below), (below, below))
    squares = tuple(exact_dot(one, other) for one, other in pairs)
    return PairSums(len(above), int(above.sum()), int(below.sum()), (squares[0], squares[1], squares[2]))


def pair_sums(table: Table) -> Sums:
    """Return the sums over the treated people of a block, then over the others."""
    arms = [
        arm_sums(table.outcome[rows], table.measures[0][rows]) for rows in (table.treated, ~table.treated)
    ]
    return (np.array([[arm.count, arm.above, arm.below, *arm.squares] for arm in arms], dtype=object),)


@dataclass(frozen=True, slots=True)
class RatioDesign:
    """What is public about a ratio: ranges, weights of both sums, and whether arms are public."""

    above: Bounds
    below: Bounds
    weights: tuple[Fraction, Fraction]
    public_arms: bool
    gaussian: bool

    @classmethod
    def of(cls, session: BaseSession, question: Question) -> RatioDesign:
        """Return the design of a study with denominator=; weights from the middles of both ranges."""
        study = session.study
        gaussian = question.mechanism == "gaussian"
        assert study.denominator is not None
        public = question.unit is Unit.OUTCOME
        above = study.outcome_range
        below = study.denominator.range
        # Noise of N - r D: what is paid for each sum is shared by its part in it, r at the middle of both ranges.
        ratio = abs((above[0] + above[1]) / (below[0] + below[1]))
        widths = [ends[1] - ends[0] if public else max(map(abs, ends)) for ends in (above, below)]
        parts = (float(widths[0]), float(max(ratio, Fraction(1, 10**6)) * widths[1]))
        powers = [part ** (0.5 if gaussian else 2 / 3) for part in parts]
        share = Fraction(min(max(powers[0] / sum(powers), 0.05), 0.95)).limit_denominator(10**4)
        return cls(above, below, (share / widths[0], (1 - share) / widths[1]), public, gaussian)

    @property
    def sums(self) -> RatioSums:
        """The bounds of both sums."""
        return RatioSums(self.above, self.below, self.weights, self.public_arms)

    @property
    def residuals(self) -> ResidualSquares:
        """The bounds of the squared residuals."""
        return ResidualSquares(self.above, self.below, self.public_arms)

    def scaled(self, arm: PairSums) -> list[Fraction]:
        """Return both weighted sums of an arm, exact; where arms are public, above what the ranges make certain."""
        found = []
        for steps, ends, weight in zip(
            (arm.above, arm.below), (self.above, self.below), self.weights, strict=True
        ):
            moved = steps * (ends[1] - ends[0]) / OUTCOME_STEPS
            found.append(weight * (moved if self.public_arms else moved + arm.count * ends[0]))
        return found

    def squares(self, arm: PairSums, ratio: Fraction) -> Fraction:
        """Return the sum of (N - r D)^2, exact."""
        unit, other = ((ends[1] - ends[0]) / OUTCOME_STEPS for ends in (self.above, self.below))
        # N - r D = a + u n - v d with steps n and d.
        start = self.above[0] - ratio * self.below[0]
        step = ratio * other
        both, cross, last = arm.squares
        linear = 2 * start * (unit * arm.above - step * arm.below)
        return arm.count * start**2 + linear + unit**2 * both - 2 * unit * step * cross + step**2 * last

    def limit(self, rows: int) -> float:
        """Return how large a ratio of sums can be: a sum of steps that is not zero is one step at least."""
        largest = max(map(abs, self.above))
        if self.below[0] > 0:
            return float(largest / self.below[0])
        return float(rows * largest / (self.below[1] / OUTCOME_STEPS))


def ratio_plan(question: Question) -> Plan:
    """Return the split over the sums and the squared residuals: of each arm by itself where arms are public."""
    kind = Kind.VECTOR if question.mechanism == "gaussian" else Kind.CELLS
    if question.unit is Unit.RECORD:
        return Plan.split(question.budget, *_split("both arms", kind, question.mechanism))
    branches = []
    for arm in _ARMS:
        shares, _, kinds = _split(arm, kind, question.mechanism)
        branches.append((shares, kinds))
    return in_branches(question.budget, question.mechanism, branches)


def _split(arm: str, kind: Kind, mechanism: str) -> tuple[dict[str, Fraction], str, dict[str, Kind]]:
    names = (f"sums of {arm}", f"residuals of {arm}")
    shares = dict(zip(names, (1 - _RESIDUAL_SHARE, _RESIDUAL_SHARE), strict=True))
    return shares, mechanism, dict.fromkeys(names, kind)


def compare_ratios(session: BaseSession, question: Question) -> RatioResult:
    """Return the private difference of both arms' ratios; at record level n is public and nothing else is."""
    source = session.batches
    design = RatioDesign.of(session, question)
    plan = ratio_plan(question)
    noise, norm = ("gaussian", "l2 ") if design.gaussian else ("laplace", "")
    bounds = [each.length if design.gaussian else each.total for each in (design.sums, design.residuals)]

    def compute(gate: Gate) -> Facts:
        (sums,) = source.run(pair_sums)
        arms = [PairSums.of(arm) for arm in sums]
        found = release(gate, design, arms, source.rows)
        treated = arms[0].count
        public = {"treated": treated, "control": source.rows - treated} if design.public_arms else {}
        return Facts(
            ratios=[Effect(name, one, question.level) for name, one in zip(_ARMS, found, strict=True)],
            method="difference of ratios of sums",
            releases=(
                (
                    "sums of numerator and denominator of both arms",
                    f"{norm}sensitivity {float(bounds[0]):.6g}, scaled",
                ),
                (
                    "sums of squared residuals of both arms",
                    f"{norm}sensitivity {float(bounds[1]):.6g}, scaled",
                ),
            ),
            not_covered=(*causal_caveats(session.study, question.estimand), Caveat.OWN_RATIOS),
            details={
                "rows": source.rows,
                **public,
                "ratio_treated": found[0].estimate,
                "ratio_control": found[1].estimate,
                "mechanism": noise,
            },
        )

    return answer_request(RatioResult, session, question, plan, compute, pages=PAGE, mechanisms=(noise,))


def release(gate: Gate, design: RatioDesign, arms: list[PairSums], rows: int) -> list[NoisyRatio]:
    """Return what is known of both arms' ratios: treated, then control."""
    groups = [(name, [arm]) for name, arm in zip(_ARMS, arms, strict=True)]
    if not design.public_arms:
        groups = [("both arms", arms)]
    found: list[NoisyRatio] = []
    for name, members in groups:
        sums = _draw(
            gate, design, f"sums of {name}", [part for arm in members for part in design.scaled(arm)]
        )
        pairs = [_unscaled(design, arm, sums, place) for place, arm in enumerate(members)]
        ratios = [_plain(design, *pair, sums.variance) for pair in pairs]
        largest = [design.residuals.largest(ratio) for ratio in ratios]
        parts = [
            design.squares(arm, ratio) / most
            for arm, ratio, most in zip(members, ratios, largest, strict=True)
        ]
        squares = _draw(gate, design, f"residuals of {name}", parts)
        for place, (pair, most) in enumerate(zip(pairs, largest, strict=True)):
            noisy = float(squares.values[place]) + _ADDED_SDS * sqrt(squares.variance)
            found.append(_known(design, pair, max(noisy, 0.0) * float(most), sums.variance, rows))
    return found


def _draw(gate: Gate, design: RatioDesign, name: str, values: list[Fraction]) -> ReleasedVector:
    """Return numbers with Gaussian noise by their joint length, or Laplace noise by their joint change."""
    bounds = design.sums if name.startswith("sums") else design.residuals
    return release_sums(gate, name, values, not design.gaussian, bounds.total, bounds.length)


def _unscaled(
    design: RatioDesign, arm: PairSums, sums: ReleasedVector, place: int
) -> tuple[Fraction, Fraction]:
    """Return an arm's noisy sums of N and D."""
    above, below = (
        value / weight
        for value, weight in zip(sums.values[2 * place : 2 * place + 2], design.weights, strict=True)
    )
    if not design.public_arms:
        return above, below
    return above + arm.count * design.above[0], below + arm.count * design.below[0]


def _plain(design: RatioDesign, above: Fraction, below: Fraction, variance: float) -> Fraction:
    """Return the ratio that residuals are taken around, from released numbers; with a denominator above its noise."""
    least = Fraction(sqrt(variance)) / design.weights[1]
    return (above / max(below, least)).limit_denominator(10**9)


def _known(
    design: RatioDesign, pair: tuple[Fraction, Fraction], squares: float, variance: float, rows: int
) -> NoisyRatio:
    total, size = map(float, pair)
    total_sd, size_sd = (sqrt(variance) / float(weight) for weight in design.weights)
    return NoisyRatio(
        total=total,
        size=size,
        row_variance=squares / max(size, size_sd),
        total_sd=total_sd,
        size_sd=size_sd,
        limit=design.limit(rows),
        heavy=not design.gaussian,
        least=0.0,
    )

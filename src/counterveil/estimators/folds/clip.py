"""Where the effects of folds are clipped, and into how many folds the rows are divided.

An effect never exceeds the width of the outcome's range, but effects of folds lie much nearer together. A
small part of the budget buys the private comparison of the arms and its standard deviation s. Effects are
clipped around that comparison, as far off as confounding and chance carry them,

    c = .4 s + 2.5 s / sqrt(m - p) + 1.5 (noise of the comparison),

for m rows a fold and p coefficients of its model (times the inflation of a small arm), and the noise of their
average shrinks with the clip. c, s and noise are in units of the outcome, p and m are counts; all numbers are
public or released.

The number of folds K is chosen from a grid for the least expected squared error: the noise of the average,
the sampling variance (which grows by m / (m - p), since a fold has p coefficients to fit) and the noise in
its estimate, which shrinks as the folds are more.

Privacy holds for every clip and every K, since the noise is made for the sensitivity 2 c / K of the clipped
average (`rows/folds/fold_average.proof.md`, `rows/moments/inverse_weighting.proof.md`). The constants .4, 2.5
and 1.5 come from `python -m experiments.every_method --tuning`: a clip that is too near costs a bias, which
the interval allows for (`Clip.lost`), and one that is too wide costs noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import erf, exp, pi, sqrt

from counterveil.results.question import Question
from counterveil.rows.folds.sensitivity import FoldAverage
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.session import Kind, KnownSensitivityMechanism, Plan

# A fold has at least this many rows.
_FEWEST_ROWS = 20
# And this many for every column of the covariates.
_ROWS_A_COLUMN = 2
FEWEST_FOLDS = 5
# Of the budget of a mean and its squares, the mean's part.
FOR_EFFECT = Fraction(17, 20)
# The clip was chosen by `python -m experiments.every_method --tuning`.
# Parts of the budget that go into the comparison of the arms, in hundredths.
_FOR_CENTRE = {
    "share": Fraction(3),
    "centre": Fraction(3, 2),
    "contrast": Fraction(21, 4),
    "moment": Fraction(21, 4),
}
# Room for confounding, in standard deviations of one person's part of the comparison.
_CONFOUNDING = 0.4
# Room for chance, in standard deviations of a fold's effect, and in those of the noise of the comparison.
_CHANCE = 2.5
_NOISE = 1.5
# One person's part of the comparison has about this standard deviation, in widths of the outcome's range.
TYPICAL_SD = 0.25
# The least clip, in widths of the outcome's range.
_LEAST_BOUND = Fraction(1, 2**10)
# Numbers of folds that are compared, evenly on a scale of logarithms.
_STEPS = 24


@dataclass(frozen=True, slots=True)
class Clip:
    """Number of folds, and the bound of effects on either side of a centre; all public or released.

    `chosen` says that the bound was made of released numbers and may be nearer than effects lie; else it is
    declared, or the whole range, beyond which there is none.
    """

    folds: int
    bound: Fraction
    centre: Fraction = Fraction(0)
    chosen: bool = False

    @property
    def sensitivity(self) -> FoldAverage:
        """How far one record can move the average."""
        return FoldAverage(self.folds, self.bound)

    def lost(self, mean: float, square: float) -> float:
        """Return how far clipping moved the average, if effects are normal with these released moments.

        Both are in units of the bound.
        """
        off = min(abs(mean), 1.0)
        sd = sqrt(max(square - mean**2, 0.0))
        return float(self.bound) * (_beyond(1 - off, sd) - _beyond(1 + off, sd))


def _beyond(limit: float, sd: float) -> float:
    """Return by how much a normal number with mean zero exceeds a limit, on average."""
    if sd == 0.0:
        return 0.0
    z = limit / sd
    return sd * exp(-z * z / 2) / sqrt(2 * pi) - limit * (1 - erf(z / sqrt(2))) / 2


@dataclass(frozen=True, slots=True)
class ClippingCentre:
    """The comparison that effects are clipped around: noise and standard deviation, all in one unit.

    `sd` is an upper estimate of the standard deviation of one person's part of it. `arm_inflation` is by
    how much the number of rows must grow for the smaller arm to have as many people as half of them.
    """

    centre: Fraction
    noise: float
    sd: float
    arm_inflation: float = 1.0

    def bound(self, size: float, columns: float) -> float:
        """Return how far off the effect of a fold of `size` rows is expected to be at most."""
        chance = self.sd / sqrt(max(size - columns, 1.0))
        return _CONFOUNDING * self.sd + _CHANCE * chance + _NOISE * self.noise


@dataclass(frozen=True, slots=True)
class FoldDesign:
    """What is public of folds before a clip is chosen.

    Attributes
    ----------
    plan : Plan
        What pays for the average, its squares and, where there is one, the comparison of the arms.
    rows : int
        Number of rows.
    columns : int
        p, coefficients of a fold's model.
    folds : int, optional
        Number of folds that was asked for. Default: that of least expected error.
    """

    plan: Plan
    rows: int
    columns: int
    folds: int | None = None


def folds_plan(question: Question, centred: bool) -> Plan:
    """Return the plan: the comparison of the arms, where it is wanted, then a mean and its squares."""
    shares: dict[str, Fraction] = {}
    if centred:
        shares = {name: percent / 100 for name, percent in _FOR_CENTRE.items()}
    rest = 1 - sum(shares.values(), Fraction(0))
    if question.mechanism == "gaussian":
        shares["moments"] = rest
        return Plan.split(question.budget, shares, question.mechanism, {"moments": Kind.VECTOR})
    shares |= {"effect": FOR_EFFECT * rest, "squares": (1 - FOR_EFFECT) * rest}
    return Plan.split(question.budget, shares, question.mechanism)


def typical_centre(plan: Plan, rows: int) -> ClippingCentre:
    """Return what is expected before anything is released, in widths of the outcome's range."""
    noise = plan.noise("contrast", Fraction(4, rows)).variance
    return ClippingCentre(Fraction(0), sqrt(noise), TYPICAL_SD)


def chosen_clip(centre: ClippingCentre, design: FoldDesign, *, width: Fraction) -> Clip:
    """Return folds and clip with the least expected error; the whole range, where that is nearer."""

    def clip(count: int) -> Clip:
        bound = Fraction(centre.bound(design.rows / count, centre.arm_inflation * design.columns))
        if bound >= width:
            return Clip(count, width)
        return Clip(count, max(bound, width * _LEAST_BOUND), centre.centre, chosen=True)

    return _best(clip, design, variance=centre.sd**2, arm_inflation=centre.arm_inflation)


def declared_clip(bound: Fraction, design: FoldDesign, *, width: Fraction) -> Clip:
    """Return the number of folds with the least expected error for a bound that is declared."""
    sd = float(width) * TYPICAL_SD
    return _best(lambda count: Clip(count, bound), design, variance=sd**2)


def _best(
    clip: Callable[[int], Clip], design: FoldDesign, *, variance: float, arm_inflation: float = 1.0
) -> Clip:
    """Return the clip with the least noise, sampling error and the noise in its estimate together.

    More folds mean less noise, a variance between folds that is known better, and fewer rows for each of p
    coefficients, which multiplies the sampling variance by about m/(m - p). Where an arm is smaller than
    half, so many people of it need `arm_inflation` times as many rows.
    """
    if design.folds is not None:
        return clip(design.folds)
    fewest = arm_inflation * max(_FEWEST_ROWS, _ROWS_A_COLUMN * design.columns)
    most = max(FEWEST_FOLDS, int(design.rows / fewest))
    grid = {int(FEWEST_FOLDS * (most / FEWEST_FOLDS) ** (step / _STEPS)) for step in range(_STEPS + 1)}
    return min(
        map(clip, sorted(grid | {most})),
        key=lambda candidate: expected_error(candidate, design, variance, arm_inflation),
    )


def expected_error(clip: Clip, design: FoldDesign, variance: float, arm_inflation: float = 1.0) -> float:
    """Return the expected squared error: noise, sampling, and the noise in the estimate of the latter.

    `variance` is that of one person's part of the effect, in the squared unit of the clip.
    """
    size = design.rows / clip.folds
    sampling = variance / design.rows * size / max(size - arm_inflation * design.columns, 1.0)
    noise_of_variance = sqrt(squares_noise(design.plan, clip.sensitivity).variance) / (clip.folds - 1)
    return average_noise(design.plan, clip.sensitivity.mean).variance + sampling + noise_of_variance


def average_noise(plan: Plan, sensitivity: Fraction) -> KnownSensitivityMechanism:
    """Return the noise of an average with this sensitivity."""
    if plan.mechanism == "gaussian":
        return plan.coordinate_noise("moments", sensitivity)
    return plan.noise("effect", sensitivity)


def squares_noise(plan: Plan, sensitivity: FoldAverage) -> KnownSensitivityMechanism:
    """Return the noise of the mean square of the effects."""
    if plan.mechanism == "gaussian":
        # Squares are released with a weight, so that they cost no more than the mean: `inverse_weighting.proof.md`.
        joint = sensitivity.mean * sensitivity.bound / SQUARE_WEIGHT
        return plan.coordinate_noise("moments", joint)
    return plan.noise("squares", sensitivity.square)


def details(clip: Clip) -> Mapping[str, float | str]:
    """Return what a result says about the clip."""
    return {
        "folds": clip.folds,
        "fold_bound": float(clip.bound),
        "fold_bound_centre": float(clip.centre),
    }

"""The contrast of two private arms around a released share and centre, and what centres it.

With t = 1 for a treated row and 0 for another, y the outcome less the lower end of its range, in [0, B] and
in units of the outcome, q a released share treated and c a released centre in [0, B],

    psi = t (y - c) / q - (1 - t) (y - c) / (1 - q)

is a row's part of the contrast: the mean of psi estimates the difference of the arms' means. Released with
noise are the share treated, what c is made of (the mean of y over everyone, or both arms' sums of y - B / 2),
then the means of psi (units of the outcome) and of psi^2 (squared units). All follow from six exact totals of
the private rows: number, sum and sum of squares of y in either arm.

Why the estimate is right: if e = q - q1 is the error of the share q1 and m1, m0 the arms' means, the mean of
psi is m1 - m0 - e ((m1 - c) / q + (m0 - c) / (1 - q)), so that errors of share and centre enter as a product
alone. Why it is private: a row's psi depends on that row and released numbers, hence the mean of psi moves by
at most the length of the interval that psi can lie in over n, the mean of psi^2 by its largest square over n
(`CentredContrast`). The variance of psi is at most a quarter of the squared length.
Proof: `rows/moments/centred_contrast.proof.md`; changes between periods: `rows/moments/event_study.proof.md`.
"""

# Proof: centred_contrast.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.data import OUTCOME_STEPS, Sums, Table
from counterveil.data.domains import outcome_unit
from counterveil.data.panels import change_unit, period_totals
from counterveil.numerics.arm_totals import TwoArms, arm_totals
from counterveil.rows.moments.arm_sums import both_sums
from counterveil.session import Gate, Released, ReleasedVector


def mean_of_everyone(width: Fraction, rows: int) -> Fraction:
    """Return the largest change of the mean over everyone of numbers in [0, width]: outcomes, or treatment (1)."""
    return width / rows


@dataclass(frozen=True, slots=True)
class CentredContrast:
    """Sensitivities of the means of psi = t (y-c)/q - (1-t) (y-c)/(1-q) and psi^2; y, c in [0, width].

    Attributes
    ----------
    width : Fraction
        B, in units of the outcome.
    rows : int
        Number of rows, public.
    share : Fraction
        q, released, between 0 and 1.
    centre : Fraction
        c, released, in [0, width].
    """

    width: Fraction
    rows: int
    share: Fraction
    centre: Fraction

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest value that psi can take."""
        below = -self.centre
        above = self.width - self.centre
        other = 1 - self.share
        return min(below / self.share, -above / other), max(above / self.share, -below / other)

    @property
    def mean(self) -> Fraction:
        """Largest change of the mean of psi."""
        low, high = self.ends
        return (high - low) / self.rows

    @property
    def largest_square(self) -> Fraction:
        """Largest value of psi^2."""
        return max(end**2 for end in self.ends)

    @property
    def second_moment(self) -> Fraction:
        """Largest change of the mean of psi^2."""
        return self.largest_square / self.rows

    @property
    def variance_cap(self) -> Fraction:
        """Largest variance of psi over the rows (a quarter of the squared range)."""
        low, high = self.ends
        return (high - low) ** 2 / 4


@dataclass(frozen=True, slots=True, repr=False)
class PrivateArms:
    """A handle of the exact totals of two arms: what leaves it passes the gate.

    Attributes
    ----------
    unit : Fraction
        Length of one step of the numbers, in units of the outcome.
    width : Fraction
        B: numbers lie in [0, B], in units of the outcome.
    rows : int
        Number of rows, public.
    """

    _arms: TwoArms
    unit: Fraction
    width: Fraction

    @property
    def rows(self) -> int:
        """Number of rows, public."""
        return self._arms.count

    def release_share(self, gate: Gate) -> Released:
        """Return the released share treated."""
        share = Fraction(self._arms.treated.count, self.rows)
        return gate.release("share", share, mean_of_everyone(Fraction(1), self.rows))

    def release_mean(self, gate: Gate, name: str) -> Released:
        """Return the released mean of everyone."""
        return gate.release(name, self.mean(), mean_of_everyone(self.width, self.rows))

    def release_sums(self, gate: Gate) -> ReleasedVector:
        """Return the released sums of y - B / 2 of the treated, then of the others."""
        middle = self.width / 2
        sums = [
            arm.total * self.unit - arm.count * middle for arm in (self._arms.treated, self._arms.control)
        ]
        return gate.release_cells("centres", sums, both_sums(self.width))

    def release_contrast(
        self, gate: Gate, bounds: CentredContrast, names: tuple[str, str]
    ) -> tuple[Released, Released]:
        """Return the released means of psi and of psi^2 under these names."""
        first, second = self.moments(bounds)
        effect = gate.release(names[0], first, bounds.mean)
        return effect, gate.release(names[1], second, bounds.second_moment)

    def bounds(self, share: Fraction, centre: Fraction) -> CentredContrast:
        """Return how far a row moves the contrast around a released share and centre."""
        return CentredContrast(self.width, self.rows, share, centre)

    def moments(self, bounds: CentredContrast) -> tuple[Fraction, Fraction]:
        """Return the exact means of psi and of psi^2."""
        q = bounds.share
        treated = self._arms.treated
        control = self._arms.control
        # In steps: the numbers are `unit` times these.
        centre = bounds.centre / self.unit
        first = treated.centred_total(centre) / q - control.centred_total(centre) / (1 - q)
        second = treated.centred_squares(centre) / q**2 + control.centred_squares(centre) / (1 - q) ** 2
        return first * self.unit / self.rows, second * self.unit**2 / self.rows

    def mean(self) -> Fraction:
        """Return the exact mean of everyone."""
        return Fraction(self._arms.treated.total + self._arms.control.total, self.rows) * self.unit


def arm_sums(table: Table) -> Sums:
    """Return the six totals of outcomes of both arms."""
    return (arm_totals(table.treated, table.outcome).sums,)


def outcomes_by_arm(gate: Gate) -> PrivateArms:
    """Return the totals of the outcome; one pass over the rows."""
    source = gate.rows.batches
    study = source.study
    (sums,) = source.run(arm_sums)
    low, high = study.outcome_range
    return PrivateArms(TwoArms.of(sums, source.rows), outcome_unit(study.outcome_bounds), high - low)


# Proof: event_study.proof.md
def changes_by_arm(gate: Gate, place: int) -> list[PrivateArms]:
    """Return the totals of the changes of every period since the one at `place`, of people measured in all of them."""
    source = gate.rows.batches
    unit = change_unit(source.study)
    _, since = period_totals(source, place)
    return [PrivateArms(arms, unit, unit * OUTCOME_STEPS) for arms in since]

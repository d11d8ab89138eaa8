"""The contrasts of several outcomes in two private arms, released together.

For outcome j with numbers y in [0, B_j], in units of the outcome and from the lower end of its range,
released with noise are the mean of everyone, then the means of psi_j and of psi_j^2,

    psi_j = t (y - c_j) / q - (1 - t) (y - c_j) / (1 - q),

t = 1 for a treated row, 0 for another, q the released share treated and c_j a released centre of outcome j.
The mean of psi_j estimates the difference of the arms' means of outcome j. In come exact totals of private
rows, out come one noisy number for every outcome, with noise in proportion to one over the outcome's weight.

Why it is right: for each outcome one row moves the three means by at most the bounds of `CentredContrast`,
all outcomes at once; each of the three vectors is one release whose numbers may all move together, and the
plan (which names the releases and what part of the budget each pays) adds up the three.
Proof: `rows/moments/several_outcomes.proof.md`, with the bounds of `rows/moments/centred_contrast.proof.md`
and the noise of `rows/linear/several_outcomes.proof.md`.
"""

# Proof: several_outcomes.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.arm_totals import TwoArms
from counterveil.rows.moments.centred_contrast import CentredContrast, PrivateArms, mean_of_everyone
from counterveil.rows.outcome_numbers import Outcomes, totals_by_arm
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True, repr=False)
class PrivateOutcomes:
    """A handle of both arms' exact totals of every outcome: what leaves it passes the gate.

    Attributes
    ----------
    weights : sequence of Fraction
        Noise of an outcome is in proportion to one over its weight.
    """

    _outcomes: Sequence[PrivateArms]
    weights: Sequence[Fraction]

    @property
    def rows(self) -> int:
        """Number of rows, public."""
        return self._outcomes[0].rows

    @property
    def widths(self) -> list[Fraction]:
        """Widths of the outcomes' ranges, in their own units."""
        return [outcome.width for outcome in self._outcomes]

    @property
    def first(self) -> PrivateArms:
        """The first outcome's totals: the share treated is the same for all."""
        return self._outcomes[0]

    def release_means(self, gate: Gate) -> list[Released]:
        """Return every outcome's released mean of everyone."""
        means = [outcome.mean() for outcome in self._outcomes]
        bounds = [mean_of_everyone(outcome.width, self.rows) for outcome in self._outcomes]
        return gate.release_several("centre", means, bounds, self.weights)

    def bounds(self, share: Fraction, centres: Sequence[Fraction]) -> list[CentredContrast]:
        """Return how far a row moves every outcome's contrast around a released share and released centres."""
        return [
            outcome.bounds(share, centre) for outcome, centre in zip(self._outcomes, centres, strict=True)
        ]

    def release_contrasts(
        self, gate: Gate, bounds: Sequence[CentredContrast]
    ) -> tuple[list[Released], list[Released]]:
        """Return every outcome's released means of psi and of psi^2."""
        exact = [outcome.moments(bound) for outcome, bound in zip(self._outcomes, bounds, strict=True)]
        effects = gate.release_several(
            "contrast", [first for first, _ in exact], [bound.mean for bound in bounds], self.weights
        )
        squares = gate.release_several(
            "moment", [second for _, second in exact], [bound.second_moment for bound in bounds], self.weights
        )
        return effects, squares


def several_by_arm(gate: Gate, outcomes: Outcomes) -> PrivateOutcomes:
    """Return the totals of all outcomes, less slopes times earlier values where these were released; one pass."""
    totals = totals_by_arm(gate.rows.batches, outcomes)
    return PrivateOutcomes(
        [
            PrivateArms(TwoArms(treated, control), width / OUTCOME_STEPS, width)
            for (control, treated), width in zip(totals, outcomes.widths, strict=True)
        ],
        outcomes.weights,
    )

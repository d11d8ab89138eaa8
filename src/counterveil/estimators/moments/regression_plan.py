"""How the budget of `moments` is divided, and whether noise would hide them: public numbers alone.

Numbers of this module that are choices, and not derived, were set on the tuning designs of
`experiments/regressions`; privacy does not depend on them.

In: rows, columns and budget. Out: a plan, which names each release and the part of the budget that it pays,
and the expected noise of the moments (operator norm of the matrix noise, beside columns of variance one), by
which a request is judged: a symmetric d x d matrix whose entries have independent noise of standard deviation
sigma has an operator norm of about 2 sqrt(d) sigma. Shares of a plan add up to one, so that the releases
together spend the budget by composition. Nothing is released here; privacy of the releases:
`rows/moments/regression_moments.proof.md` and `rows/moments/outcome_moments.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from counterveil.privacy import Budget
from counterveil.rows.moments.regression_columns import Columns
from counterveil.session import Kind, Plan

# Percents of the budget for Gaussian noise and for pure; what is left is for the second matrix.
_PERCENTS = {
    False: {"centre": 5, "first reach": 2, "first moments": 15, "reach": 2},
    True: {"centre": 8, "first reach": 5, "first moments": 22, "reach": 5},
}
# The same where outcomes alone are private.
_OUTCOMES_PERCENTS = {
    False: {"centre": 3, "first reach": 2, "first moments": 12, "reach": 3},
    True: {"centre": 5, "first reach": 4, "first moments": 16, "reach": 5},
}
# Where robust errors are asked for: standard deviations that responses are not clipped below, and those of noise that
# moments must have before they predict responses.
_LEAST_WINDOW = 5.0
_LEAST_SIGNAL = 3.0
# The part of the budget that the middles of sandwiches have, all together.
ROBUST_SHARE = Fraction(1, 4)
# Of a sandwich's part, what the counts of its rows' lengths have.
_ROBUST_COUNTS = Fraction(1, 5)
# By how many standard deviations counts must show that no more are: for rows, and for responses whose mean is near an
# end of their range, as then few large values may carry it.
SHOWN = -1.0
SHOWN_OF_FEW = 2.0
# Squared lengths of standardised rows that are assumed before anything is known, in parts of their number of columns.
_USUAL_LENGTH = 1.8 * 1.75
# The largest noise of a matrix (its operator norm beside columns of variance one) and number of columns.
MOST_NOISE = 0.8
MOST_COLUMNS = 138


@dataclass(frozen=True, slots=True)
class CutShares:
    """Shares of rows that are weighted down, and of responses that are clipped, from some noise on.

    Attributes
    ----------
    least_noise : float
        Noise of an entry of the moments, in its sampling errors, from which on they hold.
    rows, responses : float
        Shares of all rows.
    """

    least_noise: float
    rows: float
    responses: float


# From much noise to none.
_CUT_SHARES = (
    CutShares(least_noise=0.3, rows=0.05, responses=0.0005),
    CutShares(least_noise=0.1, rows=0.02, responses=0.0005),
    CutShares(least_noise=0.01, rows=0.002, responses=0.0002),
    CutShares(least_noise=0.0, rows=0.0, responses=0.0),
)


def cut_shares(relative_noise: float) -> CutShares:
    """Return the shares for a noise of an entry, in its sampling errors."""
    return next(shares for shares in _CUT_SHARES if relative_noise >= shares.least_noise)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The public numbers that the split depends on.

    Attributes
    ----------
    rows : int
        Number of rows.
    columns : Columns
        What a row holds.
    budget : Budget
        Of all releases.
    mechanism : str
        Of the noise.
    robust : int
        Number of regressions whose sandwich is released too.
    """

    rows: int
    columns: Columns
    budget: Budget
    mechanism: str
    robust: int = 0

    @property
    def pure(self) -> bool:
        """Whether noise comes from the l2 ball rather than from the Gaussian mechanism."""
        return self.mechanism != "gaussian"

    @property
    def least_window(self) -> float:
        """Standard deviations that responses are not clipped below: of unequal variances more are far off."""
        return _LEAST_WINDOW if self.robust else 0.0

    @property
    def least_signal(self) -> float:
        """Standard deviations of noise that a moment must have to predict: else rare rows are clipped where it errs."""
        return _LEAST_SIGNAL if self.robust else 0.0

    @property
    def size(self) -> int:
        """Number of working columns: the constant and every column."""
        return 1 + len(self.columns.names)

    def plan(self) -> Plan:
        """Return the plan of the releases."""
        return self.split(_PERCENTS[self.pure])

    def split(self, percents: Mapping[str, int]) -> Plan:
        """Return the plan with these percents of what sandwiches leave; the rest is for the moments."""
        shares = {name: Fraction(percent, 100) for name, percent in percents.items()}
        shares |= {"moments": 1 - sum(shares.values(), Fraction(0))}
        if self.robust:
            remaining = 1 - ROBUST_SHARE
            shares = {name: remaining * share for name, share in shares.items()}
            of_sandwich = ROBUST_SHARE / self.robust
            for number in range(self.robust):
                shares |= {f"robust reach {number}": of_sandwich * _ROBUST_COUNTS}
                shares |= {f"robust {number}": of_sandwich * (1 - _ROBUST_COUNTS)}
        counts = Kind.CELLS if self.pure else Kind.VECTOR
        kinds = {name: counts if "reach" in name else Kind.VECTOR for name in shares}
        return Plan.split(self.budget, shares, self.mechanism, kinds)

    @property
    def noise(self) -> float:
        """The operator norm of the matrix's noise that is expected from public numbers."""
        return 2 * sqrt(self.size) * self.entry_noise

    @property
    def entry_noise(self) -> float:
        """The standard deviation of an entry's noise that is expected from public numbers."""
        return (1 + _USUAL_LENGTH * (self.size - 1)) * self.shortest_noise

    @property
    def shortest_noise(self) -> float:
        """The same for rows of length one, the shortest that there can be."""
        strength = self.rows * float(self.plan().amount("moments", Kind.VECTOR))
        entries = sqrt(self.size * (self.size + 1) / 2 + 1) if self.pure else 1.0
        return entries / strength

    @property
    def fewest_rows(self) -> int:
        """The number of rows from which the noise would not hide the moments."""
        return int(self.rows * self.noise / MOST_NOISE) + 1


def outcome_plan(design: RowPlan) -> Plan:
    """Return the plan of the releases."""
    return design.split(_OUTCOMES_PERCENTS[design.pure])

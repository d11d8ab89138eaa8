"""The steps of nearest-neighbour matching on a score: where the nearest donors lie, and one walk per direction.

Donors of one arm lie in places 1..m by ascending (score, row); places 0 and m+1 hold -inf and +inf
and stand for "none". `used[p]` counts a donor's uses; at its capacity it is closed. Where scores are equal,
`heads[p]` is the first place of those with the score of p; it is empty where no two are.

The nearest donors of a unit, open or not, are a window of places. As long as all donors of its window are open, a unit
takes them, and the walk reads nothing but their uses. Only where one is closed does the unit search, outwards from the
nearest open donors on both sides. These are found along links from closed places, which are halved on the way.

Why equal scores need one search only: a unit takes from a group of equal scores the open donors of
lowest row. By induction the uses within a group never increase along the rows, closed donors are the
first ones, and the group has an open donor exactly when its last one is open. So the group nearest on
the left is found through its last place, and is then taken from its first open place upwards. A window
that cuts a group at its left edge would take the wrong ones of it; such a unit searches.

The walk goes row by row: in C (`_walk.c`) where that was built, else in Python, to the same integers.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Flags, Floats

Places = NDArray[np.int32]


def find_heads(scores: Floats) -> Places:
    """Return for every place the first one of the same score."""
    new = np.append(True, scores[1:] != scores[:-1])
    return np.maximum.accumulate(np.where(new, np.arange(len(scores), dtype=np.int32), 0))


def find_starts(units: Floats, donors: Floats, width: int, tied: bool) -> Places:
    """Return for each unit's score the first place of a window of `width` places with the scores of its nearest donors.

    The nearest donors begin after place p where x is nearer to donor p + width than to donor p, which holds up to some
    place: it is sought by halves. Of windows with the same scores the last is taken.
    """
    last = len(donors) - 1 - width
    above = np.searchsorted(donors[1:-1], units).astype(np.int32) + np.int32(1)
    low = np.clip(above - width, 1, last)
    high = np.clip(above, 1, last)
    for _ in range(width.bit_length()):
        middle = (low + high) >> 1
        on = (low < high) & farther(units, donors[middle], donors[middle + width])
        low = np.where(on, middle + 1, low)
        high = np.where(on, high, middle)
    if tied:
        same = np.append(donors[1:last] == donors[1 + width : last + width], False)
        nearest = np.where(same, last, np.arange(1, last + 1))
        low = np.minimum.accumulate(nearest[::-1])[::-1][low - 1]
    return np.asarray(low, np.int32)


def farther(x: Floats, low: Floats, high: Floats) -> Flags:
    """Return where x - low > high - x, as real numbers, elementwise.

    Rounding keeps order, so unequal rounded distances decide. Equal ones are told apart by what the
    rounding of each subtraction lost, which float64 holds exactly (Knuth's two-sum).
    """
    to_low, to_high = x - low, high - x
    answer = to_low > to_high
    even = np.flatnonzero(to_low == to_high)
    for k in (even,) if len(even) else ():
        back = x[k] - to_low[k]
        lost_low = (x[k] - (to_low[k] + back)) + (back - low[k])
        back = high[k] - to_high[k]
        answer[k] = lost_low > (high[k] - (to_high[k] + back)) + (back - x[k])
    return np.asarray(answer)


def free_uses(starts: Places, positions: int, width: int, heads: Places) -> Places:
    """Return how often each place is used when no donor is ever closed.

    Where a window cuts a group of equal scores at its left edge, the donors taken are the group's first ones, not the
    last ones.
    """
    change = np.bincount(starts, minlength=positions)
    if len(heads):
        ends = np.append(np.flatnonzero(np.diff(heads)), positions - 1)
        last = ends[np.searchsorted(ends, starts)]
        inside = np.minimum(last - starts + 1, width)
        change += np.bincount(starts + inside, minlength=positions) - np.bincount(starts, minlength=positions)
        change += np.bincount(heads[starts], minlength=positions)
        change -= np.bincount(heads[starts] + inside, minlength=positions)
    change -= np.bincount(starts + width, minlength=positions)
    return np.cumsum(change, dtype=np.int32)


def not_farther(x: float, low: float, high: float) -> bool:
    """Return whether x - low <= high - x, as real numbers: not `farther`, of one number."""
    to_low, to_high = x - low, high - x
    if to_low != to_high:
        return to_low < to_high
    back = x - to_low
    lost_low = (x - (to_low + back)) + (back - low)
    back = high - to_high
    return lost_low <= (high - (to_high + back)) + (back - x)


def plain_walk(
    order: Places,
    treated: Flags,
    arm: bool,
    score: Floats,
    windows: Places,
    donors: Floats,
    heads: Places,
    width: int,
    capacity: int,
    used: Places,
    excess: Floats,
    sizes: Places,
) -> None:
    """Match the rows of one arm in the given order (ascending if `order` is empty) with `width` donors each.

    `windows` has two entries a row: how many donors are below it, and the first place of its nearest donors, 0 where
    these are not a window. Written are the uses and, where a row finds `size` < `width` donors, their shares 1/size
    beyond 1/width, by place; and by row the number of donors found.
    """
    rows = np.flatnonzero(treated == arm) if not len(order) else order[treated[order] == arm]
    # Plain Python reads lists several times faster than arrays.
    scores = donors.tolist()
    head = heads.tolist()
    count = used.tolist()
    none = len(donors) - 1
    below = list(range(none + 1))
    above = list(range(none + 1))
    is_open = none - 1
    matched = 0

    def open_at(link: list[int], donor: int) -> int:
        while link[donor] != donor:
            link[donor] = link[link[donor]]
            donor = link[donor]
        return donor

    def search(x: float, under: int) -> list[int]:
        chosen: list[int] = []
        end = open_at(below, under)
        right = open_at(above, under + 1)
        lower = open_at(above, head[end]) if head else end
        while len(chosen) < width:
            if lower > 0 and (right == none or not_farther(x, scores[lower], scores[right])):
                chosen.append(lower)
                if lower < end:
                    lower += 1
                    continue
                end = open_at(below, (head[lower] if head else lower) - 1)
                lower = open_at(above, head[end]) if head else end
            elif right < none:
                chosen.append(right)
                right = open_at(above, right + 1)
            else:
                break
        return chosen

    ends = windows.reshape(-1, 2)[rows].tolist()
    for row, x, (under, first) in zip(rows.tolist(), score[rows].tolist(), ends, strict=True):
        if is_open == 0:
            break
        single_block = first > 0 and max(count[first : first + width]) < capacity
        chosen = range(first, first + width) if single_block else search(x, under)
        matched = len(chosen)
        for donor in chosen:
            count[donor] += 1
            if count[donor] == capacity:
                is_open -= 1
                below[donor], above[donor] = donor - 1, donor + 1
            if matched < width:
                excess[donor] += 1.0 / matched - 1.0 / width
        sizes[row] = matched
    used[:] = count


walk = plain_walk
with suppress(ImportError):
    walk = import_module("counterveil.numerics._walk").walk


# Nearest-neighbour matching on a score with a limit on how often each unit may be used.
#
# Every unit of one arm looks for its `neighbours` nearest units ("donors") in the other arm, the units being served
# in a given order. A donor that has been used `capacity` times is closed and no longer found. Nearness is the
# distance of scores as real numbers, without rounding; of two donors equally near the one of lower score comes first,
# of equal scores the one of lower row. When fewer than `neighbours` donors are open the match set P(i) is smaller,
# and it may be empty.
#
# The estimate is linear in the outcomes. With s_i = +1 for treated and -1 for control units, A the units that are
# averaged over (ATE: all, ATT: treated, ATC: control), A' those of A with a match and K_i = sum over j in A' with i
# in P(j) of 1/|P(j)|,
#
# tau = (1/|A'|) sum over j in A' of s_j (Y_j - mean of Y over P(j)) = sum_i c_i Y_i, c_i = s_i (1[i in A'] + K_i) /
# |A'|.
#
# A unit of A without a match is left out of both sums and of the divisor; it may still be a donor. If no unit has a
# match every c_i is zero.
#
# Cost: a sort, then a fixed number of steps per match, and a few more where the nearest donors are closed (see
# `match_walk`); without a limit, a window of the sorted scores for each unit. Memory is a fixed number of bytes per
# row.


LARGEST_N = 2**31 - 3  # places are 32-bit integers, two of them are sentinels

# Which arms' units look for donors.
_SEEKERS = {"ATE": (True, False), "ATT": (True,), "ATC": (False,)}


@dataclass(frozen=True, slots=True)
class MatchedUnits:
    """The coefficients of a matching estimate and what happened on the way; arrays have one entry a row.

    `coefficients`: c_i. `uses`: how often the row was a donor. `sizes`: how many donors it found
    (0 as well for a row that did not look). `units`: rows that looked for donors; `kept`: those that
    found one; `short`: those of the kept that found fewer than `neighbours`. `at_limit`: the share of
    all matches that went to a donor which ended at its limit (0 without a limit).
    """

    coefficients: NDArray[np.float64]
    uses: NDArray[np.int32]
    sizes: NDArray[np.int32]
    units: int
    kept: int
    short: int
    at_limit: float

    @property
    def unmatched(self) -> int:
        """Number of units that looked for donors and found none."""
        return self.units - self.kept

    @property
    def largest(self) -> float:
        """The largest |c_i|: how far the estimate moves per unit of one outcome."""
        return max(float(self.coefficients.max(initial=0.0)), -float(self.coefficients.min(initial=0.0)))


@dataclass(frozen=True, slots=True)
class _Arm:
    """Rows and scores of one arm by ascending (score, row), with a sentinel before and after.

    `heads` are the first places of equal scores, empty where no two are equal.
    """

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    heads: NDArray[np.int32]

    @classmethod
    def of(cls, rows: NDArray[np.int32], score: NDArray[np.float64]) -> _Arm:
        """Return the arm of these rows, which are sorted by their scores (n,)."""
        padded = np.concatenate([[-np.inf], score[rows], [np.inf]])
        tied = (padded[1:] == padded[:-1]).any()
        heads = find_heads(padded) if tied else np.empty(0, np.int32)
        return cls(np.pad(rows, 1), padded, heads)

    @property
    def count(self) -> int:
        return len(self.rows) - 2


def matching_coefficients(
    treated: NDArray[np.bool_],
    score: NDArray[np.float64],
    neighbours: int,
    capacity_treated: int | None = None,
    capacity_control: int | None = None,
    order: NDArray[np.integer] | None = None,
    estimand: str = "ATE",
) -> MatchedUnits:
    """Return the coefficient of every outcome in the matching estimate.

    `treated` and `score` have one entry a row, scores are finite. `capacity_treated` is how often one
    treated row may be a donor, `capacity_control` the same for control rows; None is unlimited.
    `order` is the permutation in which rows are served, ascending rows if None; it matters only under
    a limit.
    """
    return SortedArms(treated, score, order).match(neighbours, capacity_treated, capacity_control, estimand)


class SortedArms:
    """Rows sorted by score and split into arms, from which matchings of any kind are made."""

    def __init__(
        self,
        treated: NDArray[np.bool_],
        score: NDArray[np.float64],
        order: NDArray[np.integer] | None = None,
    ) -> None:
        _check_rows(len(treated), len(score), order)
        self.treated = np.ascontiguousarray(treated, np.bool_)
        self.score = np.ascontiguousarray(score, np.float64)
        self.order = np.empty(0, np.int32) if order is None else np.ascontiguousarray(order, np.int32)
        rows = np.argsort(self.score, kind="stable").astype(np.int32)
        if len(rows) and not np.isfinite(self.score[rows[[0, -1]]]).all():
            raise refusal("CV-X300")
        self.arms = {arm: _Arm.of(rows[self.treated[rows] == arm], self.score) for arm in (True, False)}
        self.windows = np.empty((0, 2), np.int32)
        self.widths = {True: 0, False: 0}
        # Where the nearest donors lie, and how often each place is used without a limit, by arm and number of them.
        self.found: dict[tuple[bool, int], NDArray[np.int32]] = {}
        self.free: dict[tuple[bool, int], NDArray[np.int32]] = {}

    def match(
        self,
        neighbours: int,
        capacity_treated: int | None = None,
        capacity_control: int | None = None,
        estimand: str = "ATE",
    ) -> MatchedUnits:
        """Return the coefficient of every outcome; the same rule and arguments as `matching_coefficients`."""
        _check(neighbours, estimand)
        n = len(self.treated)
        uses, sizes = np.zeros(n, np.int32), np.zeros(n, np.int32)
        excesses = []
        matches = 0
        at_limit = 0
        for arm in _SEEKERS[estimand]:
            units = self.arms[arm]
            donors = self.arms[not arm]
            capacity = _capacity(capacity_control if arm else capacity_treated)
            if capacity is None or capacity >= units.count or self.never_full(arm, neighbours, capacity):
                used = self.unlimited(arm, neighbours, sizes)
            else:
                used, excess = self.limited(arm, neighbours, capacity, sizes)
                if excess.any():
                    excesses.append((donors, excess))
            uses[donors.rows[1:-1]] = used[1:-1]
            matches += int(used[1:-1].sum(dtype=np.int64))
            at_limit += (capacity or 0) * int(np.count_nonzero(used[1:-1] == capacity))
        matched = int(np.count_nonzero(sizes))
        return MatchedUnits(
            coefficients=self.coefficients(neighbours, sizes, uses, excesses, matched),
            uses=uses,
            sizes=sizes,
            units=sum(self.arms[arm].count for arm in _SEEKERS[estimand]),
            kept=matched,
            short=matched - int(np.count_nonzero(sizes == neighbours)),
            at_limit=at_limit / matches if matches else 0.0,
        )

    def by_score(self, arm: bool) -> NDArray[np.int32]:
        """Return the rows of one arm, treated or not, by ascending (score, row)."""
        return self.arms[arm].rows[1:-1]

    def most_uses(self, neighbours: int, estimand: str) -> int:
        """Return how often the row that is used most is a donor when there is no limit."""
        _check(neighbours, estimand)
        return max(
            int(self.free_uses(arm, neighbours).max()) if self.arms[arm].count else 0
            for arm in _SEEKERS[estimand]
        )

    def never_full(self, arm: bool, neighbours: int, capacity: int) -> bool:
        """Return whether it is known that no donor would be used more often without the limit."""
        used = self.free.get((arm, neighbours))
        return used is not None and capacity >= used.max()

    def unlimited(self, arm: bool, neighbours: int, sizes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how often each place is used when donors are never closed; not to be written to."""
        np.copyto(sizes, min(neighbours, self.arms[not arm].count), where=self.treated == arm)
        return self.free_uses(arm, neighbours)

    def free_uses(self, arm: bool, neighbours: int) -> NDArray[np.int32]:
        """Return how often each place is used when donors are never closed, found when first asked for."""
        if (arm, neighbours) not in self.free:
            donors = self.arms[not arm]
            full = min(neighbours, donors.count)
            positions = donors.count + 2
            self.free[arm, neighbours] = (
                free_uses(self.starts(arm, full), positions, full, donors.heads)
                if full
                else np.zeros(positions, np.int32)
            )
        return self.free[arm, neighbours]

    def limited(
        self, arm: bool, neighbours: int, capacity: int, sizes: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return how often each place was used when one arm was served, and its shares beyond uses/full."""
        donors = self.arms[not arm]
        full = min(neighbours, donors.count)
        positions = donors.count + 2
        used = np.zeros(positions, np.int32)
        excess = np.zeros(positions)
        if full:
            self.find_windows(arm, full)
            given = (self.order, self.treated, arm, self.score, self.windows, donors.scores, donors.heads)
            walk(*given, full, capacity, used, excess, sizes)
        return used, excess

    def starts(self, arm: bool, width: int) -> NDArray[np.int32]:
        """Return where the nearest donors of one arm's units lie, these by ascending (score, row)."""
        if (arm, width) not in self.found:
            units = self.arms[arm]
            donors = self.arms[not arm]
            tied = len(donors.heads) > 0
            self.found[arm, width] = find_starts(units.scores[1:-1], donors.scores, width, tied)
        return self.found[arm, width]

    def find_windows(self, arm: bool, width: int) -> None:
        """Find how many donors are below each of one arm's units, and their windows, unless that is known."""
        if not len(self.windows):
            self.windows = np.empty((len(self.treated), 2), np.int32)
        if self.widths[arm] != width:
            units = self.arms[arm]
            donors = self.arms[not arm]
            starts = self.starts(arm, width)
            distinct = donors.scores[starts - 1] != donors.scores[starts]
            below = np.searchsorted(donors.scores[1:-1], units.scores[1:-1])
            self.windows[units.rows[1:-1]] = np.stack([below, np.where(distinct, starts, 0)], axis=1)
            self.widths[arm] = width

    def coefficients(
        self,
        neighbours: int,
        sizes: NDArray[np.int32],
        uses: NDArray[np.int32],
        excesses: list[tuple[_Arm, NDArray[np.float64]]],
        kept: int,
    ) -> NDArray[np.float64]:
        """Return s_i (1[kept] + K_i) / kept; `excesses` are shares beyond uses/full, by the places of an arm."""
        full = [max(1, min(neighbours, self.arms[arm].count)) for arm in (True, False)]
        answer = (sizes > 0) + uses / np.where(self.treated, *full)
        answer *= np.where(self.treated, 1.0, -1.0)
        for donors, excess in excesses:
            over = np.flatnonzero(excess)
            sign = 1.0 if donors is self.arms[True] else -1.0
            answer[donors.rows[over]] += sign * excess[over]
        answer /= max(kept, 1)
        return np.asarray(answer)


def _capacity(capacity: int | None) -> int | None:
    if capacity is not None and capacity < 1:
        raise _refusal("a capacity of at least 1, or None for no limit", f"capacity={capacity}")
    return capacity


def _check_rows(n: int, scores: int, order: NDArray[np.integer] | None) -> None:
    if n != scores or n > LARGEST_N:
        raise _refusal(f"one score a row and at most {LARGEST_N} rows", f"{n} rows, {scores} scores")
    if order is not None and not _names_all(order, n):
        raise _refusal("an order that names every row once", f"an order of length {len(order)} for {n} rows")


def _check(neighbours: int, estimand: str) -> None:
    if neighbours < 1:
        raise _refusal("at least one neighbour", f"neighbours={neighbours}")
    if estimand not in _SEEKERS:
        raise _refusal("ATE, ATT or ATC", f"estimand={estimand!r}")


def _names_all(order: NDArray[np.integer], n: int) -> bool:
    """Return whether `order` is a permutation of 0..n-1."""
    if len(order) != n or n == 0:
        return len(order) == n
    seen = np.zeros(n, np.bool_)
    if order.min() < 0 or order.max() >= n:
        return False
    seen[order] = True
    return bool(seen.all())


def _refusal(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P300", expected=expected, got=got)


# The adaptive limit on how often a unit may be used in matching (PrivATE, equations 9 to 12).
#
# The error of a sum is modelled as noise of variance 2 k^2 B^2/epsilon^2 plus a squared bias
# (c B n_1 M_1/k)^2, n_1 being the size of the larger arm and M_1 the largest number of uses under
# unlimited matching divided by the number of neighbours. The paper states k* = sqrt(epsilon c n_1 M_1 / 2);
# the minimum of its own model has sqrt(2) in place of 2, which is 19 % larger. The paper's value is used.


def adaptive_limit(epsilon: float, c: float, n_larger: int, M1: float, *, capped: bool = True) -> int:
    """Return k_f, the limit in units of neighbours of the smaller arm.

    Equation 9 rounded (halves up) to at least 1 and, if `capped` (equation 10), to at most the whole
    part of M1, which again is taken as at least 1; equation 12 has no cap.
    """
    k = max(1, math.floor(math.sqrt(epsilon * c * n_larger * M1 / 2) + 0.5))
    return min(k, max(1, math.floor(M1))) if capped else k


def arm_limits(limit: int, n_treated: int, n_control: int) -> tuple[int, int]:
    """Return (k_1, k_2), the limits of treated and control donors in units of neighbours.

    The smaller arm, whose units are used more often, has the limit itself; the larger one that limit
    times the ratio of sizes, rounded (halves up) to at least 1. Capacities are k_1 N and k_2 N.
    """
    small, large = sorted((n_treated, n_control))
    other_limit = max(1, math.floor(limit * small / large + 0.5)) if large else limit
    return (limit, other_limit) if n_treated <= n_control else (other_limit, limit)

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

from contextlib import suppress
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

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
    low, high = np.clip(above - width, 1, last), np.clip(above, 1, last)
    for _ in range(width.bit_length()):
        middle = (low + high) >> 1
        on = (low < high) & farther(units, donors[middle], donors[middle + width])
        low, high = np.where(on, middle + 1, low), np.where(on, high, middle)
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


def free_uses(starts: Places, places: int, width: int, heads: Places) -> Places:
    """Return how often each place is used when no donor is ever closed.

    Where a window cuts a group of equal scores at its left edge, the donors taken are the group's first ones, not the
    last ones.
    """
    change = np.bincount(starts, minlength=places)
    if len(heads):
        ends = np.append(np.flatnonzero(np.diff(heads)), places - 1)
        last = ends[np.searchsorted(ends, starts)]
        inside = np.minimum(last - starts + 1, width)
        change += np.bincount(starts + inside, minlength=places) - np.bincount(starts, minlength=places)
        change += np.bincount(heads[starts], minlength=places)
        change -= np.bincount(heads[starts] + inside, minlength=places)
    change -= np.bincount(starts + width, minlength=places)
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
    scores, head, count, none = donors.tolist(), heads.tolist(), used.tolist(), len(donors) - 1
    below, above, is_open, found = list(range(none + 1)), list(range(none + 1)), none - 1, 0

    def open_at(link: list[int], place: int) -> int:
        while link[place] != place:
            link[place] = link[link[place]]
            place = link[place]
        return place

    def search(x: float, under: int) -> list[int]:
        chosen: list[int] = []
        end, right = open_at(below, under), open_at(above, under + 1)
        left = open_at(above, head[end]) if head else end
        while len(chosen) < width:
            if left > 0 and (right == none or not_farther(x, scores[left], scores[right])):
                chosen.append(left)
                if left < end:
                    left += 1
                    continue
                end = open_at(below, (head[left] if head else left) - 1)
                left = open_at(above, head[end]) if head else end
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
        whole = first > 0 and max(count[first : first + width]) < capacity
        chosen = range(first, first + width) if whole else search(x, under)
        found = len(chosen)
        for place in chosen:
            count[place] += 1
            if count[place] == capacity:
                is_open -= 1
                below[place], above[place] = place - 1, place + 1
            if found < width:
                excess[place] += 1.0 / found - 1.0 / width
        sizes[row] = found
    used[:] = count


walk = plain_walk
with suppress(ImportError):
    walk = import_module("counterveil.numerics._walk").walk

"""The loops of nearest-neighbour matching on a score: one pass for the arms, one walk per direction.

Donors of one arm lie in places 1..m by ascending (score, row); places 0 and m+1 hold -inf and +inf
and stand for "none". A donor is a record of 16 bytes, so that a walk touches few lines of memory: its
score (`scores[2p]`, the records seen as float64) and two integers (the records seen as int32). While the donor
is open both are negative and `links[4p + LEFT]` is -1 minus its uses; once it is closed they lead towards the
last open donor before p and, `links[4p + RIGHT]`, the first open one after it. Where scores are equal,
`heads[p]` is the first place of those with the score of p; it is empty where no two are.

A donor that reaches its capacity is closed by pointing its links one place further. Following links
shortens them (path halving), so that u uses among m donors cost O(m + u log_{2 + u/m} m) steps in the
worst case and a small constant each in practice.

Why equal scores need one walk only: a unit takes from a group of equal scores the open donors of
lowest row. By induction the uses within a group never increase along the rows, closed donors are the
first ones, and the group has an open donor exactly when its last one is open. So the group nearest on
the left is found through its last place, and is then walked from its first open place upwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

# Rows whose donors are read ahead together: enough to keep the memory busy, few enough to stay in cache.
BATCH = 128

LEFT, RIGHT = 2, 3


@compiled
def split(
    marks: Integers,
    scores: Floats,
    place: Integers,
    treated_rows: Integers,
    treated_scores: Floats,
    control_rows: Integers,
    control_scores: Floats,
) -> None:
    """Write both arms' rows and scores, and for each row how many of the other arm lie strictly below it."""
    in_treated = in_control = 0
    below_treated = below_control = 0
    for i in range(len(marks)):
        mark, score = marks[i], scores[i]
        if i > 0 and score != scores[i - 1]:
            below_treated, below_control = in_treated, in_control
        if mark >= 0:
            place[mark] = below_control
            in_treated += 1
            treated_rows[in_treated] = mark
            treated_scores[in_treated] = score
        else:
            row = -1 - mark
            place[row] = below_treated
            in_control += 1
            control_rows[in_control] = row
            control_scores[in_control] = score


@compiled
def lay_out(donor_score: Floats, links: Integers) -> bool:
    """Write the links in which every donor is open and unused; return whether any two scores are equal."""
    ties = False
    for place in range(len(donor_score)):
        if place > 0 and donor_score[place] == donor_score[place - 1]:
            ties = True
        links[4 * place + LEFT] = -1
        links[4 * place + RIGHT] = -1
    return ties


@compiled
def find_heads(donor_score: Floats, heads: Integers) -> None:
    """Write for every place the first one of the same score."""
    head = 0
    for place in range(len(donor_score)):
        if place == 0 or donor_score[place] != donor_score[place - 1]:
            head = place
        heads[place] = head


@compiled
def count_uses(links: Integers, capacity: int, donor_rows: Integers, uses: Integers) -> int:
    """Write each donor's number of uses at its row; return how many were used as often as allowed, and closed."""
    closed = 0
    for place in range(1, len(donor_rows) - 1):
        left = links[4 * place + LEFT]
        if left >= 0:
            closed += 1
        uses[donor_rows[place]] = capacity if left >= 0 else -1 - left
    return closed


@compiled
def not_farther(x: float, low: float, high: float) -> bool:
    """Return whether x - low <= high - x, as real numbers.

    Rounding keeps order, so unequal rounded distances decide. Equal ones are told apart by what the
    rounding of each subtraction lost, which float64 holds exactly (Knuth's two-sum).
    """
    to_low, to_high = x - low, high - x
    if to_low != to_high:
        return to_low < to_high
    back = x - to_low
    lost_low = (x - (to_low + back)) + (back - low)
    back = high - to_high
    lost_high = (high - (to_high + back)) + (back - x)
    return lost_low <= lost_high


@compiled
def open_at_or_below(links: Integers, place: int) -> int:
    """Return the last open place at or before this one; 0 if there is none."""
    while True:
        near = links[4 * place + LEFT]
        if near < 0:
            return place
        further = links[4 * near + LEFT]
        if further < 0:
            return int(near)
        links[4 * place + LEFT] = further
        place = further


@compiled
def open_at_or_above(links: Integers, place: int) -> int:
    """Return the first open place at or after this one; m+1 if there is none."""
    while True:
        near = links[4 * place + RIGHT]
        if near < 0:
            return place
        further = links[4 * near + RIGHT]
        if further < 0:
            return int(near)
        links[4 * place + RIGHT] = further
        place = further


@compiled
def choose(
    x: float,
    below: int,
    above: int,
    neighbours: int,
    scores: Floats,
    heads: Integers,
    links: Integers,
    chosen: Integers,
) -> int:
    """Return how many open donors were found; `chosen` has their places, nearest first.

    `below` and `above` are places with no open donor between them and x.
    """
    none_right = len(scores) // 2 - 1
    ties = len(heads) > 0
    group_end = open_at_or_below(links, below)
    left = open_at_or_above(links, heads[group_end]) if ties else group_end
    right = open_at_or_above(links, above)
    size = 0
    while True:
        if left > 0 and (right == none_right or not_farther(x, scores[2 * left], scores[2 * right])):
            chosen[size] = left
            size += 1
            if size == neighbours:
                break
            if left < group_end:
                left += 1
            elif ties:
                group_end = open_at_or_below(links, heads[left] - 1)
                left = open_at_or_above(links, heads[group_end])
            else:
                left = group_end = open_at_or_below(links, left - 1)
        elif right < none_right:
            chosen[size] = right
            size += 1
            if size == neighbours:
                break
            right = open_at_or_above(links, right + 1)
        else:
            break
    return size


@compiled
def use(capacity: int, full: int, size: int, links: Integers, excess: Floats, chosen: Integers) -> int:
    """Count one use of each chosen donor, note shares above 1/full; return how many reach their capacity and close."""
    closed = 0
    for k in range(size):
        donor = chosen[k]
        uses = -links[4 * donor + LEFT]
        if uses >= capacity:
            closed += 1
            links[4 * donor + LEFT] = donor - 1
            links[4 * donor + RIGHT] = donor + 1
        else:
            links[4 * donor + LEFT] = -1 - uses
        if size < full:
            excess[donor] += 1.0 / size - 1.0 / full
    return closed


@compiled
def read_ahead(place: Integers, filled: int, links: Integers, batch: Integers) -> int:
    """Find where each row of the batch starts to look, and return a checksum of the memory touched.

    Independent loads wait for memory together; the walks would wait for theirs in turn. The places
    found stay right while donors are being closed: a closed donor is only ever passed over.
    """
    last = len(links) // 4 - 1
    touched = 0
    for i in range(filled):
        below = place[batch[i]]
        touched += links[4 * max(below - 3, 0) + LEFT] + links[4 * below + LEFT]
        touched += links[4 * min(below + 3, last) + LEFT]
    for i in range(filled):
        below = place[batch[i]]
        left = open_at_or_below(links, below)
        right = open_at_or_above(links, below + 1)
        touched += links[4 * max(left - 3, 0) + LEFT] + links[4 * min(right + 3, last) + LEFT]
        batch[BATCH + i] = left
        batch[2 * BATCH + i] = right
    return touched


@compiled
def walk(
    order: Integers,
    treated: Flags,
    arm: bool,
    score: Floats,
    place: Integers,
    scores: Floats,
    heads: Integers,
    donor_rows: Integers,
    neighbours: int,
    capacity: int,
    links: Integers,
    excess: Floats,
    sizes: Integers,
    sets: Integers,
    chosen: Integers,
    batch: Integers,
) -> int:
    """Match the rows of one arm in the given order (ascending if `order` is empty); return a checksum.

    `sets` receives the donors' rows of row i from neighbours * i on, unless it is empty.
    """
    is_open = len(scores) // 2 - 2
    full = min(neighbours, is_open)
    touched = 0
    start = 0
    # Once every donor is closed nobody finds one.
    while start < len(treated) and is_open > 0:
        filled = 0
        while start < len(treated) and filled < BATCH:
            row = order[start] if len(order) > 0 else start
            start += 1
            if treated[row] == arm:
                batch[filled] = row
                filled += 1
        touched += read_ahead(place, filled, links, batch)
        for i in range(filled):
            row = batch[i]
            left, right = batch[BATCH + i], batch[2 * BATCH + i]
            size = choose(score[row], left, right, neighbours, scores, heads, links, chosen)
            is_open -= use(capacity, full, size, links, excess, chosen)
            sizes[row] = size
            if len(sets) > 0:
                for k in range(size):
                    sets[neighbours * row + k] = donor_rows[chosen[k]]
    return touched


@compiled
def slide(unit_score: Floats, donor_score: Floats, width: int, change: Integers) -> None:
    """Write the steps of the uses along the places when no donor is ever closed.

    The scores of the `width` nearest donors are a window of the sorted scores that moves right as the
    unit's score grows. Where the window cuts a group of equal scores at its left edge, the donors
    taken are the group's first ones, not the last ones.
    """
    start = head = end = 1
    places = len(donor_score) - 2
    for i in range(1, len(unit_score) - 1):
        x = unit_score[i]
        while start + width <= places and (
            donor_score[start] == donor_score[start + width]
            or not not_farther(x, donor_score[start], donor_score[start + width])
        ):
            start += 1
            if donor_score[start] != donor_score[head]:
                head = start
        if end < start:
            end = start
        while donor_score[end + 1] == donor_score[end] and end - start < width:
            end += 1
        inside = min(end - start + 1, width)
        change[head] += 1
        change[head + inside] -= 1
        change[start + inside] += 1
        change[start + width] -= 1


@compiled
def spread(donor_rows: Integers, used: Integers, uses: Integers) -> None:
    """Write each donor's number of uses at its row."""
    for place in range(1, len(used) - 1):
        uses[donor_rows[place]] = used[place]


@compiled
def weigh(
    treated: Flags,
    sizes: Integers,
    uses: Integers,
    full_treated: int,
    full_control: int,
    coefficients: Floats,
) -> None:
    """Write s_i (1[row i found a donor] + uses_i / full), full being that of the donor's own arm."""
    for i in range(len(treated)):
        own = 1.0 if sizes[i] > 0 else 0.0
        if treated[i]:
            coefficients[i] = own + uses[i] / full_treated
        else:
            coefficients[i] = -own - uses[i] / full_control

"""The loops of nearest-neighbour matching on a score: one pass for the arms, one walk per direction.

Donors of one arm lie in places 1..m by ascending (score, row); places 0 and m+1 hold -inf and +inf
and stand for "none". `used[p]` counts a donor's uses; at its capacity it is closed, which `words` keeps as
well (see `open_at_or_below`). Where scores are equal, `heads[p]` is the first place of those with the score of p;
it is empty where no two are.

The nearest donors of a unit, open or not, are a window of places. Windows slide along the sorted scores,
so they are found in one pass before the walk; as long as all donors of its window are open, a unit takes
them, and the walk reads nothing but their uses. Only where one is closed does the unit search, outwards
from the nearest open donors on both sides.

Why equal scores need one search only: a unit takes from a group of equal scores the open donors of
lowest row. By induction the uses within a group never increase along the rows, closed donors are the
first ones, and the group has an open donor exactly when its last one is open. So the group nearest on
the left is found through its last place, and is then taken from its first open place upwards. A window
that cuts a group at its left edge would take the wrong ones of it; such a unit searches.

Which places of a line are open: bits, and over them bits that say which words of bits have one.

A word holds 32 places. Level 0 has a bit for every place, each level above a bit for every word of the
level below, up to a level of one word. The nearest open place on either side is found by going up while
words are empty and down again; closing a place clears its bit and those of words that become empty. Level
0 takes an eighth of a byte a place, so all of it stays in cache where links from place to place would not.
The first and the last place are never closed, so that a search always ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Flags, Floats, bit_scans, compiled, is_compiled, run

_ALL = 2**32 - 1

highest_bit, lowest_bit = bit_scans()


def all_open(places: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the words of all levels when every place is open, and where each level starts."""
    parts, starts, start = [], [], 0
    while True:
        words = np.full(-(-places // 32), _ALL, np.uint32)
        words[-1] = _ALL >> (-places % 32)
        parts.append(words)
        starts.append(start)
        if len(words) == 1:
            return np.concatenate(parts), np.array(starts, np.int64)
        start, places = start + len(words), len(words)


@compiled
def open_at_or_below(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> int:
    """Return the last open place at or before this one."""
    level = 0
    word = place >> 5
    bits = words[word] & ((2 << (place & 31)) - 1)
    while bits == 0:
        level += 1
        place = word - 1
        word = place >> 5
        bits = words[levels[level] + word] & ((2 << (place & 31)) - 1)
    place = (word << 5) + highest_bit(bits)
    while level > 0:
        level -= 1
        place = (place << 5) + highest_bit(words[levels[level] + place])
    return place


@compiled
def open_at_or_above(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> int:
    """Return the first open place at or after this one."""
    level = 0
    word = place >> 5
    bits = words[word] & (_ALL << (place & 31))
    while bits == 0:
        level += 1
        place = word + 1
        word = place >> 5
        bits = words[levels[level] + word] & (_ALL << (place & 31))
    place = (word << 5) + lowest_bit(bits)
    while level > 0:
        level -= 1
        place = (place << 5) + lowest_bit(words[levels[level] + place])
    return place


@compiled
def close(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> None:
    """Close an open place."""
    for level in range(len(levels)):
        word = levels[level] + (place >> 5)
        words[word] &= ~(1 << (place & 31))
        if words[word] != 0:
            break
        place >>= 5


# Rows in the order of a score: a radix sort, linear in the number of rows, equal scores in row order.
#
# The bits of a float64, with the sign bit flipped for positive numbers and all bits flipped for
# negative ones, are unsigned integers in the same order as the numbers. They are sorted byte by
# byte, less significant ones first; each pass keeps the order of the passes before it, so equal scores
# stay in the order of their rows. A byte that is the same in all rows costs nothing. The lowest bytes
# rarely decide: they are left out, and keys still out of order are moved one by one. Where that takes
# many moves the keys are sorted again by all bytes.


# Below this a comparison sort is as fast.
SMALLEST_RADIX = 2048
_SIGN = -(2**63)
# Bytes left out at first, and how many moves a row then make all bytes worth their passes.
_LEFT_OUT = 3
_MOVES = 2


def marks_by_score(
    score: NDArray[np.float64], treated: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (marks, scores) by ascending (score, row): row i is marked i if treated and -1-i if not.

    Scores are finite and there are fewer than 2**31 of them. Carrying the arm in the sign spares a
    random look-up per row later.
    """
    n = len(score)
    if n < SMALLEST_RADIX or not is_compiled(radix):
        rows = np.argsort(score, kind="stable").astype(np.int32)
        return np.where(treated[rows], rows, ~rows), score[rows]
    keys, spare_keys = np.empty(n, np.uint64), np.empty(n, np.uint64)
    marks, spare_marks = np.empty(n, np.int32), np.empty(n, np.int32)
    run(to_keys, (score.view(np.int64), treated), (keys.view(np.int64), marks))
    counts = np.zeros((8, 256), np.int64)
    run(count_bytes, (keys,), (counts,))
    for first in (_LEFT_OUT, 0):
        if run(radix, (first, counts), (keys, marks, spare_keys, spare_marks)) % 2:
            keys, marks, spare_keys, spare_marks = spare_keys, spare_marks, keys, marks
        if run(settle, (_MOVES * n,), (keys, marks)):
            break
    bits = keys.view(np.int64)
    run(to_bits, (), (bits,))
    return marks, bits.view(np.float64)


@compiled
def to_keys(
    bits: NDArray[np.int64], treated: NDArray[np.bool_], keys: NDArray[np.int64], marks: NDArray[np.int32]
) -> None:
    """Write the sortable keys of floats given as bits, and the marks of their rows."""
    for i in range(len(bits)):
        bit = bits[i]
        if bit == _SIGN:
            bit = 0  # -0.0 and 0.0 are equal scores
        keys[i] = bit ^ ((bit >> 63) | _SIGN)
        marks[i] = i if treated[i] else -1 - i


@compiled
def to_bits(keys: NDArray[np.int64]) -> None:
    """Turn sortable keys back into the bits of floats, in place."""
    for i in range(len(keys)):
        keys[i] ^= _SIGN if keys[i] < 0 else -1


@compiled
def count_bytes(keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Add how often each value of each byte occurs."""
    for i in range(len(keys)):
        key = keys[i]
        for byte in range(8):
            counts[byte, (key >> np.uint64(8 * byte)) & np.uint64(255)] += 1


@compiled
def radix(
    first: int,
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    marks: NDArray[np.int32],
    other_keys: NDArray[np.uint64],
    other_marks: NDArray[np.int32],
) -> int:
    """Sort by the bytes from `first` on; return the number of passes.

    After an odd number of passes the keys and marks are in the other pair.
    """
    n = len(keys)
    passes = 0
    for byte in range(first, 8):
        shift = np.uint64(8 * byte)
        if counts[byte, (keys[0] >> shift) & np.uint64(255)] == n:
            continue
        starts = np.cumsum(counts[byte]) - counts[byte]
        for i in range(n):
            digit = (keys[i] >> shift) & np.uint64(255)
            place = starts[digit]
            starts[digit] = place + 1
            other_keys[place] = keys[i]
            other_marks[place] = marks[i]
        keys, other_keys = other_keys, keys
        marks, other_marks = other_marks, marks
        passes += 1
    return passes


@compiled
def settle(limit: int, keys: NDArray[np.uint64], marks: NDArray[np.int32]) -> bool:
    """Put keys that are almost in order in order; return False if more moves than the limit are needed."""
    moves = 0
    for i in range(1, len(keys)):
        key = keys[i]
        if keys[i - 1] <= key:
            continue
        mark, place = marks[i], i
        while place > 0 and keys[place - 1] > key:
            keys[place], marks[place] = keys[place - 1], marks[place - 1]
            place -= 1
        keys[place], marks[place] = key, mark
        moves += i - place
        if moves > limit:
            return False
    return True


Integers = NDArray[np.int32]
Words = NDArray[np.uint32]
Levels = NDArray[np.int64]

# Rows whose donors are read ahead together: enough to keep the memory busy, few enough to stay in cache.
BATCH = 128


@compiled
def split(
    marks: Integers,
    scores: Floats,
    treated_rows: Integers,
    treated_scores: Floats,
    control_rows: Integers,
    control_scores: Floats,
) -> tuple[bool, bool]:
    """Write both arms' rows and scores; return whether the treated, and the controls, have equal scores."""
    in_treated = in_control = 0
    tied_treated = tied_control = False
    for i in range(len(marks)):
        mark, score = marks[i], scores[i]
        if mark >= 0:
            tied_treated |= score == treated_scores[in_treated]
            in_treated += 1
            treated_rows[in_treated] = mark
            treated_scores[in_treated] = score
        else:
            tied_control |= score == control_scores[in_control]
            in_control += 1
            control_rows[in_control] = -1 - mark
            control_scores[in_control] = score
    return tied_treated, tied_control


@compiled
def find_heads(donor_score: Floats, heads: Integers) -> None:
    """Write for every place the first one of the same score."""
    head = 0
    for place in range(len(donor_score)):
        if place == 0 or donor_score[place] != donor_score[place - 1]:
            head = place
        heads[place] = head


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
def moves_on(x: float, start: int, width: int, donor_score: Floats) -> bool:
    """Return whether the `width` donors nearest to x begin after this place, if not before it."""
    first, after = donor_score[start], donor_score[start + width]
    return bool(first == after or not not_farther(x, first, after))


@compiled
def find_windows(
    unit_score: Floats, unit_rows: Integers, donor_score: Floats, width: int, windows: Integers
) -> None:
    """Write at 2i the last place strictly below unit i and at 2i + 1 the first of its `width` nearest donors.

    The second is 0 where the nearest donors are not a window of places.
    """
    start, below = 1, 0
    places = len(donor_score) - 2
    for i in range(1, len(unit_score) - 1):
        x = unit_score[i]
        while donor_score[below + 1] < x:
            below += 1
        while start + width <= places and moves_on(x, start, width, donor_score):
            start += 1
        row = unit_rows[i]
        windows[2 * row] = below
        windows[2 * row + 1] = start if donor_score[start - 1] != donor_score[start] else 0


@compiled
def search(
    x: float,
    left: int,
    right: int,
    neighbours: int,
    capacity: int,
    scores: Floats,
    heads: Integers,
    levels: Levels,
    words: Words,
    used: Integers,
    chosen: Integers,
) -> int:
    """Return how many open donors were found; `chosen` has their places, nearest first.

    There is no open donor between x and the places `left` and `right` on its two sides.
    """
    none_right = len(scores) - 1
    ties = len(heads) > 0
    group_end = open_at_or_below(words, levels, left) if used[left] >= capacity else left
    left = open_at_or_above(words, levels, heads[group_end]) if ties else group_end
    if used[right] >= capacity:
        right = open_at_or_above(words, levels, right)
    size = 0
    while True:
        if left > 0 and (right == none_right or not_farther(x, scores[left], scores[right])):
            chosen[size] = left
            size += 1
            if size == neighbours:
                break
            if left < group_end:
                left += 1
                continue
            group_end = (heads[left] if ties else left) - 1
            if used[group_end] >= capacity:
                group_end = open_at_or_below(words, levels, group_end)
            left = open_at_or_above(words, levels, heads[group_end]) if ties else group_end
        elif right < none_right:
            chosen[size] = right
            size += 1
            if size == neighbours:
                break
            right += 1
            if used[right] >= capacity:
                right = open_at_or_above(words, levels, right)
        else:
            break
    return size


@compiled
def read_ahead(
    windows: Integers,
    filled: int,
    width: int,
    capacity: int,
    scores: Floats,
    levels: Levels,
    words: Words,
    used: Integers,
    batch: Integers,
) -> float:
    """Find which rows of the batch must search, and from where; return a checksum of the memory touched.

    Independent loads wait for memory together; the searches would wait for theirs in turn. What is found
    stays right while donors are being closed: a closed donor is only ever passed over.
    """
    touched = 0.0
    third = len(batch) // 3
    for i in range(filled):
        first = windows[2 * batch[i] + 1]
        touched += used[first] + used[first + width - 1]
    for i in range(filled):
        first = windows[2 * batch[i] + 1]
        whole = first > 0
        for place in range(first, first + width):
            whole &= used[place] < capacity
        batch[third + i] = -1
        if not whole:
            below = windows[2 * batch[i]]
            left = open_at_or_below(words, levels, below)
            right = open_at_or_above(words, levels, below + 1)
            touched += (1.0 if scores[left] < scores[right] else 0.0) + used[left] + used[right]
            batch[third + i] = left
            batch[2 * third + i] = right
    return touched


@compiled
def take_window(first: int, width: int, capacity: int, used: Integers) -> int:
    """Count one use of each donor of a window; return how many close, or -1 and no use if one was closed."""
    closed = 0
    over = False
    for place in range(first, first + width):
        used[place] += 1
        closed += 1 if used[place] == capacity else 0
        over |= used[place] > capacity
    if over:
        for place in range(first, first + width):
            used[place] -= 1
        return -1
    return closed


@compiled
def close_window(first: int, width: int, capacity: int, levels: Levels, words: Words, used: Integers) -> None:
    """Close the donors of a window that have reached their capacity."""
    for place in range(first, first + width):
        if used[place] == capacity:
            close(words, levels, place)


@compiled
def take_chosen(
    size: int,
    full: int,
    capacity: int,
    chosen: Integers,
    levels: Levels,
    words: Words,
    used: Integers,
    excess: Floats,
) -> int:
    """Count one use of each chosen donor, note shares above 1/full; return how many close."""
    closed = 0
    for k in range(size):
        donor = chosen[k]
        used[donor] += 1
        if used[donor] == capacity:
            closed += 1
            close(words, levels, donor)
        if size < full:
            excess[donor] += 1.0 / size - 1.0 / full
    return closed


@compiled
def fill(order: Integers, treated: Flags, arm: bool, start: int, batch: Integers) -> tuple[int, int]:
    """Put the next rows of one arm into the batch; return where the order goes on, and how many there are."""
    filled = 0
    while start < len(treated) and filled < len(batch) // 3:
        row = order[start] if len(order) > 0 else start
        start += 1
        # Without a branch that nothing could predict: a row of the other arm is written over.
        batch[filled] = row
        filled += 1 if treated[row] == arm else 0
    return start, filled


@compiled
def walk(
    order: Integers,
    treated: Flags,
    arm: bool,
    score: Floats,
    windows: Integers,
    scores: Floats,
    heads: Integers,
    levels: Levels,
    neighbours: int,
    capacity: int,
    words: Words,
    used: Integers,
    excess: Floats,
    sizes: Integers,
    chosen: Integers,
    batch: Integers,
) -> float:
    """Match the rows of one arm in the given order (ascending if `order` is empty); return a checksum."""
    is_open = len(scores) - 2
    full = min(neighbours, is_open)
    third, start, touched = len(batch) // 3, 0, 0.0
    # Once every donor is closed nobody finds one.
    while start < len(treated) and is_open > 0:
        start, filled = fill(order, treated, arm, start, batch)
        touched += read_ahead(windows, filled, full, capacity, scores, levels, words, used, batch)
        for i in range(filled):
            row = batch[i]
            left, right = batch[third + i], batch[2 * third + i]
            if left < 0:
                first = windows[2 * row + 1]
                closed = take_window(first, full, capacity, used)
                if closed >= 0:
                    sizes[row] = full
                    if closed > 0:
                        is_open -= closed
                        close_window(first, full, capacity, levels, words, used)
                    continue
                left, right = windows[2 * row], windows[2 * row] + 1
            size = search(
                score[row], left, right, neighbours, capacity, scores, heads, levels, words, used, chosen
            )
            is_open -= take_chosen(size, full, capacity, chosen, levels, words, used, excess)
            sizes[row] = size
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
        while start + width <= places and moves_on(x, start, width, donor_score):
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
def uses_by_row(donor_rows: Integers, used: Integers, capacity: int, uses: Integers) -> tuple[int, int]:
    """Write each donor's number of uses at its row; return the sum of them, and of those of donors at the capacity."""
    total = at_limit = 0
    for place in range(1, len(used) - 1):
        own = int(used[place])
        uses[donor_rows[place]] = own
        total += own
        at_limit += own if own == capacity else 0
    return total, at_limit


@compiled
def weigh(
    treated: Flags,
    sizes: Integers,
    uses: Integers,
    full_treated: int,
    full_control: int,
    divisor: float,
    coefficients: Floats,
) -> None:
    """Write s_i (1[row i found a donor] + uses_i / full) / divisor, full being that of the donor's own arm."""
    for i in range(len(treated)):
        own = 1.0 if sizes[i] > 0 else 0.0
        if treated[i]:
            coefficients[i] = (own + uses[i] / full_treated) / divisor
        else:
            coefficients[i] = (-own - uses[i] / full_control) / divisor

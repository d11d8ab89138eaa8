"""Loops over rows in the dual of the weighting problem (see `weight_dual`).

`floor`, `gamma` and `fixed` are the problem's: the cap t is `fixed` or, where that is negative, the best one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Flags, Floats, compiled_any_order
from counterveil.numerics.loops import add_products, add_totals, solve_root, write_root

Columns = NDArray[np.floating]
Places = NDArray[np.intp]

# A Newton step is kept whole when it leaves at most this share of the slope it started from.
_WHOLE_STEP = 0.5
# A searched step stops at this share of the starting slope.
_SEARCHED_STEP = 0.1
_MAX_PROBES = 60


@compiled_any_order
def best_cap(scores: Floats, drift: Floats, step: float, floor: float, gamma: float, near: float) -> float:
    """Return the t >= floor with sum (s - t)_+ = gamma t, or the floor, for s = scores + step drift.

    `near` is where to look first.
    """
    count, cap = len(scores), floor
    if gamma == 0.0:
        for i in range(count):
            cap = max(cap, scores[i] + step * drift[i])
        return cap
    cap, first = max(near, floor), True
    while True:
        # Newton on a convex decreasing function: from anywhere it steps below the end, then it climbs to it.
        total, above = 0.0, 0.0
        for i in range(count):
            s = scores[i] + step * drift[i]
            over = s > cap
            total += s if over else 0.0
            above += 1.0 if over else 0.0
        raised = max(total / (above + gamma), floor)
        if raised == cap or (raised < cap and not first):
            return cap
        cap, first = raised, False


@compiled_any_order
def slope_after(
    scores: Floats,
    drift: Floats,
    step: float,
    floor: float,
    gamma: float,
    fixed: float,
    near: float,
    line: Floats,
) -> float:
    """Return line[0] - step line[1] less the sum of the drift times the weights at s = scores + step drift.

    The weights are clip(s, 0, t), t being the `fixed` cap or, where that is negative, the best one.
    """
    cap = best_cap(scores, drift, step, floor, gamma, near) if fixed < 0.0 else fixed
    total = 0.0
    for i in range(len(scores)):
        total += drift[i] * min(max(scores[i] + step * drift[i], 0.0), cap)
    return float(line[0] - step * line[1] - total)


@compiled_any_order
def step_length(
    scores: Floats,
    drift: Floats,
    floor: float,
    gamma: float,
    fixed: float,
    near: float,
    line: Floats,
    opening: float,
) -> float:
    """Return a step that leaves a small share of the opening slope; the slope only falls with the step."""
    low, high, slope_low = 0.0, 1.0, opening
    slope_high = slope_after(scores, drift, 1.0, floor, gamma, fixed, near, line)
    if abs(slope_high) <= _WHOLE_STEP * opening:
        return 1.0
    for _ in range(_MAX_PROBES):
        if slope_high > 0.0:
            low, slope_low, high = high, slope_high, 2.0 * high
            trial = high
            slope_trial = slope_high = slope_after(scores, drift, high, floor, gamma, fixed, near, line)
        else:
            # The secant, kept inside the middle of the bracket, so that a flat end cannot stall it.
            secant = low + (high - low) * slope_low / (slope_low - slope_high)
            trial = min(max(secant, low + 0.1 * (high - low)), high - 0.1 * (high - low))
            slope_trial = slope_after(scores, drift, trial, floor, gamma, fixed, near, line)
            if slope_trial > 0.0:
                low, slope_low = trial, slope_trial
            else:
                high, slope_high = trial, slope_trial
        if abs(slope_trial) <= _SEARCHED_STEP * opening:
            return trial
    return low if low > 0.0 else high


@compiled_any_order
def settle(
    drift: Floats,
    step: float,
    floor: float,
    gamma: float,
    fixed: float,
    near: float,
    scores: Floats,
    weights: Floats,
) -> float:
    """Add step drift to the scores, write the weights clip(scores, 0, t) and return the cap t."""
    cap = best_cap(scores, drift, step, floor, gamma, near) if fixed < 0.0 else fixed
    for i in range(len(scores)):
        scores[i] += step * drift[i]
        weights[i] = min(max(scores[i], 0.0), cap)
    return cap


@compiled_any_order
def advance(
    direction: Floats,
    drift: Floats,
    gradient: Floats,
    targets: Floats,
    pulls: Floats,
    floor: float,
    gamma: float,
    fixed: float,
    near: float,
    multipliers: Floats,
    scores: Floats,
    weights: Floats,
) -> float:
    """Move multipliers and scores along a direction, along which scores drift; write the weights and return the cap.

    `pulls` (2, arms, p) are the slopes of the dual's quadratic term at the multipliers, and at the direction.
    Without any climb along the direction nothing is moved, and -1 returned.
    """
    opening, line = 0.0, np.zeros(2)
    for k in range(len(direction)):
        own, last = direction[k], direction.shape[1] - 1
        opening += own[last] * gradient[k, last]
        line[0] += own[last]
        for j in range(last):
            opening += own[j] * gradient[k, j]
            line[0] -= own[j] * (targets[k, j] + pulls[0, k, j])
            line[1] += own[j] * pulls[1, k, j]
    if not opening > 0.0:
        return -1.0
    step = step_length(scores, drift, floor, gamma, fixed, near, line, opening)
    multipliers += step * direction
    return settle(drift, step, floor, gamma, fixed, near, scores, weights)


@compiled_any_order
def write_gradient(
    columns: Columns,
    start: int,
    weights: Floats,
    target: Floats,
    pull: Floats,
    gradient: Floats,
) -> None:
    """Write an arm's gradient (p+1,): totals less the target and the quadratic term's slope; one less all weights."""
    last, total = len(columns), 0.0
    gradient[:last] = 0.0
    add_totals(columns, start, start + len(weights), weights, gradient)
    for j in range(last):
        gradient[j] -= target[j] + pull[j]
    for i in range(len(weights)):
        total += weights[i]
    gradient[last] = 1.0 - total


@compiled_any_order
def add_rows(columns: Columns, start: int, rows: Places, sign: float, block: Columns, gram: Floats) -> None:
    """Add to `gram` `sign` times Z'Z over some rows, Z = [columns', -1], by way of a block (p+1, k) of them."""
    width, size = len(columns), block.shape[1]
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        for j in range(width):
            own, out = columns[j], block[j]
            for i in range(len(part)):
                out[i] = own[start + part[i]]
        block[width, : len(part)] = -1.0
        add_products(block, 0, len(part), sign, gram)


@compiled_any_order
def update_gram(
    columns: Columns, start: int, scores: Floats, cap: float, free: Flags, block: Columns, gram: Floats
) -> tuple[int, int]:
    """Make `gram` Z'Z over the rows with scores in [0, cap], it being that over the `free` ones.

    Returns how many rows are free, and how many changed sides.
    """
    joined, left = np.empty(len(scores), np.intp), np.empty(len(scores), np.intp)
    more, fewer, count = 0, 0, 0
    for i in range(len(scores)):
        inside = 0.0 <= scores[i] <= cap
        count += inside
        if inside and not free[i]:
            joined[more] = i
            more += 1
        elif free[i] and not inside:
            left[fewer] = i
            fewer += 1
        free[i] = inside
    changed = more + fewer
    if changed >= count and changed > 0:
        gram[:, :] = 0.0
        joined, more, fewer = np.flatnonzero(free), count, 0
    add_rows(columns, start, joined[:more], 1.0, block, gram)
    add_rows(columns, start, left[:fewer], -1.0, block, gram)
    return count, changed


@compiled_any_order
def factor_arm(
    columns: Columns,
    start: int,
    scores: Floats,
    cap: float,
    soft: Floats,
    ridge: float,
    free: Flags,
    block: Columns,
    gram: Floats,
    root: Floats,
    above: Floats,
) -> bool:
    """Write an arm's factored curvature to `root`, and return whether it was positive.

    The curvature is Z'Z over the free rows, Z = [columns', -1], with `soft` on the diagonal. `above` (p+1,) receives
    the totals of Z over the rows with scores above the cap. `root` keeps the factor while no row changes
    sides; zero at its corner says that there is none.
    """
    width, last = len(columns), len(scores)
    inside, changed = update_gram(columns, start, scores, cap, free, block, gram)
    over, count = np.empty(last), 0.0
    for i in range(last):
        over[i] = 1.0 if scores[i] > cap else 0.0
        count += over[i]
    above[:] = 0.0
    if count > 0.0:
        add_totals(columns, start, start + last, over, above)
        above[width] = -count
    if changed > 0 or root[0, 0] == 0.0:
        whole = gram.copy()
        for j in range(width):
            whole[j, j] += soft[j]
        # With no free row the sum has no curvature: borrow the whole arm's, the search will stretch it.
        whole[width, width] += ridge * last if inside > 0 else last
        if not write_root(whole, root):
            root[0, 0] = 0.0
            return False
    return True


@compiled_any_order
def solve_coupled(one: Floats, other: Floats, coupling: Floats, near: float, side: Floats) -> None:
    """Replace `side` (2, p+1) by M^-1 side, M being block diagonal but for `coupling` between the arms' features.

    `one` and `other` are roots of the blocks. By conjugate gradients with the blocks as preconditioner, until the
    squared residual is `near` of what it was. The blocks times a direction follow from the residuals.
    """
    found, along, image = np.zeros_like(side), side.copy(), side.copy()
    solve_root(one, along[0])
    solve_root(other, along[1])
    size, left, width = 0.0, np.empty_like(side), side.shape[1] - 1
    for k in range(2):
        for j in range(width + 1):
            size += side[k, j] * along[k, j]
    first = size
    for _ in range(_MAX_PROBES):
        if not size > near * first:
            break
        curve = 0.0
        for k in range(2):
            for j in range(width + 1):
                left[k, j] = image[k, j] + (coupling[j] * along[1 - k, j] if j < width else 0.0)
                curve += along[k, j] * left[k, j]
        step = size / curve
        for k in range(2):
            for j in range(width + 1):
                found[k, j] += step * along[k, j]
                side[k, j] -= step * left[k, j]
                left[k, j] = side[k, j]
        solve_root(one, left[0])
        solve_root(other, left[1])
        before, size = size, 0.0
        for k in range(2):
            for j in range(width + 1):
                size += side[k, j] * left[k, j]
        for k in range(2):
            for j in range(width + 1):
                along[k, j] = left[k, j] + size / before * along[k, j]
                image[k, j] = side[k, j] + size / before * image[k, j]
    side[:] = found

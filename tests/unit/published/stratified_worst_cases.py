"""Exact worst cases of the stratified effect for given counts, over all outcomes and positions.

The effect is linear in the outcomes, so the worst outcomes are 0 and 1 by the sign of each row's change of
weight: counts (and, for single pairing, positions in the arms) are all there is to go through.
"""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from counterveil.published.strata_sensitivity import StratumCounts

ESTIMANDS, PAIRINGS = ("ATE", "ATT", "ATC"), ("all", "single")
KINDS = tuple(product(ESTIMANDS, PAIRINGS))
SEEKERS = {"ATE": (1, 1), "ATT": (1, 0), "ATC": (0, 1)}


def counts_of(signature, public=None):
    treated, control = (np.array(column, dtype=np.int64) for column in zip(*signature, strict=True))
    return StratumCounts.of(treated, control, public or len(signature))


@cache
def weights(treated, control, estimand, pairing):
    """Weights of the treated rows, then of the controls (with their sign), in one stratum."""
    if not treated or not control:
        return (Fraction(0),) * treated, (Fraction(0),) * control
    seek_treated, seek_control = SEEKERS[estimand]

    def partners(index, own, opp):
        return sum(j % own == index for j in range(opp)) if pairing == "single" else Fraction(opp, own)

    return (
        tuple(Fraction(seek_treated + seek_control * partners(i, treated, control)) for i in range(treated)),
        tuple(Fraction(-seek_control - seek_treated * partners(i, control, treated)) for i in range(control)),
    )


def span(before, after):
    """Sum of the rises and of the falls of the weights: the range of the change over all outcomes."""
    moves = [b - a for a, b in zip(before, after, strict=True)]
    return sum(m for m in moves if m > 0), -sum(m for m in moves if m < 0)


def without(row, place):
    return row[:place] + row[place + 1 :]


@cache
def removals(treated, control, arm, estimand, pairing):
    """Rise and fall by the removal of each row of an arm (0 treated, 1 control), outcomes being the worst."""
    before = weights(treated, control, estimand, pairing)
    spans = []
    for place in range((treated, control)[arm]):
        after = weights(treated - (arm == 0), control - (arm == 1), estimand, pairing)
        own = span(before[arm], (*after[arm][:place], Fraction(0), *after[arm][place:]))
        other = span(before[1 - arm], after[1 - arm])
        spans.append((own[0] + other[0], own[1] + other[1]))
    return spans


@cache
def departures(treated, control, estimand, pairing):
    """Largest rise and largest fall by the removal of any row."""
    spans = [s for arm in (0, 1) for s in removals(treated, control, arm, estimand, pairing)]
    return tuple(map(max, zip((0, 0), *spans, strict=True)))


@cache
def arrivals(treated, control, estimand, pairing):
    """Largest rise and largest fall by an insertion anywhere: the removals that undo it, read backwards."""
    spans = removals(treated + 1, control, 0, estimand, pairing)
    spans = spans + removals(treated, control + 1, 1, estimand, pairing)
    return tuple(max(s[i] for s in spans) for i in (1, 0))


@cache
def within(treated, control, estimand, pairing):
    """Largest change by a row that stays in its stratum, with another outcome or in the other arm."""
    before = weights(treated, control, estimand, pairing)
    worst = max((abs(w) for arm in before for w in arm), default=Fraction(0))
    for arm, size in enumerate((treated, control)):
        after = weights(treated + (1, -1)[1 - arm], control + (1, -1)[arm], estimand, pairing) if size else ()
        for place, landing in product(range(size), range(len(before[1 - arm]) + 1)):
            own = span(before[arm], (*after[arm][:place], Fraction(0), *after[arm][place:]))
            other = span(before[1 - arm], without(after[1 - arm], landing))
            new = after[1 - arm][landing]
            total = (own[0] + other[0] + max(new, 0), own[1] + other[1] + max(-new, 0))
            worst = max(worst, *total)
    return worst


def exact_change(signature, estimand, pairing):
    """The local sensitivity at these counts, over all outcomes and positions."""
    kind = (estimand, pairing)
    worst = max(within(*cell, *kind) for cell in signature)
    for (x, one), (y, two) in product(enumerate(signature), repeat=2):
        if x != y and sum(one):
            leave, enter = departures(*one, *kind), arrivals(*two, *kind)
            worst = max(worst, leave[0] + enter[0], leave[1] + enter[1])
    return worst


def signatures(rows, strata):
    """All ways to spread so many rows over the arms of so many strata, strata in any order once."""
    found = set()
    for cut in product(range(rows + 1), repeat=2 * strata - 1):
        if sum(cut) <= rows:
            cells = (*cut, rows - sum(cut))
            found.add(tuple(sorted(zip(cells[::2], cells[1::2], strict=True))))
    return sorted(found)


def neighbours(signature):
    cells = [count for pair in signature for count in pair]
    for out, into in product(range(len(cells)), repeat=2):
        if out != into and cells[out]:
            moved = list(cells)
            moved[out] -= 1
            moved[into] += 1
            yield tuple(sorted(zip(moved[::2], moved[1::2], strict=True)))

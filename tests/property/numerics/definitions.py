"""Matching written as its definition says, over exact fractions and without regard to speed."""

from fractions import Fraction

ARMS = {"ATE": (True, False), "ATT": (True,), "ATC": (False,)}


def match_sets_by_definition(treated, score, neighbours, capacity_treated, capacity_control, order, estimand):
    """Return {row: donors, nearest first} of every row that looks for donors."""
    exact = [Fraction(float(value)) for value in score]
    sets = {}
    for arm in ARMS[estimand]:
        capacity = capacity_control if arm else capacity_treated
        uses = dict.fromkeys((row for row in range(len(exact)) if bool(treated[row]) != arm), 0)
        for unit in (row for row in order if bool(treated[row]) == arm):
            still_open = [donor for donor in uses if capacity is None or uses[donor] < capacity]
            still_open.sort(key=lambda donor: (abs(exact[donor] - exact[unit]), exact[donor], donor))
            sets[unit] = still_open[:neighbours]
            for donor in sets[unit]:
                uses[donor] += 1
    return sets


def coefficients_by_definition(treated, sets):
    """Return the exact coefficient of every outcome in the average of s_j (Y_j - mean of Y over P(j))."""
    kept = {unit: donors for unit, donors in sets.items() if donors}
    coefficients = [Fraction(0)] * len(treated)
    for unit, donors in kept.items():
        sign = 1 if treated[unit] else -1
        coefficients[unit] += Fraction(sign, len(kept))
        for donor in donors:
            coefficients[donor] -= Fraction(sign, len(donors) * len(kept))
    return coefficients

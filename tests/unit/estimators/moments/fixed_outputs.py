"""Chains of releases with their earlier outputs held fixed, as proofs of adaptive composition look at them."""

import math
from fractions import Fraction
from itertools import product

from counterveil.session import Released, ReleasedVector


class FixedGate:
    """A gate that answers what was written down beforehand, and notes what it was given and at what sensitivity."""

    def __init__(self, plan, answers, rows=None):
        self.plan, self.answers, self.rows = plan, answers, rows
        self.given, self.sensitivity, self.norm = {}, {}, {}

    def _note(self, name, values, sensitivity, norm):
        self.given[name], self.sensitivity[name], self.norm[name] = tuple(values), sensitivity, norm

    def noise(self, name, sensitivity):
        return self.plan.noise(name, sensitivity)

    def release(self, name, value, sensitivity):
        self._note(name, [value], sensitivity, 1)
        return Released(Fraction(self.answers.get(name, 0)), self.plan.noise(name, sensitivity))

    def release_cells(self, name, values, sensitivity, norm=1):
        values = values() if callable(values) else values
        self._note(name, values, sensitivity, norm)
        return ReleasedVector(tuple(map(Fraction, self.answers.get(name, [0] * len(values)))), 1e-6)

    def release_vector(self, name, values, sensitivity):
        return self.release_cells(name, values, sensitivity, 2)


def largest_changes(run, records, rows):
    """Return for every release its largest change over all data sets and replacements, and its sensitivity.

    `run` takes a data set and returns the gate that it was released through.
    """
    known = {data: run(data) for data in product(records, repeat=rows)}
    sensitivity, norm = (getattr(next(iter(known.values())), name) for name in ("sensitivity", "norm"))
    assert all(gate.sensitivity == sensitivity for gate in known.values())
    worst = dict.fromkeys(sensitivity, Fraction(0))
    for data, gate in known.items():
        for place, record in product(range(rows), records):
            other = known[(*data[:place], record, *data[place + 1 :])]
            for name, values in gate.given.items():
                moves = [abs(a - b) for a, b in zip(values, other.given[name], strict=True)]
                change = sum(moves) if norm[name] == 1 else Fraction(math.hypot(*moves))
                worst[name] = max(worst[name], change)
    return {name: (change, sensitivity[name]) for name, change in worst.items()}

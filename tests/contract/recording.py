"""What passes the gate: the exact statistic, its sensitivity, what it paid and what came out."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.session import Gate


@dataclass(frozen=True)
class Passed:
    """One release; single numbers are vectors of length one."""

    exact: np.ndarray
    sensitivity: Fraction
    values: np.ndarray
    amount: float

    @property
    def laplace(self):
        """Variance of Laplace noise at this sensitivity and price, worked out here."""
        return 2 * (float(self.sensitivity) / self.amount) ** 2

    @property
    def normal(self):
        """Variance of Gaussian noise; the price is a mu."""
        return (float(self.sensitivity) / self.amount) ** 2

    @property
    def value(self):
        return float(self.values[0])

    @property
    def statistic(self):
        return float(self.exact[0])


def record(monkeypatch):
    """Return a dictionary that every release enters under its name."""
    passed = {}

    def watch(method, values_of):
        own = getattr(Gate, method)

        def watched(self, name, value, sensitivity, *rest):
            value = value() if callable(value) else value
            released = own(self, name, value, sensitivity, *rest)
            exact = value if isinstance(value, list | tuple) else [value]
            amount = float(self._plan.amount(name, self._plan.kind(name)))
            found = np.array([float(one) for one in values_of(released)])
            passed[name] = Passed(np.array([float(one) for one in exact]), sensitivity, found, amount)
            return released

        monkeypatch.setattr(Gate, method, watched)

    watch("release", lambda released: [released.value])
    watch("release_cells", lambda released: released.values)
    watch("release_vector", lambda released: released.values)
    watch("release_smooth", lambda released: [released])
    return passed

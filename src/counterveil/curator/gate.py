"""The one gate: the only code that lets noise be drawn and a statistic out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.curator.plan import Plan
from counterveil.errors import InternalError
from counterveil.mechanisms import BitSource, Grid, KnownSensitivityMechanism


@dataclass(frozen=True, slots=True)
class Released:
    """A number that may leave: the noisy value and the public law of its noise."""

    value: Fraction
    noise: KnownSensitivityMechanism

    def __float__(self) -> float:
        return float(self.value)


class Gate:
    """Lets each release of a reserved plan through once; made by `Custody.run` after the budget is reserved."""

    def __init__(self, plan: Plan, source: BitSource) -> None:
        self._plan = plan
        self._source = source
        self._passed: set[str] = set()

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return `value` plus the noise that the plan pays for under `name`; a second time is refused."""
        if name in self._passed:
            raise InternalError(
                "CV-X003",
                "a release was asked for twice",
                expected="each planned release once",
                got=repr(name),
                fix="this is a fault of the estimator: please report it",
            )
        self._passed.add(name)
        mechanism = self._plan.noise(name, sensitivity)
        grid = Grid.for_scale(sensitivity / max(self._plan.amount(name), Fraction(1)))
        return Released(mechanism.release(value, grid, self._source), mechanism)

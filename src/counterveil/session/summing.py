"""A session whose rows are one part of several: what it releases is the sum over all parts, with one noise.

Every statistic here is a sum over rows, or such a sum divided by the number of all rows, which is public. At each
release a part computes its own value, adds its share of the noise and stops until the sum of all parts is known; asked
again with that sum, it goes on. What masks the parts on their way is the federation's matter.
"""

# Proof: summing.proof.md

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from counterveil.accounting import Reservation
from counterveil.data import Backend, Study
from counterveil.data.passes import Sums
from counterveil.data.table import Pass
from counterveil.errors import refusal
from counterveil.mechanisms import BitSource, KnownSensitivityMechanism, SummedLaplace
from counterveil.privacy import Unit
from counterveil.session.session import (
    BaseSession,
    Gate,
    Keep,
    Kind,
    Plan,
    ReleasedVector,
    Request,
    Values,
    grid_for,
)

# Noise of these kinds is drawn as Laplace noise on each number.
_SUMMED = (Kind.NUMBER, Kind.CELLS)


@dataclass(frozen=True, slots=True)
class Summation:
    """What is public of a sum: how many parts and rows there are, and the sums known so far, in grid steps by name.

    `colluding` parts may tell each other, and whoever adds up, what they know.
    """

    parts: int
    colluding: int
    rows: int
    totals: Mapping[str, Sequence[int]]


class Seal(Protocol):
    """What hides a part's numbers where the ledger keeps them: a share of the noise alone does not protect them."""

    def close(self, name: str, numbers: Sequence[str]) -> str:
        """Return a text of which nobody without the site's key learns the numbers."""

    def open(self, name: str, text: str) -> list[str]:
        """Return the numbers that were closed under a name."""


class NextPart(Exception):  # noqa: N818 - nothing went wrong
    """Carries a part's noisy values, in grid steps, to whoever masks them; `bound` is their sensitivity in steps."""

    def __init__(self, name: str, steps: tuple[int, ...], bound: int) -> None:
        self.name, self.steps, self.bound = name, steps, bound
        super().__init__(name)


class SummingGate(Gate):
    """A gate that returns sums over all parts; `NextPart` is raised where one is not known yet."""

    def __init__(self, plan: Plan, source: BitSource, keep: Keep, known: Summation) -> None:
        super().__init__(plan, source, keep)
        self._known = known

    def noise(self, name: str, sensitivity: Fraction) -> KnownSensitivityMechanism:
        """Return the noise of the sum; every part rounds its value to the grid before it adds a share."""
        return self._summed(sensitivity, self._plan.amount(name), 1)

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the sums of all parts' values plus Laplace noise on each."""
        exact = values() if callable(values) else values
        amount = self._pay(name, Kind.CELLS)
        mechanism = self._summed(sensitivity, amount, len(exact))
        return ReleasedVector(self._on_each(name, exact, mechanism, sensitivity, amount), mechanism.variance)

    def _summed(self, sensitivity: Fraction, amount: Fraction, count: int) -> SummedLaplace:
        # Rounding moves each of the numbers by less than a step more.
        whole = sensitivity + count * grid_for(sensitivity, amount).step
        return SummedLaplace(whole, amount, self._known.parts, self._known.parts - self._known.colluding)

    def _on_each(
        self,
        name: str,
        values: Values,
        mechanism: KnownSensitivityMechanism,
        bound: Fraction,
        amount: Fraction,
    ) -> tuple[Fraction, ...]:
        own = super()._on_each(name, values, mechanism, bound, amount)
        grid, total = grid_for(bound, amount), self._known.totals.get(name)
        if total is None:
            raise NextPart(name, tuple(map(grid.units, own)), grid.units(mechanism.sensitivity))
        if len(total) != len(own):
            raise refusal("CV-F500", expected=f"{len(own)} numbers", got=f"{len(total)}")
        return tuple(map(grid.value, total))

    def _pay(self, name: str, kind: Kind) -> Fraction:
        if kind not in _SUMMED:
            raise refusal("CV-X006", kinds=", ".join(_SUMMED), got=kind.value)
        return super()._pay(name, kind)


@dataclass(frozen=True, slots=True)
class PartOfRows:
    """A part's rows, which count as many as all parts have together."""

    own: Backend
    rows: int

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        return self.own.study

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:
        """Return a pass's sums over the part's rows."""
        return self.own.run(passed, in_turn)


class SummingSession(BaseSession):
    """A session over one part of the rows; its answers are those of all parts."""

    def __init__(self, *args: Any, known: Summation, seal: Seal, **named: Any) -> None:
        super().__init__(*args, **named)
        self.known = known
        self._seal = seal

    @property
    def batches(self) -> Backend:
        """The part's rows, with the number of all rows."""
        return PartOfRows(super().batches, self.known.rows)

    @property
    def part_rows(self) -> int:
        """The number of rows of this part."""
        return super().batches.rows

    def _rows(self) -> int:
        return self.part_rows

    def run(self, request: Request, compute: Callable[[Gate], dict[str, object]]) -> dict[str, object]:
        """Return the answer of all parts; the ledger is told that there are several."""
        known = self.known
        said = {"parts": known.parts, "colluding": known.colluding, "rows": known.rows}
        return super().run(replace(request, description=request.description | {"summed": said}), compute)

    def _gate(self, plan: Plan, reservation: Reservation) -> Gate:
        def keep(name: str, bounds: list[str], draw: Callable[[], list[str]]) -> list[str]:
            def closed() -> list[str]:
                return [self._seal.close(name, draw())]

            return self._seal.open(name, *self.ledger.release(reservation, name, bounds, closed))

        return SummingGate(plan, self._noise, keep, self.known)

    def remarks(self, unit: Unit) -> tuple[str, ...]:
        """Return what the guarantee must say: against whom it holds, and on what that rests."""
        known = self.known
        said = (
            f"one noise for {known.parts} sites: the guarantee holds against the coordinator and any "
            f"{known.colluding} of them together, and rests on X25519, HKDF-SHA256 and ChaCha20"
        )
        return (said, *super().remarks(unit))

    def noise_pages(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002 - one for all of them
        """Return the proof pages of the noise and of what masks it."""
        return "mechanisms/summed_laplace.proof.md", "session/summing.proof.md", "federation/masking.proof.md"

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
from math import ceil
from typing import Any, Protocol

from counterveil.accounting import Reservation
from counterveil.data import Backend, Study
from counterveil.data.passes import Sums
from counterveil.data.table import Pass
from counterveil.errors import refusal
from counterveil.mechanisms import (
    BitSource,
    SummedBall,
    SummedGaussian,
    SummedLaplace,
)
from counterveil.numerics.arrays import sqrt_up
from counterveil.privacy import Unit
from counterveil.report.text import held_against
from counterveil.session.session import (
    BaseSession,
    Gate,
    Keep,
    Kind,
    Plan,
    Released,
    ReleasedVector,
    Request,
    Values,
    grid_for,
)

# What is drawn in shares: Laplace noise on numbers and cells, that of the l2 ball on vectors, normal noise on both.
_SUMMED = (Kind.NUMBER, Kind.CELLS, Kind.VECTOR, Kind.NORMAL)
_Summed = SummedLaplace | SummedGaussian | SummedBall
# Mechanisms of one site in whose place shares of normal numbers are drawn.
_NORMAL = ("gaussian", "ball")
# Bits of a bound that is computed from sums: what parts round differently below them is one bound.
_BITS = 24


def rounded_up(bound: Fraction) -> Fraction:
    """Return the next number of 24 bits above a positive one."""
    step = Fraction(2) ** (bound.numerator.bit_length() - bound.denominator.bit_length() - _BITS)
    return ceil(bound / step) * step


@dataclass(frozen=True, slots=True)
class Summation:
    """What is public of a sum: how many parts and rows there are, and the sums known so far, in grid steps by name.

    `colluding` parts may tell each other, and whoever adds up, what they know. No sum is so many sensitivities
    `farther` from zero. This part is the one at a `place`.
    """

    parts: int
    colluding: int
    rows: int
    totals: Mapping[str, Sequence[int]]
    farther: int | None = None
    place: int = 0


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

    def __init__(
        self, plan: Plan, source: BitSource, keep: Keep, known: Summation, rows: BaseSession | None = None
    ) -> None:
        super().__init__(plan, source, keep, rows)
        self._known = known

    def noise(self, name: str, sensitivity: Fraction) -> SummedLaplace | SummedGaussian:
        """Return the noise of the sum; every part rounds its value to the grid before it adds a share."""
        amount = self._plan.amount(name)
        if self._plan.mechanism == "gaussian":
            return self._normal(sensitivity, amount, 1)
        # Rounding moves a number by less than a step more.
        return SummedLaplace(sensitivity + grid_for(sensitivity, amount).step, amount, *self._sites)

    def release(self, name: str, value: Fraction, sensitivity: Fraction) -> Released:
        """Return the sum of all parts' values plus noise."""
        amount = self._pay(name, Kind.NUMBER)
        mechanism = self.noise(name, sensitivity)
        (total,) = self._totals(name, [value], mechanism, sensitivity, amount)
        return Released(total, mechanism)

    def release_cells(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the sums of all parts' values plus Laplace noise on each."""
        exact, amount, bound = *self._paid(name, values, Kind.CELLS), rounded_up(sensitivity)
        whole = bound + len(exact) * grid_for(bound, amount).step
        mechanism = SummedLaplace(whole, amount, *self._sites)
        return ReleasedVector(self._totals(name, exact, mechanism, bound, amount), mechanism.variance)

    def release_vector(self, name: str, values: Values, sensitivity: Fraction) -> ReleasedVector:
        """Return the same with normal noise or that of the l2 ball, for a bound on the length of the change."""
        normal = self._plan.kind(name) is Kind.NORMAL
        exact, amount = self._paid(name, values, Kind.NORMAL if normal else Kind.VECTOR)
        bound = rounded_up(sensitivity)
        mechanism: SummedGaussian | SummedBall = (
            self._normal(bound, amount, len(exact))
            if self._plan.mechanism == "gaussian" or normal
            else SummedBall(_rounded(bound, amount, len(exact)), amount, len(exact), *self._sites)
        )
        return ReleasedVector(self._totals(name, exact, mechanism, bound, amount), mechanism.variance)

    @property
    def _sites(self) -> tuple[int, int]:
        return self._known.parts, self._known.parts - self._known.colluding

    def _normal(self, sensitivity: Fraction, amount: Fraction, count: int) -> SummedGaussian:
        return SummedGaussian(_rounded(sensitivity, amount, count), amount, *self._sites)

    def _paid(self, name: str, values: Values, kind: Kind) -> tuple[Sequence[Fraction], Fraction]:
        amount = self._pay(name, kind)
        return values() if callable(values) else values, amount

    def _totals(
        self, name: str, values: Sequence[Fraction], mechanism: _Summed, bound: Fraction, amount: Fraction
    ) -> tuple[Fraction, ...]:
        """Return the sums that are known under a name, or raise this part's own numbers."""
        grid = grid_for(bound, amount)
        total = self._known.totals.get(name)
        own = self._drawn(
            name, (bound,), values, lambda exact: mechanism.release_all(exact, grid, self._source)
        )
        if total is None:
            raise NextPart(name, tuple(map(grid.units, own)), grid.units(mechanism.sensitivity))
        if len(total) != len(own):
            raise refusal("CV-F500", expected=f"{len(own)} numbers", got=f"{len(total)}")
        far = self._known.farther
        if far is not None and max(map(abs, total)) > far * grid.units(mechanism.sensitivity):
            raise refusal("CV-F500", expected="sums that the declared outcome allows", got="larger ones")
        return tuple(map(grid.value, total))

    def _pay(self, name: str, kind: Kind) -> Fraction:
        if kind not in _SUMMED:
            raise refusal("CV-X006", kinds=", ".join(_SUMMED), got=kind.value)
        return super()._pay(name, kind)


def _rounded(sensitivity: Fraction, amount: Fraction, count: int) -> Fraction:
    """Return a bound on a length with what rounding adds, and a step for what shares miss of normal noise."""
    return sensitivity + (sqrt_up(Fraction(count)) + 1) * grid_for(sensitivity, amount).step


@dataclass(frozen=True, slots=True)
class PartOfRows:
    """A part's rows, which count as many as all parts have together."""

    own: Backend
    rows: int

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        return self.own.study

    def run(self, passed: Pass, sequential: bool = False) -> Sums:
        """Return a pass's sums over the part's rows."""
        return self.own.run(passed, sequential)


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

    def public(self, name: str, numbers: tuple[int, ...], least: int = 0) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of all parts, which are told like a sum: each part adds zeros for the others."""
        known = self.known
        wide = len(numbers)
        total = known.totals.get(name)
        before = known.place * wide
        if total is None:
            after = (0,) * ((known.parts - known.place - 1) * wide)
            raise NextPart(name, ((0,) * before) + numbers + after, 1)
        found = tuple(tuple(total[start : start + wide]) for start in range(0, known.parts * wide, wide))
        own = len(total) == known.parts * wide and found[known.place] == numbers
        if not own or min(total) < least or sum(total) > known.rows:
            raise refusal("CV-F500", expected=f"numbers of {known.parts} sites", got="others")
        return found

    def _rows(self) -> int:
        return self.part_rows

    def run(self, request: Request, compute: Callable[[Gate], dict[str, object]]) -> dict[str, object]:
        """Return the answer of all parts; the ledger is told that there are several."""
        known = self.known
        said = {"parts": known.parts, "colluding": known.colluding, "rows": known.rows}
        description = request.description | {"summed": said}

        def named(gate: Gate) -> dict[str, Any]:
            found: dict[str, Any] = compute(gate)
            noise = "gaussian" if request.plan.mechanism == "gaussian" else "laplace"
            return found | {"details": found["details"] | {"mechanism": f"summed_{noise}"}}

        return super().run(replace(request, description=description), named)

    def _gate(self, plan: Plan, reservation: Reservation) -> Gate:
        def keep(name: str, bounds: list[str], draw: Callable[[], list[str]]) -> list[str]:
            def closed() -> list[str]:
                return [self._seal.close(name, draw())]

            return self._seal.open(name, *self.ledger.release(reservation, name, bounds, closed))

        return SummingGate(plan, self._noise, keep, self.known, rows=self)

    def remarks(self, unit: Unit) -> tuple[str, ...]:
        """Return what the guarantee must say: against whom it holds, and on what that rests."""
        return held_against(self.known.parts, self.known.colluding), *super().remarks(unit)

    def noise_pages(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:
        """Return the proof pages of the noise and of what masks it."""
        drawn = {"normal" if one in _NORMAL else "laplace" for one in mechanisms}
        pages = (f"mechanisms/summed_{one}.proof.md" for one in sorted(drawn))
        return *pages, "session/summing.proof.md", "federation/masking.proof.md"

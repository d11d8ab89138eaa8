"""A user's own statistic: a sum over private rows with a declared bound on how far one person moves it.

    released = f(rows) + noise,    |f(D) - f(D')| <= B for all neighbouring data sets D and D',

where neighbours differ in what is private of one person, and the noise is calibrated to B. For several
numbers B bounds the sum of their absolute changes ("l1") or the Euclidean length of the change ("l2").

In: a function f with exact values (int or Fraction), its bound B in units of f, and private rows. Out: f
with noise of a known distribution.

Why it is right: noise of scale B / epsilon is epsilon-differentially private if the bound holds. The package
cannot prove that of a function it does not know, so an answer that rests on such a statistic says that its
author declares the bound; `counterveil audit` searches for neighbours that refute it. An f that fails on
the real rows counts as 0, as an error would tell something about them; its length and its mistakes are found
on made-up rows before anything is spent.

Proof: `rows/statistic.proof.md`.
"""

# Proof: statistic.proof.md

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal

from counterveil.data import Table
from counterveil.errors import CounterveilError, refusal
from counterveil.rows.made_up import made_up_rows
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Released, ReleasedVector

# What a bound is a bound of: one number, the sum of the changes of several, or the length of the vector of changes.
Norm = Literal["absolute", "l1", "l2"]
Exact = int | Fraction


class Statistic(ABC):
    """A number, or several, computed from private rows, and how far one person can move it.

    Subclass it (a frozen dataclass is convenient), declare `bound`, and write `value`. What a person may
    change is what the question protects: one outcome with ``protects="outcome"``, treatment and outcome of
    one row with ``"treatment and outcome"``, one whole row with ``"record"``.

    Attributes
    ----------
    bound : int or Fraction
        Largest change of `value` between data sets that differ in one person: of the number
        (``norm="absolute"``), of the sum of the absolute changes of several numbers ("l1"), or of the
        Euclidean length of their change ("l2"). In units of `value`. Floats are refused: a bound that is
        rounded down is none.
    norm : {"absolute", "l1", "l2"}
        Which of these `bound` is. Default: "absolute".

    See Also
    --------
    Method : Estimates an effect from statistics.

    Examples
    --------
    The number of rows whose outcome is in the upper half of its range; one person moves it by one:

    >>> import counterveil as cv
    >>> class InUpperHalf(cv.methods.Statistic):
    ...     bound = 1
    ...
    ...     def value(self, rows):
    ...         return int((rows.outcome >= cv.methods.OUTCOME_STEPS // 2).sum())
    >>> InUpperHalf().declared_bound()
    Fraction(1, 1)
    """

    bound: Exact
    norm: Norm = "absolute"

    @abstractmethod
    def value(self, rows: Table) -> Exact | Sequence[Exact]:
        """Return the exact number, or numbers, of some rows.

        Parameters
        ----------
        rows : Table
            The private rows: `outcome` in whole steps of its range, `arm`, `treated`, `covariates` by name,
            `outcome_unit` (the exact width of a step), `study` and `rows` (their number).

        Returns
        -------
        int, Fraction or sequence of them
            Exact numbers: floats are refused, as their rounding could exceed the bound.
        """

    @property
    def kind(self) -> Kind:
        """How the statistic is planned: as one number, as cells, or as a vector."""
        return _KINDS[self.norm]

    def declared_bound(self) -> Fraction:
        """Return the exact bound.

        Returns
        -------
        Fraction
            `bound`, in units of `value`.

        Raises
        ------
        CounterveilError
            No bound, or one that is not exact and positive: CV-P840.
        """
        bound: Any = getattr(self, "bound", None)
        exact = isinstance(bound, Rational) and not isinstance(bound, bool)
        if not exact or bound <= 0 or self.norm not in _KINDS:
            raise refusal("CV-P840", statistic=type(self).__name__, bound=bound, norm=self.norm)
        return Fraction(bound.numerator, bound.denominator)

    def release(self, gate: Gate, name: str, length: int = 1) -> Released | ReleasedVector:
        """Return the statistic of all rows with the noise that the plan pays for.

        Where `value` fails on the rows, or has another length than on made-up rows, it counts as zero: an
        error would tell something about them.

        Parameters
        ----------
        gate : Gate
            What a method is given to release at.
        name : str
            Name of the release in the plan; each passes once.
        length : int, default 1
            How many numbers it has, public.

        Returns
        -------
        Released or ReleasedVector
            The number, or the numbers, with noise of a known distribution.
        """
        bound = self.declared_bound()
        exact = values_or_zero(self, gate.rows.table, length)
        if self.norm == "absolute":
            return gate.release(name, exact[0], bound)
        release = gate.release_cells if gate.kind(name) is Kind.CELLS else gate.release_vector
        return release(name, exact, bound)


_KINDS: dict[str, Kind] = {"absolute": Kind.NUMBER, "l1": Kind.CELLS, "l2": Kind.VECTOR}


def exact_values(statistic: Statistic, rows: Table) -> list[Fraction]:
    """Return the numbers of a statistic as fractions; raises CV-P841 where one is not exact."""
    value: Any = statistic.value(rows)
    numbers = [value] if statistic.norm == "absolute" else list(value)
    if not all(isinstance(number, Rational) and not isinstance(number, bool) for number in numbers):
        kinds = sorted({type(number).__name__ for number in numbers})
        raise refusal("CV-P841", statistic=type(statistic).__name__, got=", ".join(kinds))
    return [Fraction(int(number.numerator), int(number.denominator)) for number in numbers]


def values_or_zero(statistic: Statistic, rows: Table, length: int) -> list[Fraction]:
    """Return the numbers of a statistic, all zero where it fails or has another length."""
    try:
        numbers = exact_values(statistic, rows)
    except Exception:  # whatever a function of somebody else raises may name a cell
        numbers = []
    return numbers if len(numbers) == length else [Fraction(0)] * length


def length_on_made_up_rows(statistic: Statistic, public: PublicData) -> int:
    """Return how many numbers a statistic has, from rows that are made up; raises what it fails with there.

    So mistakes in it show before anything is spent. Raises CV-P841 for numbers that are not exact, CV-P842
    for other errors.
    """
    rows = made_up_rows(public)
    try:
        return len(exact_values(statistic, rows))
    except CounterveilError:
        raise
    except Exception as error:
        name = type(statistic).__name__
        raise refusal("CV-P842", statistic=name, error=f"{type(error).__name__}: {error}") from error

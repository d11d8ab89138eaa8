"""What a paper is made of: figures and tables as cells that can be run one by one, and claims that they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd
from matplotlib.figure import Figure as Drawing

Scalar = str | int | float | bool | None
# The public description of one piece of work, with its seed; its JSON text is the key under which its rows are kept.
Cell = Mapping[str, Scalar]
# One line of a result table in long form, e.g. method, x, repetition, value; the cell's entries are added to it.
Row = Mapping[str, Scalar]
# The tables of a paper's figures by their names.
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper, by the cells that fill it.

    `cells(quick)` lists the work; a cell takes seconds, so that a run that was cut short loses little. `run` returns
    the rows of one cell and depends on the cell alone. `table` reduces all rows to what is printed and kept. `draw`
    is None for tables.
    """

    name: str
    title: str
    cells: Callable[[bool], Sequence[Cell]]
    run: Callable[[Cell], list[Row]]
    table: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Drawing] | None = None


class Verdict(StrEnum):
    """What a claim came to."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    CANNOT_BE_CHECKED = "cannot be checked"


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, the number of ours that decides it, and the reason in one sentence."""

    verdict: Verdict
    number: str
    why: str

    @classmethod
    def of(cls, holds: bool | None, number: str, why: str) -> Judged:
        """Return the verdict on a claim that holds or does not, or of which our number does not tell (None)."""
        verdicts = {True: Verdict.REPRODUCED, False: Verdict.NOT_REPRODUCED, None: Verdict.CANNOT_BE_CHECKED}
        return cls(verdicts[holds], number, why)


Judge = Callable[[Tables], Judged]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, and how the tables of `figures` decide it."""

    says: str
    where: str
    figures: tuple[str, ...]
    judge: Judge


@dataclass(frozen=True)
class Paper:
    """A paper by its short name, its reference, its figures in order and its claims.

    `remarks` returns what else its page has to say, in Markdown, from the tables that are finished.
    """

    name: str
    reference: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    remarks: Callable[[Tables], str] | None = None

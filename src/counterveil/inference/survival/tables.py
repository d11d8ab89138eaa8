"""Released tables of events by time cell, and the counts of people that they stand for.

    numbers = R counts + noise,    counts = R^-1 numbers,

with R the identity, or the lower triangular matrix of running sums (`numerics/running_sums.py`), whose noise
adds up less in sums over many cells. Counts are moved to the numbers of people that are public
(`table_noise.py`), which takes the noise of these sums away. In: released numbers by block (a stratum's arm),
the variance of their noise, edges in the unit of the times. Out: counts in people, or public weights of
people, with the covariance of their noise.

All of it is post-processing of the release that `rows/time_tables.proof.md` proves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from counterveil.inference.survival.blocks import GONE, Blocks
from counterveil.inference.survival.table_noise import TableNoise, with_totals
from counterveil.numerics.running_sums import FLAT, SUMS, Form


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """Released numbers of events and people by block.

    Blocks are strata in their order, and in each the control arm first.

    Attributes
    ----------
    numbers : tuple of tuple of float
        Numbers of every block, in the form in which they were released.
    form : {"flat", "sums"}
        Counts, or running sums of them.
    noise_sd : float
        Standard deviation of the noise of each number.
    heavy : bool
        Whether the noise is Laplace's.
    totals : tuple of float
        Public numbers of people: of everyone, or of every block where arms are public.
    edges : tuple of float
        Time 0 and the ends of the time cells.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    shares : tuple of float
        Public shares of the strata; empty where they are read off the tables.
    design : tuple of float
        Ratio of squared weights to weights of every block; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that intervals allow for.
    cut : int
        Number of cells that make one of the declared grid.
    causes : tuple of str
        Names of competing events; empty where there is one event.
    """

    numbers: tuple[tuple[float, ...], ...]
    form: str
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    convention: str
    shares: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0
    cut: int = 1
    causes: tuple[str, ...] = ()

    def _check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        blocks = len(self.numbers)
        entries = (max(len(self.causes), 1) + 1) * (len(self.edges) - 1) + 1
        sound = (
            blocks >= 2
            and blocks % 2 == 0
            and all(len(value) == entries for value in self.numbers)
            and len(self.design) == blocks
            and len(self.totals) in (1, blocks)
            and len(self.shares) in (0, blocks // 2)
            and self.form in (FLAT, SUMS)
            and self.convention in GONE
            and self.noise_sd >= 0
            and self.cut >= 1
            and (len(self.edges) - 1) % self.cut == 0
            and all(value > 0 for value in (*self.design, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no tables of events by time")


@lru_cache(maxsize=32)
def blocks_of(tables: NoisyTables) -> Blocks:
    """Return the tables as counts, moved to public totals."""
    causes = max(len(tables.causes), 1)
    form = Form(tables.form, len(tables.edges) - 1, causes)
    count = len(tables.numbers)
    everyone = len(tables.totals) == 1
    groups = (tuple(range(count)),) if everyone else tuple((number,) for number in range(count))
    root = None if tables.form == FLAT else form.inverse
    noise = TableNoise(tables.noise_sd**2 * form.inverse @ form.inverse.T, groups, root)
    counts = with_totals(form.counts(np.array(tables.numbers)), noise, tables.totals)
    return Blocks(
        counts=counts,
        noise=noise,
        convention=tables.convention,
        design=np.array(tables.design),
        inflation=tables.inflation,
        causes=causes,
    )

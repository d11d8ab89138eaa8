"""Tables of events by time cell as released, with what is known of their noise; all answers are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from counterveil.inference.log_rank import LogRank, log_rank
from counterveil.inference.survival_answers import SurvivalAnswers
from counterveil.inference.survival_curves import AT_RISK, Blocks, TableNoise, standardised, with_totals
from counterveil.numerics.running_sums import FLAT, SUMS, Form


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """Released numbers by block: strata in their order, and in each the control arm first.

    Attributes:
        numbers: of every block, in the form in which they were released.
        form: "flat" or "sums".
        noise_sd: standard deviation of the noise of each number; `heavy` says that it is Laplace's.
        totals: public numbers of people: of everyone, or of every block where arms are public.
        edges: time 0 and the ends of the time cells.
        convention: where in a cell people are censored: "middle" or "end".
        shares: public shares of the strata; none where they are read off the tables.
        design: ratio of squared weights to weights of every block; 1 without weights.
        inflation: of the sampling variance, for bias that intervals allow for.
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

    def check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        blocks, entries = len(self.numbers), 2 * len(self.edges) - 1
        sound = (
            blocks >= 2
            and blocks % 2 == 0
            and all(len(one) == entries for one in self.numbers)
            and len(self.design) == blocks
            and len(self.totals) in (1, blocks)
            and len(self.shares) in (0, blocks // 2)
            and self.form in (FLAT, SUMS)
            and self.convention in AT_RISK
            and self.noise_sd >= 0
            and all(one > 0 for one in (*self.design, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no tables of events by time")


@lru_cache(maxsize=32)
def blocks_of(tables: NoisyTables) -> Blocks:
    """Return the tables as counts, moved to public totals."""
    form = Form(tables.form, len(tables.edges) - 1)
    count = len(tables.numbers)
    everyone = len(tables.totals) == 1
    groups = (tuple(range(count)),) if everyone else tuple((place,) for place in range(count))
    noise = TableNoise(tables.noise_sd**2 * form.inverse @ form.inverse.T, groups)
    counts = with_totals(form.counts(np.array(tables.numbers)), noise, tables.totals)
    return Blocks(counts, noise, tables.convention, np.array(tables.design), tables.inflation)


@lru_cache(maxsize=32)
def answers_of(tables: NoisyTables) -> SurvivalAnswers:
    """Return everything that the tables say of survival."""
    blocks = blocks_of(tables)
    if tables.shares:
        curves = standardised(blocks, np.array(tables.shares))
    else:
        people = blocks.counts.reshape(len(tables.numbers) // 2, -1).sum(axis=1)
        shares = np.clip(people, 0.0, None)
        several = len(shares) > 1
        curves = standardised(
            blocks, shares / max(shares.sum(), 1e-9), 1 / tables.totals[0] if several else 0.0
        )
    return SurvivalAnswers(curves, np.array(tables.edges), tables.convention, tables.heavy)


@lru_cache(maxsize=32)
def log_rank_of(tables: NoisyTables) -> LogRank:
    """Return the log-rank test of equal hazards, within strata."""
    return log_rank(blocks_of(tables), tables.heavy)

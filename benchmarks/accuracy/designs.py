"""The data of the league: people who stay as they are, and outcomes that are drawn anew around known means.

`experiments.causal` has the designs; here they become records. Errors are given in parts of the outcome's range, so
that the files of IHDP, whose ranges differ, can take turns. IHDP and ACIC declare no range: theirs is that of other
draws of the same people, widened a little (`experiments.causal.real`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

from experiments.causal.designs import Design, correlated, varying
from experiments.causal.real import acic, fitted, ihdp_file

from counterveil.data import Table
from counterveil.datasets import lalonde, nhefs, pension401k, star
from counterveil_lab.reproduce.rivals.encoding import Records, records_of

# Columns up to which synthesisers are tried: beyond, one draw takes minutes.
FEW_COLUMNS = 12


@dataclass(frozen=True)
class Data:
    """Data of the league: its designs, which take turns over the draws."""

    name: str
    about: str
    designs: tuple[Callable[[], Design], ...]
    trial: bool = False
    # Draws beside those of other data: small data are cheap, and their noise is large.
    part: float = 1

    def drawn(self, draw: int) -> tuple[Records, float]:
        """Return the records of a draw and the true average effect."""
        base, design = based(self.name, draw % len(self.designs))
        return replace(base, y=design.outcomes(draw)), design.truth("ATE")


@cache
def based(name: str, place: int) -> tuple[Records, Design]:
    """Return the records of one of the designs of a data set, with its first outcomes, and the design."""
    design = DATA[name].designs[place]()
    first = design.outcomes(0)
    table = Table.attach({**design.columns, design.study.outcome: first}, design.study)
    return records_of(table, first), design


_LISTED = (
    Data("LaLonde", "trial, 445 people, 8 covariates", (lambda: fitted(lalonde()),), True, 2.5),
    Data(
        "IHDP",
        "747 people, 25 covariates",
        tuple(partial(ihdp_file, number) for number in (6, 11, 20)),
        part=2.5,
    ),
    Data("NHEFS", "1,566 people, 9 covariates", (lambda: fitted(nhefs()),), part=2.5),
    Data("index", "simulated, 4,000 people, 5 covariates, one index", (lambda: varying(0.6, 4000),)),
    Data(
        "correlated", "simulated, 4,000 people, 20 correlated covariates", (lambda: correlated(4000, True),)
    ),
    Data("ACIC", "4,802 people, 58 covariates", (partial(acic, 1),)),
    Data("401(k)", "9,915 households, 9 covariates", (lambda: fitted(pension401k()),)),
    Data("STAR, K", "trial, 5,871 pupils of kindergarten, 5 covariates", (lambda: fitted(star("K")),), True),
)
DATA = {one.name: one for one in _LISTED}

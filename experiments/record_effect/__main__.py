"""Errors, coverage and widths of adjusted effects of private records.

`python -m experiments.record_effect` prints a table of every kind of simulated study and size (25 minutes of CPU):
coverage / root mean square error / median width of 95 % intervals (share of answers that were not adjusted), each draw
with data and noise of its own. Seeds are not those that settings were chosen on. `rule` has the number of rows from
which adjustment is affordable; `redrawn` has ATE, ATT and ATC with outcomes redrawn on fixed covariates, and widths
beside AIPW without privacy; `cross_fit`, `budgets` and `real` (COUNTERVEIL_DATA) are of those modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from counterveil.estimators.moments.adjustment_budget import Design, fewest_rows
from counterveil.estimators.moments.arm_chain import arms_affordable
from counterveil.privacy import Budget
from experiments.record_effect import budgets, cross_fit, real
from experiments.record_effect.draws import cell
from experiments.record_effect.redrawn import DELTA, STUDIES, redrawn_cell
from experiments.runner import Row, Table, run

EPSILONS = ("0.5", "1", "2", "4", "8")
FIRST_SEED = 20_000
FIXED = ("OLS (not private)", "zero")
ALL = (
    "doubly robust",
    "doubly robust pure",
    "difference in means",
    "difference in means pure",
)
VARIANTS = ("doubly robust", "doubly robust pure")
# Title, kind of study, rows, methods, whether the outcome's range is declared far too wide.
KINDS = {
    "1000": ("Synth, n = 1,000", "plain", 1000, (*ALL, *FIXED), False),
    "4000": ("Synth, n = 4,000", "plain", 4000, (*ALL, *FIXED), False),
    "10000": ("Synth, n = 10,000", "plain", 10_000, (*ALL, *FIXED), False),
    "100000": ("Synth, n = 100,000", "plain", 100_000, (*VARIANTS, *FIXED), False),
    "wide": ("Synth, n = 4,000, outcomes declared in [-5, 10]", "plain", 4000, VARIANTS, True),
} | {
    f"{kind} {n}": (f"{kind.capitalize()}, n = {n:,}", kind, n, (*VARIANTS, *FIXED[:1]), False)
    for kind in ("aligned", "nonlinear", "correlated")
    for n in (1000, 4000, 10_000)
}  # fmt: skip


def simulated(kind: str, n: int, wide: bool, method: str, *, seeds: range) -> Row:
    """Return the cells of a method for every epsilon, or for one where it has none."""
    epsilons = EPSILONS[:1] if method in FIXED else EPSILONS
    return [method, *(str(cell(kind, seeds, n, method, epsilon, 20, wide)) for epsilon in epsilons)]


def rule(delta: str, mechanism: str, features: int, *, seeds: range) -> Row:
    """Return the fewest rows with which adjustment is affordable; nothing is drawn."""
    asked = [Design(1, features, Budget(epsilon, delta), mechanism) for epsilon in EPSILONS]
    return [delta, features, *(fewest_rows(one, arms_affordable) for one in asked)]


def redrawn(name: str, estimand: str, delta: str, *, seeds: range) -> Row:
    """Return coverage / error / width / width beside AIPW; large studies have half of the draws."""
    draws = len(seeds) // 2 if "50,000" in name else len(seeds)
    cells = [redrawn_cell(name, seeds.start, draws, epsilon, delta, estimand) for epsilon in EPSILONS[1:]]
    return [name, f"{estimand}, {delta}", *cells]


def redrawn_cells() -> Iterator[tuple[str, str, str]]:
    """Yield study, estimand and delta."""
    for name in STUDIES:
        several = name.startswith("varying") and "50,000" not in name
        yield from ((name, estimand, DELTA) for estimand in (("ATE", "ATT", "ATC") if several else ("ATE",)))
        if name in ("births", "varying, slope 0.6"):
            yield name, "ATE", "0"


TABLES = {
    name: Table(
        columns=("method", *(f"epsilon {epsilon}" for epsilon in EPSILONS)),
        cells=[(method,) for method in methods],
        row=partial(simulated, kind, n, wide),
        title=f"**{title}** ({{draws}} draws)",
        draws=100,
        first_seed=FIRST_SEED,
        apart=name == "100000",
    )
    for name, (title, kind, n, methods, wide) in KINDS.items()
} | {
    "rule": Table(
        columns=("delta", "features", *(f"{epsilon} :," for epsilon in EPSILONS)),
        cells=[
            (*noise, features)
            for noise, features in product((("1e-6", "gaussian"), ("0", "staircase")), (5, 20, 50))
        ],
        row=rule,
        apart=True,
    ),
    "redrawn": Table(
        columns=("study", "estimand, delta", *(f"epsilon {epsilon}" for epsilon in EPSILONS[1:])),
        cells=redrawn_cells,
        row=redrawn,
        draws=100,
        first_seed=FIRST_SEED,
        apart=True,
    ),
    "cross_fit": cross_fit.TABLE,
    "budgets": budgets.TABLE,
    "real": real.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES)

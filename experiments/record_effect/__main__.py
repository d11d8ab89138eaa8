"""`python -m experiments.record_effect [TABLE ...] [--draws N]`: prints tables in Markdown.

Coverage / root mean square error / median width of 95 % intervals (share of answers that were not adjusted),
over simulated studies, each with data and noise of its own. Seeds are not those that settings were chosen on.
`--rule` prints the number of rows from which adjustment is affordable. `--redrawn` prints ATE, ATT and ATC with
outcomes redrawn on fixed covariates, and widths beside AIPW without privacy.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor

from counterveil.estimators.moments.adjustment_budget import Design, fewest_rows
from counterveil.estimators.moments.arm_chain import arms_affordable
from counterveil.privacy import Budget
from experiments.record_effect.draws import Cell, cell
from experiments.record_effect.redrawn import DELTA, STUDIES, redrawn_cell

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
TABLES = {
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

Row = tuple[str, list[Future[Cell]]]


def rows(pool: ProcessPoolExecutor, name: str, draws: int) -> Iterator[Row]:
    _, kind, n, methods, wide = TABLES[name]
    seeds = range(FIRST_SEED, FIRST_SEED + draws)
    for method in methods:
        epsilons = EPSILONS[:1] if method in FIXED else EPSILONS
        yield method, [pool.submit(cell, kind, seeds, n, method, e, 20, wide) for e in epsilons]


def rule() -> None:
    print("| delta | features | " + " | ".join(EPSILONS) + " |\n|---|---|" + "---|" * len(EPSILONS))
    for delta, mechanism in (("1e-6", "gaussian"), ("0", "staircase")):
        for features in (5, 20, 50):
            asked = [Design(1, features, Budget(e, delta), mechanism) for e in EPSILONS]
            rows = " | ".join(f"{fewest_rows(one, arms_affordable):,}" for one in asked)
            print(f"| {delta} | {features} | {rows} |")


def redrawn(pool: ProcessPoolExecutor, draws: int, names: list[str]) -> None:
    epsilons = EPSILONS[1:]
    print("| study | estimand, delta | " + " | ".join(f"epsilon {e}" for e in epsilons) + " |")
    print("|---|---|" + "---|" * len(epsilons))
    started = []
    for name in names or STUDIES:
        large = "50,000" in name
        estimands = ("ATE", "ATT", "ATC") if name.startswith("varying") and not large else ("ATE",)
        asked = [(estimand, DELTA) for estimand in estimands]
        asked += [("ATE", "0")] if name in ("births", "varying, slope 0.6") else []
        for estimand, delta in asked:
            words = name, FIRST_SEED, draws // 2 if large else draws
            cells = [pool.submit(redrawn_cell, *words, e, delta, estimand) for e in epsilons]
            started.append((f"| {name} | {estimand}, {delta} | ", cells))
    for head, cells in started:
        print(head + " | ".join(one.result() for one in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_effect")
    parser.add_argument("tables", nargs="*", default=[name for name in TABLES if name != "100000"])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rule", action="store_true")
    parser.add_argument("--redrawn", nargs="*", metavar="STUDY")
    chosen = parser.parse_args()
    if chosen.rule:
        rule()
        return
    with ProcessPoolExecutor(chosen.workers) as pool:
        if chosen.redrawn is not None:
            redrawn(pool, chosen.draws, chosen.redrawn)
            return
        started = {name: list(rows(pool, name, chosen.draws)) for name in chosen.tables}
        for name, found in started.items():
            print(f"\n**{TABLES[name][0]}** ({chosen.draws} draws)\n")
            print("| method | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |")
            print("|---|" + "---|" * len(EPSILONS))
            for method, cells in found:
                texts = [str(one.result()) for one in cells] + [""] * (len(EPSILONS) - len(cells))
                print(f"| {method} | " + " | ".join(texts) + " |", flush=True)


if __name__ == "__main__":
    main()

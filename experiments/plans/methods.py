"""Planned beside actual half-widths of every method at every level, and `auto` beside the best method that covers.

Designs are those of `experiments.third_level`: covariates stay, treatments, outcomes and noise are drawn anew. A method
covers where at most a fifth of its intervals miss, and is compared with `auto` where it adjusts.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.third_level.designs import DESIGNS, Design

BUDGETS = (("1", "0"), ("4", "1e-6"))
UNADJUSTED = "difference_in_means"
KNOWN = ("summaries", "sample")
NEAR, BEST, MISSED, FIRST_NOISE = 1.25, 1.15, 0.2, 600_000
FIELDS = ("design", "epsilon", "delta", "protects", "method", "auto", "actual", "covered", *KNOWN)
FILE = Path(__file__).with_name("methods.csv")


def actual(design: Design, asked: dict[str, Any], draws: int) -> tuple[float, float, str] | None:
    """Return the median half-width, how often it covers, and the method; None for refusals and unadjusted answers."""
    halves, covered, method = [], [], ""
    for number in range(draws):
        noise = cv.SeededNoise(FIRST_NOISE + number)
        try:
            found = cv.ate(design.drawn(number), design.study, noise=noise, **asked)
        except CounterveilError:
            return None
        if found.interval_target is not None:
            return None
        low, high = found.untruncated_interval()
        halves.append((high - low) / 2)
        covered.append(low <= design.truth("ATE") <= high)
        method = str(found.details.get("chosen_by_auto", asked["method"])).partition(":")[0]
    return float(np.median(halves)), float(np.mean(covered)), method


def cells(given: Any, draws: int, only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Yield one row a method; `given` returns what a planner knows of a design."""
    for name, make in DESIGNS.items():
        if only and name not in only:
            continue
        design = make()
        for epsilon, delta in BUDGETS:
            budget = {"epsilon": epsilon, "delta": delta}
            plans = [
                cv.plan(
                    design.study, rows=len(design.propensity), method="all", **budget, **given(design, what)
                )
                for what in KNOWN
            ]
            planned = [
                {(one.protects.value, one.method): one.half_width for one in plan.answers} for plan in plans
            ]
            for level in ("outcome", "treatment and outcome", "record"):
                asked = {"protects": level, **budget}
                auto = actual(design, {**asked, "method": "auto"}, draws)
                for method in [method for way, method in planned[0] if way == level]:
                    is_auto = auto is not None and auto[2] == method
                    found = auto if is_auto else actual(design, {**asked, "method": method}, draws)
                    if found is not None:
                        ratios = [(half.get((level, method)) or np.inf) / found[0] for half in planned]
                        row = (name, epsilon, delta, level, method, int(is_auto), *found[:2], *ratios)
                        yield dict(zip(FIELDS, row, strict=True))
        print(f"{design.name}: done", file=sys.stderr, flush=True)


def print_methods(given: Any, draws: int, only: list[str] | None) -> None:
    """Write all rows to a file and print them."""
    rows = list(cells(given, draws, only))
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    print_table()


def print_table() -> None:
    """Print how near plans and `auto` are, from the file."""
    with FILE.open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row |= {name: float(row[name]) for name in ("actual", "covered", *KNOWN)}
    print("| protects | method | cells | " + " | ".join(f"within a quarter, {what}" for what in KNOWN) + " |")
    print("|---|---|---|" + "---|" * len(KNOWN))
    for way in [*dict.fromkeys((row["protects"], row["method"]) for row in rows), ("all", "all")]:
        own = [row for row in rows if way[0] == "all" or (row["protects"], row["method"]) == way]
        near = [np.mean([1 / NEAR <= row[what] <= NEAR for row in own]) for what in KNOWN]
        print(f"| {way[0]} | {way[1]} | {len(own)} | " + " | ".join(f"{share:.0%}" for share in near) + " |")
    print(
        "\n| design | epsilon, delta | protects | `auto` | half-width | covers | best that covers | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for key in dict.fromkeys((row["design"], row["epsilon"], row["delta"], row["protects"]) for row in rows):
        own = [row for row in rows if tuple(row[name] for name in FIELDS[:4]) == key]
        auto, own = (
            [row for row in own if row["auto"] == "1"],
            [row for row in own if row["method"] != UNADJUSTED],
        )
        best = min(
            (row for row in own if row["covered"] >= 1 - MISSED), key=lambda row: row["actual"], default=None
        )
        if auto and best:
            ratios.append(auto[0]["actual"] / best["actual"])
            said = [auto[0]["method"], f"{auto[0]['actual']:.3g}", f"{auto[0]['covered']:.2f}"]
            said += [best["method"], f"{ratios[-1]:.2f}"]
            print(f"| {key[0]} | {key[1]}, {key[2]} | {key[3]} | {' | '.join(said)} |")
    print(
        f"\n`auto` within 15 % of the best method that covers: {np.mean(np.array(ratios) <= BEST):.0%} of {len(ratios)}"
    )

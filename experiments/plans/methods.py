"""Planned beside actual half-widths of every method at every level, and `auto` beside the best method that covers.

Designs are those of `experiments.third_level`: covariates stay, treatments, outcomes and noise are drawn anew; or those
of `experiments.shapes.search`, drawn at random, as observational studies. A method covers where at most a fifth of its
intervals miss, and is compared with `auto` where it adjusts.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.plans.calling import plan as planned_by_name
from experiments.shapes.search import SHAPES, People, drawn
from experiments.third_level.designs import DESIGNS

BUDGETS = (("1", "0"), ("4", "1e-6"))
UNADJUSTED = "difference_in_means"
KNOWN = ("summaries", "sample")
NEAR, BEST, GROWN, MISSED, FIRST_NOISE = 1.25, 1.15, 1.1, 0.2, 600_000
# Fewest studies, and how close their median half-width has to be known unless the most are drawn.
LEAST, APART = 12, 0.05
FIELDS = ("design", "epsilon", "delta", "protects", "method", "auto", "actual", "covered", *KNOWN)
FILES = {one: Path(__file__).with_name(f"{one}.csv") for one in ("methods", "search")}


@dataclass(frozen=True)
class Searched:
    """A cell of the random search, as an observational study."""

    seed: int
    number: int

    @property
    def cell(self) -> dict[str, Any]:
        found = drawn(self.seed, self.number)
        return found | {"trial": False, "estimand": "ATE", "measure": "difference"}

    @property
    def name(self) -> str:
        cell, told = self.cell, ("rows", "columns", "share", "steep")
        said = [f"{name} {cell[name]}" for name in told]
        said += [
            f"{name} too wide"
            for name in ("outcome_range", "covariate_range")
            if cell[name] not in (1, (0, 1))
        ]
        return f"{self.seed}/{self.number}: {SHAPES[cell['shape']].name}; {'; '.join(said)}"

    @property
    def rows(self) -> int:
        return int(self.cell["rows"])

    @property
    def study(self) -> cv.Study:
        return self._people(0).study

    def _people(self, number: int, rows: int | None = None) -> People:
        return People(self.cell, [self.seed, self.number, number], rows or self.rows)

    def drawn(self, number: int) -> dict[str, Any]:
        return self._people(number).frame

    @cached_property
    def _truth(self) -> float:
        return self._people(1 << 20, 1_000_000).truth()

    def truth(self, _estimand: str) -> float:
        return self._truth

    @property
    def budgets(self) -> tuple[tuple[str, str], ...]:
        """The cell's epsilon, twice that, and the first with a delta."""
        once = self.cell["epsilon"]
        return (once, "0"), (str(2 * float(once)), "0"), (once, "1e-6")


def designs(only: list[str] | None, seed: int | None, cells: int) -> Iterator[tuple[Any, int, Any]]:
    """Yield designs with their numbers of rows and the budgets that are asked."""
    if seed is not None:
        for number in range(cells):
            found = Searched(seed, number)
            yield found, found.rows, found.budgets
        return
    for name, make in DESIGNS.items():
        if not only or name in only:
            design = make()
            yield design, len(design.propensity), BUDGETS


def actual(design: Any, asked: dict[str, Any], draws: int) -> tuple[float, float, str] | None:
    """Return the median half-width, how often it covers, and the method; None for refusals and unadjusted answers.

    Studies are drawn until quartiles of half-widths, over the root of their number, are apart by `APART` of the median.
    """
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
        first, middle, third = np.quantile(halves, (0.25, 0.5, 0.75))
        if number + 1 >= LEAST and third - first <= APART * np.sqrt(number + 1) * middle:
            break
    return float(np.median(halves)), float(np.mean(covered)), method


def cells(given: Any, draws: int, chosen: Iterator[tuple[Any, int, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row a method; `given` returns what a planner knows of a design."""
    for design, size, budgets in chosen:
        for epsilon, delta in budgets:
            budget = {"epsilon": epsilon, "delta": delta}
            plans = [
                planned_by_name(design.study, rows=size, method="all", **budget, **given(design, what))
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
                        ratios = [_ratio(half.get((level, method)), found[0]) for half in planned]
                        row = (design.name, epsilon, delta, level, method, int(is_auto), *found[:2], *ratios)
                        yield dict(zip(FIELDS, row, strict=True))
        print(f"{design.name}: done", file=sys.stderr, flush=True)


def _ratio(planned: float | None, found: float) -> float:
    return 1.0 if planned == found else (planned or np.inf) / max(found, 1e-300)


def print_methods(given: Any, draws: int, only: list[str] | None, seed: int | None, count: int) -> None:
    """Write all rows to a file and print them."""
    file = FILES["methods" if seed is None else "search"]
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, FIELDS)
        writer.writeheader()
        for row in cells(given, draws, designs(only, seed, count)):
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
            opened.flush()
    print_table(file)


def print_table(path: Path) -> None:
    """Print how near plans and `auto` are, and what grows, from a file."""
    with path.open(newline="") as file:
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
    print_growth([row for row in rows if row["auto"] == "1"])


def print_growth(rows: list[dict[str, Any]]) -> None:
    """Print where `auto` is longer at a larger budget than at the first of a design."""
    print(
        "\n| design | protects | first budget | half-width | larger budget | half-width |\n"
        + "|---" * 6
        + "|"
    )
    steps = grown = 0
    for key in dict.fromkeys((row["design"], row["protects"]) for row in rows):
        first, *more = [row for row in rows if (row["design"], row["protects"]) == key]
        for row in more:
            if any(float(row[name]) < float(first[name]) for name in ("epsilon", "delta")):
                continue
            steps += 1
            if row["actual"] > GROWN * first["actual"]:
                grown += 1
                said = [f"{one['epsilon']}, {one['delta']} | {one['actual']:.3g}" for one in (first, row)]
                print(f"| {key[0]} | {key[1]} | {' | '.join(said)} |")
    print(f"\n{grown} of {steps} larger budgets have lengths beyond {GROWN} times the first")

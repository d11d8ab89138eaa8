"""`python -m experiments.causal [--draws N] [--only NAME ...] [--levels LEVEL ...] [--estimands NAME ...]
[--methods NAME ...] [--epsilons X ...] [--deltas X ...] [--people SEED] [--out FOLDER] [--beside FOLDER]`.

Prints coverage / root mean square error / median width of 95 % intervals in Markdown, one line for each method; the
designs on real covariates need COUNTERVEIL_DATA. Answers are saved in the folder as they are made; a second call makes
what is missing. `--print` prints what is there.
`--beside` adds the answers of another version of the library.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import experiments.causal.designs as people
from experiments.causal.designs import (
    Design,
    bent,
    births,
    correlated,
    kang_schafer,
    nie_wager,
    twins,
    varying,
    yes_or_no,
)
from experiments.causal.real import real
from experiments.causal.runs import ADJUSTED, Asked, Row, run
from experiments.causal.table import failing, markdown
from experiments.runner import saved


def designs() -> list[Design]:
    """Return the designs of the table."""
    simulated = [
        *(varying(slope, n) for n in (5000, 50_000) for slope in (0.0, 0.3, 0.6, 1.0)),
        *(bent(n) for n in (1000, 2000, 10_000, 50_000)),
        *(correlated(n, aligned) for n in (4000, 20_000) for aligned in (False, True)),
        *(yes_or_no(n) for n in (1000, 10_000)),
        *(nie_wager(kind, 5000) for kind in "ABCD"),
        nie_wager("C", 2000),
        kang_schafer(1000),
        twins(),
        births(),
        *(births().widened(times) for times in (5, 20)),
        *(varying(0.6, 5000).widened(times) for times in (5, 20)),
    ]
    return simulated + (real() if os.environ.get("COUNTERVEIL_DATA") else [])


def main() -> None:
    chosen = arguments()
    folder = Path(chosen.out or Path(tempfile.gettempdir()) / "causal")
    folder.mkdir(parents=True, exist_ok=True)
    people.FIRST_SEED = chosen.people
    found = named(designs(), chosen.only or [])
    asked = Asked(chosen.levels, chosen.estimands, chosen.methods, chosen.epsilons, chosen.deltas)
    below = []
    for design in found:
        name = "".join(letter if letter.isalnum() else "-" for letter in design.name) + ".csv"
        if not chosen.print:
            run(design, folder / name, chosen.draws, asked)
        rows = [row for row in saved(folder / name, Row) if row.level in chosen.levels]
        other = (
            [row for row in saved(Path(chosen.beside, name), Row) if row.level in chosen.levels]
            if chosen.beside
            else []
        )
        print(markdown(rows, other), flush=True)
        below += failing(rows)
    print(f"\nCells of `auto` that cover less than 93 %: {len(below)}\n")
    print("\n".join(f"- {line}" for line in below))


def named(found: list[Design], words: list[str]) -> list[Design]:
    """Return the designs with one of these names, or else those whose names hold one of them; all without words."""
    exact = {design.name.lower() for design in found} & {word.lower() for word in words}
    return [
        design
        for design in found
        if not words
        or any(
            word.lower() == design.name.lower()
            if word.lower() in exact
            else word.lower() in design.name.lower()
            for word in words
        )
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.causal")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument(
        "--only", nargs="*", metavar="NAME", help="designs of these names, or whose names hold them"
    )
    parser.add_argument("--levels", nargs="*", default=["outcome", "record"], choices=["outcome", "record"])
    parser.add_argument("--estimands", nargs="*", default=["ATE", "ATT", "ATC"], metavar="NAME")
    parser.add_argument("--methods", nargs="*", default=[ADJUSTED], metavar="NAME")
    parser.add_argument("--epsilons", nargs="*", default=[], metavar="X", help="all by default")
    parser.add_argument("--deltas", nargs="*", default=[], metavar="X", help="all by default")
    parser.add_argument("--people", type=int, default=people.FIRST_SEED, metavar="SEED")
    parser.add_argument(
        "--out", metavar="FOLDER", help="where answers are saved; a temporary folder by default"
    )
    parser.add_argument(
        "--beside", metavar="FOLDER", help="answers of another version, printed below each line"
    )
    parser.add_argument("--print", action="store_true", help="make no answers, print what is saved")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""`python -m experiments.every_method [--draws N] [--only NAME ...] [--out FOLDER]`: prints the table in Markdown.

Needs COUNTERVEIL_DATA. Each cell is coverage / root mean square error / median width of 95 % intervals (share of
answers that were not adjusted). Answers are saved in the folder as they are made; a second call makes what is
missing and prints everything. `--print` prints what is there.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from experiments.every_method.asking import FREE, available
from experiments.every_method.designs import REPORTED, TUNING, Design
from experiments.every_method.runs import Row, file_of, run
from experiments.every_method.table import NEAR, Gap, ceiling, cells, gaps, markdown
from experiments.runner import saved

# The best of all methods or of those with an interval for the effect, with hand-picked strata or not, by which column.
Count = tuple[bool, bool, str]
COUNTS: dict[Count, str] = {
    (False, True, "error"): "best of all private methods by error",
    (True, False, "error"): "best by error with an interval for the effect, except hand-picked strata",
    (True, False, "half"): "shortest with an interval for the effect, except hand-picked strata",
}


def main() -> None:
    chosen = arguments()
    folder = Path(chosen.out or Path(tempfile.gettempdir()) / "every_method") / (
        "tuning" if chosen.tuning else "reported"
    )
    folder.mkdir(parents=True, exist_ok=True)
    designs = TUNING if chosen.tuning else REPORTED
    if chosen.only:
        designs = [design for design in designs if any(word in design.name for word in chosen.only)]
    methods = [*(chosen.methods or available()), *FREE]
    found: dict[Count, list[Gap]] = {key: [] for key in COUNTS}
    for design in designs:
        if not chosen.print:
            run(design, folder, chosen.draws, methods)
        rows = saved(file_of(folder, design), Row)
        made = cells(rows)
        if made and not chosen.summary:
            print(markdown(design.name, made), flush=True)
        for count in found:
            found[count] += gaps(design.name, rows, *count)
    summary(found, designs)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.every_method")
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="designs whose names hold one of these")
    parser.add_argument("--methods", nargs="*", metavar="METHOD")
    parser.add_argument(
        "--out", metavar="FOLDER", help="where answers are saved; a temporary folder by default"
    )
    parser.add_argument("--tuning", action="store_true", help="what the rule of the choice was made on")
    parser.add_argument("--print", action="store_true", help="make no answers, print what is saved")
    parser.add_argument("--summary", action="store_true", help="print the automatic choice's figures only")
    return parser.parse_args()


def summary(found: dict[Count, list[Gap]], designs: list[Design]) -> None:
    """Print how often the automatic choice is within 15 % of the best, by design, and where it is not."""
    tuned, alike = {one.name for one in designs if one.tuned}, {one.name: one.alike for one in designs}
    for key, listed in found.items():
        if not listed:
            continue
        print(f"\n`auto` within 15 % of the {COUNTS[key]}: {part(listed)}", end="")
        fresh = [gap for gap in listed if gap.design not in tuned]
        print(
            f"; without designs that the rule was made on, {part(fresh)}\n"
            if 0 < len(fresh) < len(listed)
            else "\n"
        )
        print(f"No rule of public numbers can do better than {ceiling(listed, alike)} with these methods.\n")
        by_design = {gap.design: part([one for one in listed if one.design == gap.design]) for gap in listed}
        print("\n".join(f"- {name}: {text}" for name, text in by_design.items()), end="\n\n")
        for gap in sorted(listed, key=lambda gap: -gap.ratio):
            if gap.ratio > NEAR:
                print(
                    f"- {gap.design}, epsilon {gap.epsilon}, delta {gap.delta}: {gap.best} is better, "
                    f"{gap.ratio:.2f} times"
                )


def part(listed: list[Gap]) -> str:
    near = sum(gap.ratio <= NEAR for gap in listed)
    return f"{near} of {len(listed)} cells ({near / len(listed):.1%})"


if __name__ == "__main__":
    main()

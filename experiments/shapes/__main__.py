"""The table of shapes: `python -m experiments.shapes [--jobs 2] [--draws 100] [--only WORD ...] [--keep]`.

Cells are saved in the folder as they are made; a second call makes what is missing and prints everything. `--keep`
writes the kept table, `experiments/shapes/table.json` and the page RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from experiments.shapes.runs import DRAWS, MORE_DRAWS, Cell, covering, make, saved
from experiments.shapes.table import page
from experiments.shapes.ways import ways

HERE = Path(__file__).parent
PAGE = HERE / "RESULTS.md"
# What stands below this line of the page is written here.
MARK = "<!-- written by python -m experiments.shapes --keep -->\n"


def main() -> None:
    given = arguments()
    folder = Path(given.out or Path(tempfile.gettempdir()) / "shapes")
    folder.mkdir(parents=True, exist_ok=True)
    cells = [
        cell for cell in covering(ways()) if not given.only or any(word in cell.way for word in given.only)
    ]
    if not given.print:
        every(cells, folder, given.draws, given.more, given.jobs)
    wanted = {cell.seed for cell in cells}
    kept = [one for one in saved(folder) if one["seed"] in wanted]
    told = page(kept)
    print(told)
    if given.keep:
        (HERE / "table.json").write_text("[\n" + ",\n".join(json.dumps(one) for one in kept) + "\n]\n")
        PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n" + told)


def every(cells: list[Cell], folder: Path, draws: int, more: int, jobs: int) -> None:
    """Make the cells that are missing, the smallest first."""
    cells = sorted(cells, key=lambda cell: cell.rows)
    with ProcessPoolExecutor(jobs) as pool:
        made = {pool.submit(make, cell, folder, draws, more): cell for cell in cells}
        for number, done in enumerate(as_completed(made), 1):
            done.result()
            print(f"{number} of {len(cells)}: {made[done].key}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.shapes")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument(
        "--more", type=int, default=MORE_DRAWS, help="further draws of cells that seem to miss"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", metavar="WORD", help="ways whose names hold one of these")
    parser.add_argument(
        "--out", metavar="FOLDER", help="where cells are saved; a temporary folder by default"
    )
    parser.add_argument("--print", action="store_true", help="make no cells, print what is saved")
    parser.add_argument("--keep", action="store_true", help="write the kept table and its page")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""`python -m benchmarks.accuracy`: runs the league, prints who is first, and writes its page, its file and the guide.

    python -m benchmarks.accuracy --draws 40             # goes on where an earlier run stopped
    python -m benchmarks.accuracy --draws 0 --html FILE  # the page of what is there
    python -m benchmarks.accuracy --draws 0 --compare    # what moved since the frozen league
    python -m benchmarks.accuracy --draws 0 --audit --measure --tests 100 --freeze --guide

The last audits claims, measures time and memory, counts rejections of tests, keeps all of it, and rewrites "Which
method should I use?". Without these words what was kept is shown.

Needs COUNTERVEIL_DATA, and for all rivals the environment of `python -m counterveil_lab.reproduce.rivals.environment`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.running import run, saved

DEFAULT = Path("build/accuracy.csv")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[], help="data by name")
    parser.add_argument("--rows", type=Path, default=DEFAULT, help="the file of answers")
    parser.add_argument("--html", type=Path, help="write the page")
    parser.add_argument(
        "--audit", nargs="*", metavar="METHOD", help="audit claims again, all if none is named"
    )
    parser.add_argument(
        "--tests", type=int, default=0, metavar="DRAWS", help="rejections of tests of no effect"
    )
    parser.add_argument("--compare", action="store_true", help="say what moved since the frozen league")
    parser.add_argument("--freeze", action="store_true", help="keep this league")
    parser.add_argument(
        "--guide", action="store_true", help="rewrite the section of experiments/every_method/RESULTS.md"
    )
    parser.add_argument(
        "--measure", nargs="*", metavar="METHOD", help="time and memory, each in a fresh process"
    )
    return parser


def main() -> int:
    given = arguments().parse_args()
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    run(given.rows, given.draws, given.only)
    from benchmarks.accuracy import guide, kept, page, resources, summary, testing, verdicts
    from benchmarks.accuracy.standing import cells

    rows = [row for row in saved(given.rows) if row.data in DATA]
    if not rows:
        sys.exit("no answers yet: pass --draws")
    found = cells(rows)
    beside = {
        "verdicts": kept.verdicts() | (verdicts.verdicts(given.audit) if given.audit is not None else {}),
        "costs": kept.costs() | (resources.measured_all(given.measure) if given.measure is not None else {}),
        "tests": testing.rejections(given.tests) if given.tests else kept.rejected(),
    }
    print(summary.text(found))
    if given.html:
        given.html.write_text(page.page(found, **beside))
    moved = kept.moved(kept.read(), found) if given.compare else []
    if given.compare:
        print(kept.shown(moved))
    if given.freeze:
        kept.write(found, beside)
    if given.guide:
        guide.rewrite(found)
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())

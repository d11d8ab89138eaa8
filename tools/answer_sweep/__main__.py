"""Every method asked at the edges of what may be asked; prints what is charged without an answer.

    python -m tools.answer_sweep            # the whole sweep: about an hour of CPU
    python -m tools.answer_sweep --part 40  # every 40th question of it

A question may be refused before it is charged. Once charged it must be answered, in less than 20 s of CPU and 1 GiB
beyond what the program itself takes, and its result must print and give intervals at other levels.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator
from itertools import product

from tools.answer_sweep.running import run, trouble
from tools.answer_sweep.ways import KINDS, ways

ROWS = (4, 5, 8, 20, 200)
EPSILONS = ("1e-12", "1e-8", "1e-4", "0.001", "0.1", "1", "50", "1e4")
DELTAS = ("0", "1e-6", "1e-100")
MOST_BYTES = 1 << 30


def questions() -> Iterator[tuple[str, int, str, dict[str, str]]]:
    """Yield every question of the sweep: a way to ask, rows, kind of data and budget."""
    for name, rows, epsilon, delta in product(ways(), ROWS, EPSILONS, DELTAS):
        yield name, rows, KINDS[0], {"epsilon": epsilon, "delta": delta}
    for name, rows, kind, epsilon in product(ways(), (8, 200), KINDS[1:], ("1e-4", "1")):
        yield name, rows, kind, {"epsilon": epsilon, "delta": "0"}
        yield name, rows, kind, {"epsilon": epsilon, "delta": "1e-6"}


def main(arguments: list[str] | None = None) -> int:
    """Print every question of the sweep that went wrong, then how many there were; 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=1, help="ask every so manyeth question")
    parser.add_argument("--start", type=int, default=0, help="leave so many out first")
    parser.add_argument("--way", default="", help="only ways to ask whose names hold this")
    chosen = parser.parse_args(arguments)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * MOST_BYTES, resource.RLIM_INFINITY))
    known, asked, wrong, answered = ways(), 0, 0, 0
    listed = [one for one in questions() if chosen.way in one[0]]
    for name, rows, kind, budget in listed[chosen.start :: chosen.part]:
        found = run(known[name], rows, kind, budget)
        asked, answered = asked + 1, answered + (found.answer is not None)
        said = trouble(found)
        if said is not None:
            wrong += 1
            print(f"{name}, {rows} rows, {kind}, {budget}: {said}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used
    print(f"{asked} questions, {answered} answered, {wrong} went wrong; at most {peak / 2**20:.0f} MiB")
    return 1 if wrong or peak > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())

"""Seeded answers of every method, question, source and setting, compared to the bit.

    python -m tools.golden take FILE               # ask every call and write what it answered
    python -m tools.golden compare FILE            # ask again, print each call that differs; exit code 1 if any does
    python -m tools.golden compare FILE --text     # printed texts and `to_dict` as well
    python -m tools.golden take FILE --part 1/2    # half of the calls, for one of two processes
    python -m tools.golden compare A B --taken C   # two files together with a third; nothing is asked

Files are about one machine and its libraries: take one before a change and compare after it. They are not kept here.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits
from tools.golden.calls import calls
from tools.golden.records import Records, differences, read, record, write

import counterveil


def asked(chosen: argparse.Namespace) -> Records:
    """Return the records of the chosen calls; those that take long are named where asked for."""
    part, parts = map(int, chosen.part.split("/"))
    listed = [one for one in calls() if _is_chosen(one.name, chosen)][part - 1 :: parts]
    found: Records = {}
    # Sums of floats depend on the number of threads.
    with threadpool_limits(1):
        for one in listed:
            began = time.process_time()
            found[one.name] = record(one)
            seconds = time.process_time() - began
            if seconds > chosen.slow:
                print(f"{seconds:.1f} s: {one.name}", file=sys.stderr, flush=True)
    return found


def _is_chosen(name: str, chosen: argparse.Namespace) -> bool:
    return chosen.only in name and not any(text in name for text in chosen.without)


def _kept(records: Records, chosen: argparse.Namespace, wanted: Records) -> Records:
    """Return the chosen records; of a part, those that were asked and those that are asked nowhere."""
    whole = chosen.part == "1/1" or bool(chosen.taken)
    elsewhere = set() if whole else {one.name for one in calls()} - wanted.keys()
    return {name: one for name, one in records.items() if _is_chosen(name, chosen) and name not in elsewhere}


def _counts(records: Records) -> str:
    refused, faults = (sum(kind in one for one in records.values()) for kind in ("refused", "fault"))
    answered = len(records) - refused - faults
    return f"{len(records)} calls: {answered} answered, {refused} refused, {faults} failed"


def _take(chosen: argparse.Namespace) -> int:
    found = asked(chosen)
    write(found, chosen.files[0])
    print(f"{_counts(found)}; {time.process_time():.0f} s of CPU; sources {counterveil.__file__}")
    for name, one in found.items():
        if "fault" in one:
            print(f"{name}: failed with {one['fault']}")
    return 1 if any("fault" in one for one in found.values()) else 0


def _compare(chosen: argparse.Namespace) -> int:
    if chosen.taken:
        found = {name: one for name, one in read(chosen.taken).items() if _is_chosen(name, chosen)}
    else:
        found = asked(chosen)
    before = _kept(read(chosen.files), chosen, found)
    lines = [*differences(before, found, chosen.text)]
    print("\n".join([*lines, f"{_counts(found)}; {len(lines)} differ"]))
    return 1 if lines else 0


def main(arguments: list[str] | None = None) -> int:
    """Take or compare; 1 where calls differ or fail."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tools.golden", description=__doc__, formatter_class=form)
    parser.add_argument("action", choices=("take", "compare"))
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="compare reads several as one")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N parts of the calls")
    parser.add_argument("--only", default="", metavar="TEXT", help="calls whose names hold this")
    parser.add_argument(
        "--without", action="append", default=[], metavar="TEXT", help="no calls whose names hold this"
    )
    parser.add_argument("--text", action="store_true", help="compare printed texts and `to_dict` too")
    parser.add_argument("--taken", nargs="+", type=Path, metavar="FILE", help="compare with these files")
    parser.add_argument("--slow", type=float, default=1e9, metavar="S", help="name calls of more seconds")
    chosen = parser.parse_args(arguments)
    if chosen.action == "take" and len(chosen.files) > 1:
        parser.error("take writes one file")
    return _take(chosen) if chosen.action == "take" else _compare(chosen)


if __name__ == "__main__":
    sys.exit(main())

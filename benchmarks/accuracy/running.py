"""Answers, saved as they are made: all data get their first draw before any gets a second, and a run goes on later."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from math import ceil
from pathlib import Path
from zlib import crc32

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import TARGET, Entry, entries, takes_part
from counterveil.errors import CounterveilError
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Answer, Budget, Records
from counterveil_lab.reproduce.rivals.environment import unavailable, worker

NAN = float("nan")


@dataclass(frozen=True)
class Row:
    """One answer, its truth and the non-private target, in parts of the outcome's range; nan where there is none."""

    data: str
    method: str
    guarantee: str
    epsilon: str
    draw: int
    value: float
    low: float
    high: float
    truth: float
    target: float
    seconds: float
    refusal: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What the answer is to."""
        return self.data, self.method, self.guarantee, self.epsilon, self.draw

    @classmethod
    def read(cls, cells: list[str]) -> Row:
        """Return the answer that a line of the file holds."""
        data, method, guarantee, epsilon, draw, *numbers, refusal = cells
        value, low, high, truth, target, seconds = map(float, numbers)
        kept = (value, low, high, truth, target, seconds)
        return cls(data, method, guarantee, epsilon, int(draw), *kept, refusal)


def saved(path: Path) -> list[Row]:
    """Return the answers that a file holds; a line that was cut off is left out."""
    if not path.exists():
        return []
    with path.open(newline="") as lines:
        whole = [cells for cells in csv.reader(lines) if len(cells) == len(fields(Row))]
    return [Row.read(cells) for cells in whole]


def run(path: Path, draws: int, only: Iterable[str] = ()) -> None:
    """Make the answers that are not saved yet."""
    done = {row.key for row in saved(path)}
    if path.exists():
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    names = list(only) or list(DATA)
    asked = [one for one in entries() if unavailable(RIVALS[one.method]) is None]
    for draw in range(ceil(draws * max(DATA[name].part for name in names))):
        for name in [one for one in names if draw < draws * DATA[one].part]:
            wanted = [one for one in asked if _key(name, one, draw) not in done]
            # What does not take part for its number of draws needs no data.
            wanted = [one for one in wanted if takes_part(one, draw, 0, 0)]
            if wanted:
                _answers(path, name, draw, wanted)
                print(f"{name}: draw {draw}", file=sys.stderr, flush=True)


def _key(data: str, entry: Entry, draw: int) -> tuple[str, str, str, str, int]:
    epsilon = "" if entry.epsilon is None else f"{entry.epsilon:g}"
    return data, entry.method, entry.guarantee, epsilon, draw


def _answers(path: Path, name: str, draw: int, wanted: list[Entry]) -> None:
    records, truth = DATA[name].drawn(draw)
    target = RIVALS[TARGET].estimate(records, Budget(1.0, 0.0), 0).value
    with path.open("a", newline="") as lines:
        writer = csv.writer(lines)
        for entry in [one for one in wanted if takes_part(one, draw, *records.x.shape)]:
            writer.writerow(astuple(answered(entry, _key(name, entry, draw), records, truth, target)))
            lines.flush()


def answered(
    entry: Entry, head: tuple[str, str, str, str, int], records: Records, truth: float, target: float
) -> Row:
    """Return one answer; a refusal is kept by its code."""
    width, rival = records.width, RIVALS[entry.method]
    # The same seed for every method and budget of a draw.
    seed = 1000 * (crc32(head[0].encode()) % 10_000) + head[4]
    found, refusal, began = Answer(NAN), "", time.process_time()
    try:
        found = rival.estimate(records, entry.budget(), seed)
    except CounterveilError as error:
        refusal = error.code
    except RuntimeError as error:
        refusal = str(error)[:80]
    seconds = time.process_time() - began
    if rival.apart and not refusal:
        seconds += worker().last["seconds"]
    ends = [NAN if end is None else end / width for end in (found.low, found.high)]
    return Row(*head, found.value / width, *ends, truth / width, target / width, seconds, refusal)

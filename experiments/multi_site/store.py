"""Repetitions on disk, one JSON line each: a run that was cut short goes on where it stopped."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.multi_site.panels import ALPHAS, Panel
from experiments.multi_site.repetition import reference, repeat


def path_of(folder: Path, panel: Panel) -> Path:
    return folder / f"{panel.name}.jsonl"


def read(folder: Path, panel: Panel) -> list[dict]:
    """Return the finished repetitions of a panel, in order; a line that was cut short is left out."""
    path = path_of(folder, panel)
    if not path.exists():
        return []
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        found[facts["repetition"]] = facts
    return [found[place] for place in sorted(found)]


def run(folder: Path, panel: Panel, repetitions: int) -> None:
    """Add what is missing of the panel's repetitions; progress goes to standard error."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {facts["repetition"] for facts in read(folder, panel)}
    missing = [place for place in range(repetitions) if place not in done]
    with path_of(folder, panel).open("a", encoding="utf-8") as file:
        for count, place in enumerate(missing, 1):
            facts = {
                "repetition": place,
                "reference": reference(panel, place),
                "estimates": repeat(panel, place),
            }
            file.write("\n" * (count == 1 and file.tell() > 0) + json.dumps(facts) + "\n")
            file.flush()
            if count % 10 == 0 or count == len(missing):
                print(f"{panel.name}: {len(done) + count} of {repetitions}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Line:
    """Mean and standard deviation of the absolute error for every alpha, of one form and way of pooling."""

    form: str
    aggregation: str
    mean: np.ndarray
    sd: np.ndarray
    repetitions: int


def lines(folder: Path, panel: Panel, repetitions: int) -> list[Line]:
    """Return the table of a panel from its first repetitions."""
    kept = [facts for facts in read(folder, panel) if facts["repetition"] < repetitions]
    if not kept:
        return []
    found = []
    for form, ways in kept[0]["estimates"].items():
        for aggregation in ways:
            errors = np.array(
                [
                    [abs(facts["estimates"][form][aggregation][str(a)] - facts["reference"]) for a in ALPHAS]
                    for facts in kept
                ]
            )
            sd = errors.std(axis=0, ddof=1) if len(kept) > 1 else np.zeros(len(ALPHAS))
            found.append(Line(form, aggregation, errors.mean(axis=0), sd, len(kept)))
    return found

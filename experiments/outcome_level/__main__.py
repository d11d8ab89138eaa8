"""Expected errors of methods for private outcomes, over the noise in closed form; nothing is drawn.

`python -m experiments.outcome_level` prints the instances that settings were not tuned on (needs COUNTERVEIL_DATA);
`tuning` has those that they were, `coverage` that of intervals with 100 draws of outcomes for each design (350 s), and
`aligned` coverage where what moves outcomes also moves treatment. Private records: `experiments.record_level`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.outcome_level import aligned, coverage
from experiments.outcome_level.errors import METHODS
from experiments.outcome_level.instances import HELD_OUT, TUNING, load
from experiments.runner import Row, Table, run

EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
GOALS = (
    ("to_matching", "mean absolute error against matching without privacy, as a part of it"),
    ("to_truth", "root mean square error against the true effect, as a part of it"),
)


def errors(group: str, names: list[tuple[str, int]], *, seeds: range) -> list[Row]:
    """Return the mean error of every method over a group, for both goals where the truth is known."""
    instances = [load(*name) for name in names]
    found = {
        label: [[method(instance, epsilon) for instance in instances] for epsilon in EPSILONS]
        for label, method in METHODS.items()
    }
    return [
        [group, words, label, *(sum(getattr(one, field) for one in each) / len(each) for each in cells)]
        for field, words in GOALS
        if field != "to_truth" or not math.isnan(instances[0].effect)
        for label, cells in found.items()
    ]


def averages(rows: list[Row]) -> Iterator[str]:
    """Yield averages over groups of the ratio to the published method, which is the first of every group."""
    for _, words in GOALS:
        yield f"**Average over the groups above of the ratio to the published method**: {words}"
        yield ""
        yield from AVERAGES.heading()
        own = [row for row in rows if row[1] == words]
        published = {row[0]: row for row in own if row[2] == next(iter(METHODS))}
        for label in METHODS:
            each = [row for row in own if row[2] == label]
            ratios = [
                [
                    float(ours) / float(theirs)
                    for ours, theirs in zip(row[3:], published[row[0]][3:], strict=True)
                ]
                for row in each
            ]
            yield AVERAGES.line([label, *(sum(column) / len(column) for column in zip(*ratios, strict=True))])
        yield ""


AVERAGES = Table(columns=("method", *(f"{epsilon:g} :.3f" for epsilon in EPSILONS)), cells=[], row=errors)


def table(groups: dict[str, list[tuple[str, int]]], *, apart: bool) -> Table:
    """Return the table of groups of instances."""
    return Table(
        columns=("instances", "error", "method", *(f"{epsilon:g} :.3f" for epsilon in EPSILONS)),
        cells=list(groups.items()),
        row=errors,
        apart=apart,
        notes=averages,
    )


TABLES = {
    "errors": table(HELD_OUT, apart=False),
    "tuning": table(TUNING, apart=True),
    "coverage": Table(
        columns=("designs", "method", *(f"{epsilon:g}" for epsilon in EPSILONS)),
        cells=[(name, EPSILONS) for name in coverage.GROUPS],
        row=coverage.row,
        title="Coverage ± its standard error over designs (width / effect; rms error / effect; share of epsilon for "
        "the variance)",
        draws=100,
        apart=True,
    ),
    "aligned": aligned.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES)

"""Coverage and widths of group effects, policy values and targeting curves, against truths by quadrature.

`python -m experiments.groups` prints four tables with 200 draws a row; `--draws` changes that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

import counterveil as cv
from counterveil.datasets.dataset import Dataset, dataset_1, dataset_2, kink, skewed
from counterveil.numerics.bases import Axis, make_basis
from counterveil.privacy import Proof, Unit
from experiments.groups import truths
from experiments.groups.shapes import SHAPES, shape_line

CUTS = (0.2, 0.4, 0.6, 0.8)
EDGES = (0.0, *CUTS, 1.0)
RULE, CUT, COST = cv.Policy.where(x1=(0.3, 2)), 0.3, 4.5
# Settings were chosen on seeds below this.
FIRST_SEED = 5000
TABLES = ["groups", "policies", "shapes"]


@dataclass(frozen=True)
class Row:
    """A design, its size and budget; `share` makes a trial of it, with this part treated."""

    name: str
    make: Callable[[int, int], Dataset]
    curve: Callable[[float], float]
    density: Callable[[float], float]
    rows: int = 30_000
    epsilon: str = "1"
    delta: str = "1e-6"
    share: float | None = None
    method: str = "auto"

    def title(self) -> str:
        """Return the design, its size and its budget in words."""
        kind = "" if self.share is None else f", trial {self.share:g}"
        return f"{self.name}{kind}, n={self.rows:,}, eps {self.epsilon}, delta {self.delta}"

    def draw(self, seed: int) -> tuple[dict[str, object], cv.Study]:
        """Return the columns and the study of one draw."""
        data = self.make(self.rows, seed)
        if self.share is None:
            return dict(data.frame), data.study
        treated = np.random.default_rng(seed + 10**6).random(self.rows) < self.share
        moved = data.frame["y"] + data.effects * (treated - data.frame["treated"])
        frame = dict(data.frame) | {"treated": treated.astype(np.int64), "y": moved}
        return frame, data.study._changed(randomised=True, treated_share=Fraction(str(self.share)))


ONE = Row("Dataset 1", dataset_1, truths.first, truths.flat)
ROWS = [
    ONE,
    replace(ONE, delta="0"),
    replace(ONE, rows=3000),
    replace(ONE, epsilon="0.3"),
    Row("Dataset 2", dataset_2, truths.second, truths.flat),
    Row("skewed", skewed, truths.first, truths.skewed),
    Row("kink", kink, truths.kinked, truths.flat),
    replace(ONE, share=0.5),
    replace(ONE, share=0.5, delta="0"),
    replace(ONE, share=0.3),
    replace(ONE, share=0.5, rows=3000),
    replace(ONE, share=0.5, method="arms"),
]


def groups(row: Row, draws: int) -> str:
    """Return one line of the table of groups."""
    parts = [truths.between(row.curve, row.density, a, b) for a, b in pairwise(EDGES)]
    # Groups of less than two people in a hundred are left out of the figures; nothing is said of them.
    kept = [place for place, (share, _) in enumerate(parts) if share >= 0.02]
    target = np.array([total / share for share, total in parts])
    cover, wide, every, error = [], [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + draws):
        frame, study = row.draw(seed)
        found = cv.groups(
            frame,
            study,
            by={"x1": CUTS},
            protects="record",
            epsilon=row.epsilon,
            delta=row.delta,
            method=row.method,
            noise=cv.SeededNoise(seed),
        )
        ends = np.array([one.interval() for one in found.groups])[kept]
        all_ends = np.array([one.interval(simultaneous=True) for one in found.groups])[kept]
        goal = target[kept]
        cover.append((ends[:, 0] <= goal) & (goal <= ends[:, 1]))
        every.append(((all_ends[:, 0] <= goal) & (goal <= all_ends[:, 1])).all())
        wide.append(ends[:, 1] - ends[:, 0])
        error.append(np.array([one.estimate for one in found.groups])[kept] - goal)
    worst = np.abs(np.mean(error, axis=0)).max()
    form = found.method.split(",")[0]
    return (
        f"| {row.title()} | {form} | {np.mean(cover):.3f} | {np.mean(cover, axis=0).min():.3f} | "
        f"{np.mean(every):.3f} | {np.median(wide):.3f} | {worst:.3f} |"
    )


def policies(row: Row, draws: int) -> str:
    """Return one line of the table of policies and curves."""
    (few, low), (many, high) = (
        truths.between(row.curve, row.density, a, b) for a, b in ((0.0, CUT), (CUT, 1.0))
    )
    gain, loss = high - COST * many, low - COST * few
    target = np.array([gain, -loss, gain + loss])
    cover, wide, band = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + draws):
        frame, study = row.draw(seed)
        asked = {
            "cost": COST,
            "protects": "record",
            "epsilon": row.epsilon,
            "delta": row.delta,
            "noise": cv.SeededNoise(seed),
        }
        found = cv.policy_value(frame, study, policy=RULE, **asked)
        ends = np.array([one.interval() for one in found.gains])
        cover.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
        wide.append(ends[:, 1] - ends[:, 0])
        curve = cv.targeting_curve(frame, study, model=along(study), thresholds=CUTS, **asked)
        truth = np.array([_beyond(row, threshold) for threshold in (*reversed(CUTS), 0.0)])
        shown = np.array(curve.interval(simultaneous=True))
        band.append(((shown[:, 0] <= truth) & (truth <= shown[:, 1])).all())
    figures = " | ".join(f"{one:.3f}" for one in (*np.mean(cover, axis=0), *np.mean(wide, axis=0)))
    return f"| {row.title()} | {figures} | {np.mean(band):.3f} |"


def along(study: cv.Study) -> cv.results.CateModel:
    """Return a public ranking by x1, written as a model whose effect is x1."""
    basis = make_basis((Axis("x1", "legendre", 1, 0.0, 1.0),), 1, tensor=False)
    promise = cv.results.Guarantee(Fraction(0), Fraction(0), Unit.RECORD, Proof.FINITE_SAMPLE, (), ())
    none = np.zeros((2, 2))
    return cv.results.CateModel(
        study=study,
        method="by x1",
        basis=basis,
        weights=0.5 / basis.scale,
        covariance=none,
        noise_covariance=none,
        level=0.95,
        guarantee=promise,
        spent=cv.Budget(1),
        releases=(),
        not_covered=(),
    )


def _beyond(row: Row, threshold: float) -> float:
    share, total = truths.between(row.curve, row.density, threshold, 1.0)
    return total - COST * share


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--rows", nargs="*", type=int, default=list(range(len(ROWS))))
    chosen = parser.parse_args()
    rows = [ROWS[place] for place in chosen.rows]
    if "groups" in chosen.only:
        print(f"Groups by x1 in fifths, level 95%, {chosen.draws} draws a row\n")
        print("| design | form | coverage | worst group | all groups | median width | worst mean error |")
        print("|---|---|---|---|---|---|---|")
        for row in rows:
            print(groups(row, chosen.draws), flush=True)
    if "policies" in chosen.only:
        print(f"\nTreat where x1 >= {CUT}, cost {COST}, {chosen.draws} draws a row: coverage, then widths\n")
        print("| design | - nobody | - everybody | all - none | width | width | width | band of curve |")
        print("|---|---|---|---|---|---|---|---|")
        for row in rows:
            if row.method == "auto":
                print(policies(row, chosen.draws), flush=True)
    if "shapes" in chosen.only:
        print(
            f"\nShapes of outcomes, five groups, eps 1, {chosen.draws} draws a row: beside no privacy, and coverage\n"
        )
        print(
            "| outcome | rows | delta | share | form | width | rmse | coverage | table's | its rmse | its coverage |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for rows_drawn in (2_000, 20_000):
            for shape in SHAPES:
                for delta, share in ((0.0, None), (1e-6, 0.5)):
                    line = shape_line(shape, rows_drawn, 1.0, delta, share, chosen.draws, FIRST_SEED)
                    print(line, flush=True)


if __name__ == "__main__":
    main()

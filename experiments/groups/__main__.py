"""Coverage and widths of group effects, policy values and targeting curves, against truths by quadrature.

`python -m experiments.groups` prints three tables with 200 draws a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

import counterveil as cv
from counterveil.datasets.dataset import Dataset, dataset_1, dataset_2, kink, skewed
from counterveil.numerics.bases import Axis, make_basis
from counterveil.privacy import Proof, Unit
from experiments.groups import truths
from experiments.groups.shapes import SHAPES, shape_row
from experiments.runner import Row as TableRow
from experiments.runner import Table, run

CUTS = (0.2, 0.4, 0.6, 0.8)
EDGES = (0.0, *CUTS, 1.0)
RULE, CUT, COST = cv.Policy.where(x1=(0.3, 2)), 0.3, 4.5
# Settings were chosen on seeds below this.
FIRST_SEED = 5000


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


def groups(row: Row, *, seeds: range) -> TableRow:
    """Return coverage, widths and errors of effects by group."""
    parts = [truths.between(row.curve, row.density, a, b) for a, b in pairwise(EDGES)]
    # Groups of less than two people in a hundred are left out of the figures; nothing is said of them.
    kept = [place for place, (share, _) in enumerate(parts) if share >= 0.02]
    target = np.array([total / share for share, total in parts])
    cover, wide, every, error = [], [], [], []
    for seed in seeds:
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
    covered = [np.mean(cover), np.mean(cover, axis=0).min(), np.mean(every)]
    return [row.title(), form, *covered, np.median(wide), worst]


def policies(row: Row, *, seeds: range) -> TableRow:
    """Return coverage and widths of values of a policy, and coverage of the band of a curve."""
    (few, low), (many, high) = (
        truths.between(row.curve, row.density, a, b) for a, b in ((0.0, CUT), (CUT, 1.0))
    )
    gain, loss = high - COST * many, low - COST * few
    target = np.array([gain, -loss, gain + loss])
    cover, wide, band = [], [], []
    for seed in seeds:
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
    return [row.title(), *np.mean(cover, axis=0), *np.mean(wide, axis=0), np.mean(band)]


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


TABLES = {
    "groups": Table(
        columns=(
            "design | form | coverage :.3f | worst group :.3f | all groups :.3f | "
            "median width :.3f | worst mean error :.3f"
        ),
        cells=[(row,) for row in ROWS],
        row=groups,
        title="Groups by x1 in fifths, level 95%, {draws} draws a row",
        first_seed=FIRST_SEED,
    ),
    "policies": Table(
        columns=(
            "design | - nobody :.3f | - everybody :.3f | all - none :.3f | width :.3f | width :.3f | "
            "width :.3f | band of curve :.3f"
        ),
        cells=[(row,) for row in ROWS if row.method == "auto"],
        row=policies,
        title=f"Treat where x1 >= {CUT}, cost {COST}, {{draws}} draws a row: coverage, then widths",
        first_seed=FIRST_SEED,
    ),
    "shapes": Table(
        columns=(
            "outcome | rows :, | delta :g | share | form | width :.2f | rmse :.2f | coverage :.3f | "
            "table's :.2f | its rmse :.2f | its coverage :.3f"
        ),
        cells=[
            (shape, rows, 1.0, *declared)
            for rows, shape, declared in product((2_000, 20_000), SHAPES, ((0.0, None), (1e-6, 0.5)))
        ],
        row=shape_row,
        title="Shapes of outcomes, five groups, eps 1, {draws} draws a row: beside no privacy, and coverage",
        first_seed=FIRST_SEED,
    ),
}

if __name__ == "__main__":
    run(__doc__, TABLES)

"""`python -m experiments.outcome_level.supposed [--tuning] [--draws N] [--only NAME ...]`.

What weights should suppose of outcomes in trials, and where everything is spent on the value. Prints root mean square
errors of weighting under parts of the usual `signal` and `residual`, in parts of a yardstick's: in trials, whose arms
are dealt out anew, of the difference in means; elsewhere of the usual suppositions. Noise is averaged over in closed
form, in simulated trials slopes and errors of outcomes as well. `--tuning` prints the designs that the parts were
chosen on, and means over them. Needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, log, sqrt

import numpy as np

from counterveil.data import Outcome, Range, Study, Table, Treatment, Trial
from counterveil.datasets import lalonde, nhefs, nsw, pension401k, star
from counterveil.datasets.dataset import Dataset
from counterveil.estimators.linear.budget_split import chosen_share, effect_plan
from counterveil.estimators.linear.difference_in_means import variance_share_of as means_share
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.privacy import Unit
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.linear.weighted_outcomes import linear_bounds
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicRows
from counterveil.settings import DifferenceInMeans as MeansSettings
from counterveil.settings import Weighting
from counterveil.settings.methods import assumed_sd
from experiments.causal.designs import Design, bent, births, correlated, varying
from experiments.causal.real import acic, fitted, ihdp_file
from experiments.outcome_level.redrawn import question_of
from experiments.outcome_level.surfaces import BENDS, bent_kind, drawn

EPSILONS = (0.5, 1.0, 4.0)
# Parts of the usual signal and residual that are tried, in trials and for the value alone.
IN_TRIALS = ((1, 1), (1 / 2, 1), (1 / 3, 1), (1 / 4, 1), (1 / 2, 1 / 2), (1 / 4, 1 / 2))
ELSEWHERE = ((1, 1), (0.7, 1), (0.5, 1), (0.35, 1), (0.7, 0.7), (0.5, 0.7), (0.5, 0.5))
# Parts of the outcome's variance that covariates explain in simulated trials, and its SD in parts of the range.
EXPLAINED, SDS = (0.0, 0.3, 0.7), (1 / 6, 1 / 12)
# How many times as often the arms of real trials are dealt out.
OF_REAL = 4
# Draws that variances of outcomes are taken over.
FOR_VARIANCES = 60
# Squared error of coefficients (n,) of rows, noise apart, for outcomes of range 1.
Judge = Callable[[Table, np.ndarray], np.ndarray]


def weights(table: Table, epsilon: float, settings: Weighting) -> tuple[np.ndarray, float]:
    """Return the coefficients of the rows as they are, and the variance of their noise for a range of 1."""
    question = question_of(epsilon, "weighting", "ATE", settings)
    effect = weighted_effect(PublicRows(table, Unit.OUTCOME), question)
    share = effect.share
    if share is None:
        bounds = linear_bounds(
            PublicRows(table, Unit.OUTCOME), linear_form(effect.coefficients), effect.variance_form()
        )
        share = chosen_share(bounds, question, effect.expected_part)
    own = np.empty(table.rows)
    own[np.argsort(~table.treated, kind="stable")] = effect.coefficients
    unit = effect_plan(question, share).noise("effect", Fraction(1)).variance
    return own, unit * float(np.abs(own).max()) ** 2


def supposing(table: Table, parts: tuple[float, float], alone: bool) -> Weighting:
    """Return settings with these parts of the usual signal and residual."""
    usual, share = assumed_sd(table.study.outcome_range), 0 if alone else None
    return Weighting(signal=parts[0] * usual, residual=parts[1] * usual, variance_share=share)


def means(table: Table, epsilon: float, alone: bool) -> tuple[np.ndarray, float]:
    """Return the same of the difference in means."""
    treated = int(table.treated.sum())
    settings = MeansSettings(variance_share=0) if alone else None
    question = question_of(epsilon, "difference_in_means", "ATE", settings)
    bounds = MeanContrast(Fraction(1), treated, table.rows - treated)
    own = np.where(table.treated, 1 / treated, -1 / (table.rows - treated))
    plan = effect_plan(question, means_share(bounds, question))
    return own, plan.noise("effect", bounds.estimate).variance


# Trials.


def simulated(n: int, d: int, seed: int) -> tuple[Table, Judge]:
    """Return a simulated trial; its error is that over slopes in all directions, for every part explained and SD."""
    rng = np.random.default_rng([seed, n, d])
    x, treated = rng.uniform(size=(n, d)), rng.uniform(size=n) < 0.5
    columns = {f"x{j}": column for j, column in enumerate(x.T)}
    study = Study(
        Treatment("t", control=0),
        Outcome("y", (0, 6)),
        dict.fromkeys(columns, Range(0, 1)),
        assignment=Trial(),
    )
    z = (x - x.mean(axis=0)) / x.std(axis=0)

    def judge(_: Table, own: np.ndarray) -> np.ndarray:
        gaps, squares = ((own @ z) ** 2).mean(), own @ own
        return np.array([sd**2 * (part * gaps + (1 - part) * squares) for sd in SDS for part in EXPLAINED])

    return Table.attach(columns | {"t": treated.astype(int), "y": np.full(n, 3.0)}, study), judge


def dealt(data: Dataset, seed: int) -> tuple[Table, Judge]:
    """Return a trial whose arms are dealt out again: nobody's outcome depends on them."""
    columns, study = dict(data.frame), data.study._changed(treated_share=None)
    columns[study.treatment] = np.random.default_rng([5, seed]).permutation(columns[study.treatment])
    table = Table.attach(columns, study)
    outcome = table.outcome * float(table.outcome_unit / study.outcome_bounds.width)
    return table, lambda _, own: np.array([(own @ outcome) ** 2])


def trials(tuning: bool) -> dict[str, Callable[[int], tuple[Table, Judge]]]:
    if not tuning:
        return {"LaLonde": partial(dealt, lalonde()), "STAR, kindergarten": partial(dealt, star("K"))}
    made = {
        f"n = {n:,}, {d} covariates": partial(simulated, n, d) for n in (300, 1000, 4000) for d in (4, 10, 20)
    }
    real = {"NSW 722": nsw(), "STAR, grade 1": star("1"), "STAR, grade 3": star("3")}
    return made | {name: partial(dealt, data) for name, data in real.items()}


def print_trial(name: str, make: Callable[[int], tuple[Table, Judge]], draws: int) -> None:
    # One dealing of real outcomes says less than one of simulated people, over whose outcomes errors are averaged.
    made = [make(seed) for seed in range(draws if name.startswith("n = ") else OF_REAL * draws)]
    for alone in (False, True):
        for epsilon in EPSILONS:
            plain = _mean(
                judge(table, own) + noise
                for table, judge in made
                for own, noise in [means(table, epsilon, alone)]
            )
            cells = []
            for parts in IN_TRIALS:
                found = (
                    judge(t, own) + noise
                    for t, judge in made
                    for own, noise in [weights(t, epsilon, supposing(t, parts, alone))]
                )
                ratios = np.sqrt(_mean(found) / plain)
                cells.append(" ".join(f"{ratio:.3f}" for ratio in ratios))
            what = "value alone" if alone else "with its variance"
            print(f"| {name} | {what} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


def _mean(values: Iterator[np.ndarray]) -> np.ndarray:
    return np.asarray(np.mean(list(values), axis=0))


# Elsewhere, for the value alone.


def designs(tuning: bool) -> list[Callable[[], Design]]:
    if not tuning:
        return [
            *(partial(ihdp_file, number) for number in (6, 11, 20)),
            partial(acic, 1),
            lambda: fitted(nhefs()),
            lambda: fitted(pension401k()),
            lambda: varying(0.6, 4000),
            lambda: correlated(4000, True),
        ]
    return [
        *(partial(acic, setting) for setting in (2, 3, 4, 5)),
        *(partial(drawn, seed) for seed in range(6)),
        *(partial(bent_kind, bend, 2000, 1) for bend in BENDS),
        partial(bent, 1000),
        partial(bent, 2000, 1),
        *(partial(ihdp_file, number) for number in range(1, 6)),
        lambda: varying(0.3, 2000, 5),
        lambda: varying(1.0, 5000, 6),
        lambda: correlated(2000, False, 5),
        lambda: correlated(5000, True, 6),
        lambda: births(4642, 3),
    ]


@dataclass(frozen=True)
class Truth:
    """Mean outcomes of the rows in their own arms, their variances, and the effect, for a range of 1."""

    mean: np.ndarray
    variance: np.ndarray
    effect: float

    @classmethod
    def of(cls, design: Design) -> Truth:
        width = float(design.study.outcome_bounds.width)
        drawn_anew = [design.outcomes(70_000 + k) for k in range(FOR_VARIANCES)]
        untreated, treated = design.expected or design.means
        mean = np.where(design.treated, treated, untreated) / width
        return cls(mean, np.var(drawn_anew, axis=0, ddof=1) / width**2, design.truth("ATE") / width)

    def error(self, own: np.ndarray, noise: float) -> float:
        """Return the expected squared error of coefficients with noise of this variance."""
        return float((own @ self.mean - self.effect) ** 2 + own**2 @ self.variance + noise)


def print_design(design: Design) -> dict[tuple[float, tuple[float, float]], float]:
    """Print errors beside the usual ones; return them."""
    table = Table.attach({**design.columns, design.study.outcome: design.outcomes(0)}, design.study)
    truth, found = Truth.of(design), {}
    for epsilon in EPSILONS:
        for parts in ELSEWHERE:
            found[epsilon, parts] = sqrt(truth.error(*weights(table, epsilon, supposing(table, parts, True))))
        usual = found[epsilon, ELSEWHERE[0]]
        cells = (f"{found[epsilon, parts] / usual:.3f}" for parts in ELSEWHERE)
        print(
            f"| {design.name} | {epsilon:g} | {100 * usual:.3f} % | " + " | ".join(cells) + " |", flush=True
        )
    return found


def main() -> None:
    chosen = arguments()
    names = [f"{one:.2g}, {other:.2g}" for one, other in IN_TRIALS]
    print("Trials, beside the difference in means; simulated ones for " + _parts() + "\n")
    print("| | | epsilon | " + " | ".join(names) + " |\n|---|---|---|" + "---|" * len(names))
    for name, make in trials(chosen.tuning).items():
        if not chosen.only or any(word in name for word in chosen.only):
            print_trial(name, make, chosen.draws)
    names = [f"{one:.2g}, {other:.2g}" for one, other in ELSEWHERE]
    print("\nElsewhere, value alone, beside the usual\n")
    print("| | epsilon | usual | " + " | ".join(names) + " |\n|---|---|---|" + "---|" * len(names))
    found = []
    for make in designs(chosen.tuning):
        design = make()
        if not chosen.only or any(word in design.name for word in chosen.only):
            found.append(print_design(design))
    for epsilon in EPSILONS if found else ():
        ratios = [
            exp(np.mean([log(one[epsilon, p] / one[epsilon, (1, 1)]) for one in found])) for p in ELSEWHERE
        ]
        print(f"| geometric mean | {epsilon:g} | | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |")


def _parts() -> str:
    shares = ", ".join(f"{part:g}" for part in EXPLAINED)
    return f"parts {shares} of the variance explained, SD 1/6 and then 1/12 of the range"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.outcome_level.supposed")
    parser.add_argument("--tuning", action="store_true", help="the designs that the parts were chosen on")
    parser.add_argument("--draws", type=int, default=6, help="dealings of every trial")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="designs whose names hold one of these")
    return parser.parse_args()


if __name__ == "__main__":
    main()

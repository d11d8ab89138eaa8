"""`python -m experiments.ipw.tuning`: how the defaults of inverse weighting were chosen, on Synth seeds of its own.

Root mean square error against the true effect, over data sets and draws, for forms, penalties, clips, shrinkage and
shares of the budget.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.datasets import ihdp, synth
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Estimand
from counterveil.questions.ate import ask
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.moments import ipw as weighting

SEEDS = range(101, 107)
EPSILONS = ("0.5", "1", "2", "4", "8")
# The penalty at which a released logit has noise of about this standard deviation is what factors multiply.
REFERENCE_NOISE = 0.5
LEAST, MOST = 1e-3, 0.3
GRID = {
    "form": ("hajek", "ht"),
    "factor": (1, 2, 4),
    "clip": (0.1, 0.2),
    "shrink": (True, False),
    "share": (0.5,),
}
# What was chosen otherwise, with other shares of the budget for the model.
SHARES = [("hajek", 2, clip, True, share) for clip in (0.1, 0.2) for share in (0.2, 0.35, 0.65, 0.8)]


def reference_penalty(rows: int, question: Question, study: cv.Study, share: float) -> float:
    """Return the penalty that factors multiply; `share` of the budget is the model's."""
    features = UnitFeatures.of(study)
    amount = share * float(question.budget.epsilon) / (features.columns + 2) ** 0.5
    if question.mechanism == "gaussian":
        amount = share**0.5 * float(mu_of(question.budget.epsilon, question.budget.delta))
    wanted = 2 * (float(features.squared_reach) + 1) / (rows * amount * REFERENCE_NOISE)
    return min(max(wanted, LEAST), MOST)


def error(
    table: Table,
    effect: float,
    settings: cv.settings.IPW,
    factor: float,
    epsilon: str,
    delta: float,
    draws: int,
    seed: int,
) -> list[float]:
    """Return the errors of some draws on one data set; `factor` multiplies the reference penalty."""
    question = ask(
        table.study, "ipw", protects="record", epsilon=epsilon, delta=delta, estimand="ATE", level=0.95, mechanism=None,
        request_id=None, settings=settings,
    )  # fmt: skip
    penalty = factor * reference_penalty(table.rows, question, table.study, settings.fit_share)
    design = weighting.design_of(
        table.study, table.rows, replace(question, settings=replace(settings, penalty=penalty))
    )
    found = []
    for draw in range(draws):
        gate = Gate(design.plan, SeededNoise(1000 * seed + draw))
        _, weighing, weighted = weighting.release(gate, table, design, Estimand.ATE)
        found.append(weighting.effect_of(table.study, weighing, weighted)[0] - effect)
    return found


def unadjusted(tables: list[tuple[Table, float]], delta: float, draws: int) -> str:
    """Return the table's row for the difference in means, which adjusts for nothing."""
    cells = []
    for epsilon in EPSILONS:
        errors = [
            cv.ate(
                table, table.study, protects="record", method="trial", epsilon=epsilon, delta=delta,
                settings=cv.settings.Trial("none", "pooled"),
                noise=SeededNoise(1000 * place + draw),
            ).estimate
            - effect
            for place, (table, effect) in enumerate(tables)
            for draw in range(draws)
        ]  # fmt: skip
        cells.append(f"{np.sqrt(np.mean(np.square(errors))):.4f}")
    return "| difference in means | | | | | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.ipw.tuning")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--ihdp", action="store_true", help="IHDP 1-5 in place of Synth")
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--draws", type=int, default=5)
    chosen = parser.parse_args()
    data = [synth(seed=seed, n=chosen.rows) for seed in SEEDS]
    if chosen.ihdp:
        data = [ihdp(number) for number in range(1, 6)]
    tables = [(Table.attach(d.frame, d.study), d.true_effect) for d in data]
    print(
        "| form | penalty, times the reference | clip | shrunk | model's share | "
        + " | ".join(EPSILONS)
        + " |"
    )
    print("|---|---|---|---|---|" + "---|" * len(EPSILONS))
    print(unadjusted(tables, chosen.delta, chosen.draws), flush=True)
    for form, factor, clip, shrink, share in (*product(*GRID.values()), *SHARES):
        settings = cv.settings.IPW(form=form, clip=clip, shrink=shrink, fit_share=share)
        cells = []
        for epsilon in EPSILONS:
            errors = [
                e
                for place, (table, effect) in enumerate(tables)
                for e in error(table, effect, settings, factor, epsilon, chosen.delta, chosen.draws, place)
            ]
            cells.append(f"{np.sqrt(np.mean(np.square(errors))):.4f}")
        print(
            f"| {form} | {factor} | {clip} | {'yes' if shrink else 'no'} | {share} | "
            + " | ".join(cells)
            + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()

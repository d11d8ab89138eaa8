"""Three sites whose parts are summed err hardly more than one site that holds all rows, and their intervals cover."""

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.federation.masking import KeySeal, new_key
from counterveil.privacy import Budget
from counterveil.questions.asking import ask_of
from counterveil.questions.ate import AteArguments
from counterveil.questions.groups import GroupsArguments
from counterveil.questions.moments import MomentsArguments
from counterveil.questions.survival import SurvivalArguments
from counterveil.session import SeededNoise
from counterveil.session.summing import NextPart, Summation, SummingSession
from counterveil.settings import Trial

DECLARED = {"covariates": {"sex": cv.Binary()}, "treated": 1, "control": 0, "randomised": True}
STUDY = study_of("t", "y", (0, 1), **DECLARED)
TIMES = study_of("t", "y", event="e", horizon=1, grid=4, **DECLARED)
ROWS = 900
OUTCOME = {"protects": "outcome"}
CURVES = float(np.exp(-1) - np.exp(-2))
# The study, the question, draws, the truth, and how many times the error of one site is allowed: noise has the variance
# of one site's times three halves.
QUESTIONS = {
    "ate": (STUDY, AteArguments, {"method": "trial", "settings": Trial("none")}, "1", 200, 0.2, 1.1),
    "survival": (TIMES, SurvivalArguments, {"method": "kaplan_meier"}, "1", 100, CURVES, 1.3),
    "groups": (STUDY, GroupsArguments, {"method": "arms", "by": "sex"}, "2", 60, 0.2, 1.3),
    "moments": (STUDY, MomentsArguments, {}, "8", 40, 0.2, 1.1),
    "ate, outcome": (STUDY, AteArguments, {"method": "difference_in_means"} | OUTCOME, "1", 100, 0.2, 1.1),
    "survival, outcome": (
        TIMES,
        SurvivalArguments,
        {"method": "kaplan_meier"} | OUTCOME,
        "1",
        60,
        CURVES,
        1.3,
    ),
}


def summed(columns, study, asked, seed):
    """Return the answer of three sites; each must compute the same."""

    def part(place, rows):
        frame = {name: column[rows] for name, column in columns.items()}
        known = Summation(3, 1, ROWS, {}, place=place)
        noise = SeededNoise(3 * seed + place)
        seal = KeySeal(new_key())
        session = SummingSession(frame, study, budget=Budget(10, "1e-3"), noise=noise, known=known, seal=seal)

        def ask(known):
            session.known = known
            return ask_of(session, asked)

        return ask

    parts = [part(place, rows) for place, rows in enumerate(np.array_split(np.arange(ROWS), 3))]
    totals = {}
    while True:
        answers, waiting = [], []
        for ask in parts:
            try:
                answers.append(ask(Summation(3, 1, ROWS, totals, place=len(answers) + len(waiting))))
            except NextPart as one:
                waiting.append(one)
        if not waiting:
            break
        columns_of = zip(*(one.steps for one in waiting), strict=True)
        totals = totals | {waiting[0].name: tuple(map(sum, columns_of))}
    first, *others = (shown(answer) for answer in answers)
    assert all(one["estimate"] == first["estimate"] for one in others)
    return first


def shown(answer):
    """Return the row of an answer that is compared."""
    if hasattr(answer, "regress"):
        return next(row for row in answer.regress("y ~ t + sex").tidy() if row["term"] == "t")
    return answer.tidy()[0]


def drawn(rng, question):
    t, sex = rng.integers(0, 2, (2, ROWS))
    if question != "survival":
        return {"t": t, "sex": sex, "y": 0.3 + 0.2 * t + rng.choice([-0.25, 0.25], ROWS)}
    # Hazards of 1 and 2; censored by the horizon and before.
    time, censored = rng.exponential(1 / (2 - t)), rng.exponential(3, ROWS)
    return {"t": t, "sex": sex, "y": np.minimum(time, censored), "e": (time <= censored).astype(int)}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_error_is_near_that_of_one_site_and_intervals_cover(question):
    study, kind, given, epsilon, draws, truth, allowed = QUESTIONS[question]
    rng, errors, covered = np.random.default_rng(5), [], 0
    named = {"protects": "record", "epsilon": epsilon} | given
    for seed in range(draws):
        columns = drawn(rng, kind.name)
        ours = summed(columns, study, kind(**named, request_id="one"), seed)
        alone = shown(getattr(cv, kind.name)(columns, study, **named, noise=SeededNoise(10_000 + seed)))
        errors.append((ours["estimate"] - truth, alone["estimate"] - truth))
        covered += ours["conf_low"] <= truth <= ours["conf_high"]
    rmse = np.sqrt(np.mean(np.square(errors), axis=0))
    assert rmse[0] <= allowed * rmse[1]
    assert covered >= 0.88 * draws

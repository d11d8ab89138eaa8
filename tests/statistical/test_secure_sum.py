"""Three sites whose parts are summed err hardly more than one site that holds all rows."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.federation.masking import KeySeal, new_key
from counterveil.privacy import Budget
from counterveil.questions.asking import ask_of
from counterveil.questions.ate import AteArguments
from counterveil.session import SeededNoise
from counterveil.session.summing import NextPart, Summation, SummingSession
from counterveil.settings import Trial

STUDY = cv.Study("t", "y", (0, 1), {}, treated=1, control=0, randomised=True)
ASKED = {"method": "trial", "protects": "record", "epsilon": "1", "settings": Trial("none")}
ROWS = 900


def summed(columns, seed):
    """Return the answer of three sites; each must compute the same."""

    def part(place, rows):
        frame = {name: column[rows] for name, column in columns.items()}
        known = Summation(3, 1, ROWS, {})
        noise = SeededNoise(3 * seed + place)
        session = SummingSession(
            frame, STUDY, budget=Budget(1), noise=noise, known=known, seal=KeySeal(new_key())
        )

        def ask(known):
            session.known = known
            return ask_of(session, AteArguments(**ASKED, request_id="one"))

        return ask

    parts = [part(place, rows) for place, rows in enumerate(np.array_split(np.arange(ROWS), 3))]
    totals = {}
    while True:
        answers, waiting = [], []
        for ask in parts:
            try:
                answers.append(ask(Summation(3, 1, ROWS, totals)))
            except NextPart as one:
                waiting.append(one)
        if not waiting:
            break
        columns_of = zip(*(one.steps for one in waiting), strict=True)
        totals = totals | {waiting[0].name: tuple(map(sum, columns_of))}
    assert len({answer.estimate for answer in answers}) == 1
    return answers[0]


def drawn(rng):
    t = rng.integers(0, 2, ROWS)
    return {"t": t, "y": 0.3 + 0.2 * t + rng.choice([-0.25, 0.25], ROWS)}


@pytest.mark.slow
def test_the_error_is_within_a_tenth_of_that_of_one_site_and_intervals_cover():
    rng, errors, covered = np.random.default_rng(5), [], 0
    for seed in range(200):
        columns = drawn(rng)
        ours = summed(columns, seed)
        alone = cv.ate(columns, STUDY, **ASKED, noise=SeededNoise(10_000 + seed))
        errors.append((ours.estimate - 0.2, alone.estimate - 0.2))
        low, high = ours.interval()
        covered += low <= 0.2 <= high
    rmse = np.sqrt(np.mean(np.square(errors), axis=0))
    assert rmse[0] <= 1.1 * rmse[1]
    assert covered >= 180

"""One person's cell turns a column of numbers into one of objects; nobody else's rows may change their order by it."""

import numpy as np
import pandas as pd

import counterveil as cv
from counterveil.data import Table

PEOPLE = 400
STUDY = cv.Study(
    "arm",
    "y",
    (0, 1),
    control=0,
    randomised=True,
    treated_share=0.5,
    person="id",
    order="visit",
    per_person={"y": "last"},
)


def visits(cell):
    """Return people whose rows end with an infinite and with a missing visit; the first person has one more cell."""
    who = np.repeat(np.arange(PEOPLE), 2)
    frame = pd.DataFrame(
        {
            "id": who,
            "arm": who % 2,
            "y": np.where(who % 2, np.tile([1.0, 0.0], PEOPLE), np.tile([0.0, 0.5], PEOPLE)),
            "visit": np.tile([np.inf, np.nan], PEOPLE),
        }
    )
    own = pd.DataFrame({"id": [0], "arm": [0], "y": [0.5], "visit": [cell]})
    return pd.concat([own, frame], ignore_index=True)


def test_a_text_among_visits_moves_no_other_row():
    numbers, texts = visits(1.0), visits("late")
    assert numbers["visit"].dtype != texts["visit"].dtype
    one, two = (Table.attach(rows, STUDY) for rows in (numbers, texts))
    assert (one.outcome[1:] == two.outcome[1:]).all()
    # A missing visit comes after an infinite one.
    assert not two.outcome[1::2].any()


def test_the_answers_of_neighbours_are_near_each_other():
    """With the same noise they differ by what one person can change, not by what all of them can."""
    found = [
        cv.ate(rows, STUDY, protects="record", epsilon=1, method="trial", noise=cv.SeededNoise(1))
        for rows in (visits(1.0), visits("late"))
    ]
    assert abs(found[0].estimate - found[1].estimate) <= 4 / PEOPLE


def test_an_id_spelled_as_another_number_moves_nobody():
    """Ids stood in the order of numbers in one column and in that of texts in another: 9 before 10, -1 behind both."""
    ids = np.array([-1, -20, 9, 10, 3, 200, -7, 0])
    rows = {"arm": [0, 1] * 4, "y": list(np.arange(8) / 8)}
    declared = cv.Study("arm", "y", (0, 1), control=0, person="id")
    wanted = Table.attach(pd.DataFrame(rows | {"id": ids}), declared).outcome.tolist()
    for place, cell in ((2, "9.0"), (0, "-1"), (7, "0.0"), (3, 10.0)):
        changed = ids.astype(object)
        changed[place] = cell
        assert Table.attach(pd.DataFrame(rows | {"id": changed}), declared).outcome.tolist() == wanted
    assert Table.attach(pd.DataFrame(rows | {"id": ids.astype(float)}), declared).outcome.tolist() == wanted

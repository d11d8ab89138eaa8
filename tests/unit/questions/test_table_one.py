"""Table 1: its figures are those that numpy gives for each arm, to the bit."""

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.questions.asking import table_one


def test_means_deviations_and_shares_are_those_of_the_arms():
    rng = np.random.default_rng(4)
    n = 1303
    treated = rng.random(n) < 0.3
    age, member, place = rng.normal(50, 17, n).clip(0, 120), rng.random(n) < 0.4, rng.integers(0, 3, n)
    study = cv.Study(
        "t",
        "y",
        (0, 1),
        {
            "age": cv.Range(0, 120),
            "member": cv.Binary(one=1, zero=0),
            "place": cv.Categories(["a", "b", "c"]),
        },
    )
    labels = np.array(["a", "b", "c"])[place]
    columns = {"t": treated.astype(int), "y": rng.random(n), "age": age, "member": member.astype(int)}
    found = table_one(Table.attach(columns | {"place": labels}, study))
    arms = (treated, ~treated)
    assert [arm["rows"] for arm in found["arms"]] == [int(arm.sum()) for arm in arms]
    by_name = {row["covariate"]: row for row in found["covariates"]}
    assert by_name["age"]["means"] == [float(age[arm].mean()) for arm in arms]
    assert by_name["age"]["sds"] == [float(age[arm].std(ddof=1)) for arm in arms]
    assert by_name["member"]["means"] == [float(member[arm].mean()) for arm in arms]
    for code, label in enumerate("abc"):
        shares = [float((place[arm] == code).sum() / arm.sum()) for arm in arms]
        assert by_name[f"place = {label}"]["means"] == shares

"""Tables of the arms: balance and overlap of private arms, and Table 1 of public ones."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ParameterError
from counterveil.questions.asking import table_one

COVARIATES = {f"x{k}": cv.Range(-3, 3) for k in range(4)} | {
    "sex": cv.Binary(),
    "site": cv.Categories(("n", "s", "w")),
}
STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), COVARIATES)
NORMAL = {"protects": "record", "epsilon": 1, "delta": "1e-6"}


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((4, n)), -3, 3)
    site = rng.choice(["n", "s", "w"], n)
    t = rng.random(n) < 1 / (1 + np.exp(-(x[0] - 0.5 * x[1] + 0.6 * (site == "w"))))
    data = {f"x{k}": x[k] for k in range(4)}
    return data | {"sex": rng.integers(0, 2, n), "site": site, "t": t.astype(int), "y": np.zeros(n)}


def truth(data, name):
    base, _, label = name.partition("=")
    values = np.asarray(data[base] == label if label else data[base], float)
    one, other = values[data["t"] == 1], values[data["t"] == 0]
    return (one.mean() - other.mean()) / np.sqrt((one.var() + other.var()) / 2)


@pytest.mark.parametrize("budget", [{"epsilon": 1}, NORMAL, {"epsilon": "0.2", "delta": "1e-6"}])
def test_intervals_cover_the_differences_of_these_people(budget):
    data = people()
    names = ["x0", "x1", "x2", "x3", "sex", "site=n", "site=w"]
    exact = {name: truth(data, name) for name in names}
    covered = []
    for seed in range(40):
        found = cv.overlap(data, STUDY, noise=cv.SeededNoise(seed), **({"protects": "record"} | budget))
        intervals = found.interval()
        for name in names:
            low, high = intervals[name]
            covered.append(low <= exact[name] <= high)
    assert np.mean(covered) >= 0.91


def test_shares_along_the_score_rise_and_cover():
    found = cv.overlap(people(), STUDY, noise=cv.SeededNoise(3), **NORMAL)
    ends = [found.share_interval(k) for k in range(len(found.cells))]
    assert ends[0][1] < ends[-1][0]
    for (low, high), cell in zip(ends, found.cells, strict=True):
        assert 0 <= low <= cell.treated / (cell.treated + cell.control) <= high <= 1
    assert sum(cell.treated + cell.control for cell in found.cells) == pytest.approx(4000, abs=150)
    # Nothing is known of a part whose counts are lost in the noise.
    lost = cv.overlap(people(100), STUDY, protects="record", epsilon="0.01", noise=cv.SeededNoise(1))
    assert lost.share_interval(0)[1] - lost.share_interval(0)[0] > 0.5


def test_what_is_free_or_has_no_covariates_is_refused():
    with pytest.raises(ParameterError, match="CV-P670"):
        cv.overlap(people(100), STUDY, protects="outcome", epsilon=1)
    with pytest.raises(cv.CounterveilError, match="CV-S"):
        cv.overlap(
            {"t": [0, 1] * 5, "y": [0] * 10},
            cv.Study(
                "t",
                cv.Outcome("y", (0, 1)),
            ),
            protects="record",
            epsilon=1,
        )


def test_means_deviations_and_shares_are_those_of_the_arms():
    rng = np.random.default_rng(4)
    n = 1303
    treated = rng.random(n) < 0.3
    age, member, place = rng.normal(50, 17, n).clip(0, 120), rng.random(n) < 0.4, rng.integers(0, 3, n)
    study = cv.Study(
        "t",
        cv.Outcome("y", (0, 1)),
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

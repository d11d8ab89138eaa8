"""Effects on changes: what is said of them, which estimand is meant, who answers, and plans."""

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import REPLACED_BY_TRENDS, ParallelTrends

SEEDED = {"noise": cv.SeededNoise(1)}


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    x, own = rng.uniform(0, 1, n), rng.normal(0, 1, n)
    t = (rng.uniform(size=n) < 0.3 + 0.4 * x).astype(int)
    y0 = own + t + rng.normal(0, 0.4, n)
    return {"t": t, "x": x, "y0": y0, "y": own + t + 0.5 * x + 0.8 * t + rng.normal(0, 0.4, n)}


def study(covariates=True, **more):
    known = {"x": cv.Range(0, 1)} if covariates else {}
    return cv.Study("t", "y", (-4, 7), known, control=0, before="y0", change_range=(-4, 5), **more)


@pytest.mark.parametrize("protects", ["outcome", "record"])
@pytest.mark.parametrize("covariates", [True, False])
def test_auto_answers_for_the_treated_under_parallel_trends(protects, covariates):
    found = cv.ate(people(), study(covariates), protects=protects, epsilon=4, **SEEDED)
    assert found.estimand is Estimand.ATT
    assert found.interval_target is None
    low, high = found.interval(0.999)
    assert low < (0.8 if covariates else 0.85) < high
    assert found.not_covered[0] == ParallelTrends("y", adjusted=covariates, of_untreated=False)
    assert not REPLACED_BY_TRENDS & {*found.not_covered}
    assert found.method.startswith("difference in differences: ")
    assert "data/outcomes.proof.md" in found.guarantee.pages


def test_a_trial_assumes_no_trends():
    found = cv.ate(people(), study(randomised=True), protects="outcome", epsilon=1, **SEEDED)
    assert found.estimand is Estimand.ATE
    assert not any(isinstance(one, ParallelTrends) for one in found.not_covered)


def test_rows_in_periods_give_the_same_answer():
    wide = people()
    n = len(wide["t"])
    rows = pd.DataFrame({"id": np.tile(np.arange(n), 2), "year": np.repeat([2001, 2002], n)})
    rows["t"] = wide["t"][rows["id"]] * (rows["year"] == 2002)
    rows["x"] = wide["x"][rows["id"]]
    rows["y"] = np.concatenate([wide["y0"], wide["y"]])
    told = cv.Study(
        "t",
        "y",
        (-4, 7),
        {"x": cv.Range(0, 1)},
        control=0,
        change_range=(-4, 5),
        person="id",
        time="year",
        before=[2001],
        after=[2002],
        per_person={"t": "ever"},
    )
    asked = {"protects": "outcome", "epsilon": 1, "method": "weighting"}
    one = cv.ate(wide, study(), noise=cv.SeededNoise(3), **asked)
    other = cv.ate(rows.sample(frac=1, random_state=0), told, noise=cv.SeededNoise(3), **asked)
    assert other.interval() == one.interval()
    assert other.guarantee.adjacency == "change-outcomes-of-one-person"


def test_a_federation_takes_outcomes_of_one_column():
    from counterveil.federation.judging import Expected

    with pytest.raises(CounterveilError, match="CV-P600"):
        Expected.of(study().to_dict())

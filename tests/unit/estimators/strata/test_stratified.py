"""Exact matching on strata: what it estimates, for whom, at what price, and what it refuses."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ParameterError, StudyError
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.session import SeededNoise


def lopsided(n=6000, seed=0):
    """Return people in 6 strata, the effect and the share treated differing between them, and the truths."""
    rng = np.random.default_rng(seed)
    x = rng.integers(6, size=n)
    share, effect = np.array([0.1, 0.3, 0.5, 0.5, 0.7, 0.5]), np.array([0.4, 0.3, 0.2, 0.1, 0.0, 0.2])
    t = (rng.random(n) < share[x]).astype(int)
    y = np.clip(0.1 * x / 6 + effect[x] * t + rng.normal(0.2, 0.05, n), 0, 1)
    data = {"x": x, "t": t, "y": y}
    counts = np.array([[np.sum((x == k) & (t == arm)) for arm in (1, 0)] for k in range(6)])
    means = np.array([[y[(x == k) & (t == arm)].mean() for arm in (1, 0)] for k in range(6)])
    return data, counts, means[:, 0] - means[:, 1]


STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Categories(range(6))})


def ask(
    data,
    study=STUDY,
    *,
    protects="record",
    epsilon=1,
    seed=0,
    estimand="ATE",
    delta=0,
    mechanism=None,
    sensitivity="bounded",
    **settings,
):
    if sensitivity == "smooth":
        given = {"epsilon": epsilon, "delta": delta, "estimand": estimand, "noise": SeededNoise(seed)}
        return cv.published.smooth_matching_proved(data, study, **given)
    given = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism, "estimand": estimand}
    given |= {"protects": protects, "method": "stratified", "settings": cv.settings.Stratified(**settings)}
    return cv.ate(data, study, noise=SeededNoise(seed), **given)


def weights(counts, estimand, limit=None):
    t, c = counts.T
    h = {"ATE": t + c, "ATT": t, "ATC": c}[estimand].astype(float)
    if limit is not None:
        h = np.minimum(h, limit * t) if estimand != "ATT" else h
        h = np.minimum(h, limit * c) if estimand != "ATC" else h
    return h


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize("limit", [10**6, 3])
def test_where_only_outcomes_are_private(estimand, limit):
    data, counts, gaps = lopsided()
    result = ask(data, protects="outcome", epsilon=10**6, estimand=estimand, limit=limit)
    h = weights(counts, estimand, limit)
    assert result.estimate == pytest.approx(np.average(gaps, weights=h), abs=1e-5)
    t, c = counts.T
    largest = (h / np.minimum(t, c)).max() if estimand == "ATE" else None
    if largest is not None:
        assert result.details["max_weight"] == pytest.approx(largest)
    assert "every person's treatment" in " ".join(result.guarantee.public)


def test_the_sampling_error_is_that_of_the_strata():
    data, counts, _ = lopsided()
    result = ask(data, epsilon=10**6)
    x, t, y = data["x"], data["t"], data["y"]
    h = weights(counts, "ATE", 4)
    variance = sum(
        h[k] ** 2 * y[(x == k) & (t == arm)].var(ddof=1) / np.sum((x == k) & (t == arm))
        for k in range(6)
        for arm in (0, 1)
    )
    assert result.std_error.sampling == pytest.approx(np.sqrt(variance) / h.sum(), rel=1e-3)
    smooth = ask(data, epsilon=10**4, sensitivity="smooth")
    assert smooth.std_error.sampling > 0.99 * np.sqrt(
        sum(
            counts[k].sum() ** 2 * y[(x == k) & (t == arm)].var(ddof=1) / np.sum((x == k) & (t == arm))
            for k in range(6)
            for arm in (0, 1)
        )
    ) / len(y)


def test_the_weight_kept_is_released():
    data, counts, _ = lopsided()
    result = ask(data, epsilon=10**6, limit=3)
    assert result.details["weight_kept"] == pytest.approx(
        weights(counts, "ATE", 3).sum() / len(data["y"]), abs=1e-4
    )
    assert StrataLeftOut(result.estimand, 3.0) in result.not_covered


def test_people_without_a_match():
    data, *_ = lopsided()
    alone = {name: np.append(column, column[:500]) for name, column in data.items()}
    alone["x"][-500:] = 6
    alone["t"][-500:] = 0
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Categories(range(7))})
    _, counts, gaps = lopsided()
    h = weights(counts, "ATE")
    plain = ask(alone, study, epsilon=10**6, sensitivity="smooth")
    assert plain.estimate == pytest.approx((h * gaps).sum() / 6500, abs=1e-3)


def test_smooth_noise_is_pure():
    data, *_ = lopsided()
    result = ask(data, epsilon=2, sensitivity="smooth")
    assert abs(result.estimate - 0.2) < 0.2
    assert result.details["mechanism"] == "lomax"
    assert result.spent == cv.Budget(2)
    assert "mechanisms/lomax.proof.md" in result.guarantee.pages
    with pytest.raises(ParameterError, match="CV-P363"):
        ask(data, delta="1e-6", sensitivity="smooth")


def test_smooth_sensitivity_is_asked_for_among_the_published_forms():
    with pytest.raises(ParameterError, match=r"cv\.published\.smooth_matching_proved") as moved:
        cv.settings.Stratified(sensitivity="smooth")
    assert moved.value.code == "CV-P027"
    with pytest.raises(ParameterError, match="CV-P020"):
        cv.settings.Stratified(limits=3)


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_bought_cut_points(protects):
    rng = np.random.default_rng(2)
    age = rng.gamma(8, 5, 20_000)
    t = (rng.random(20_000) < 0.3 + 0.4 * (age > 40)).astype(int)
    data = {"age": age, "t": t, "y": np.clip(0.01 * age / 2 + 0.2 * t, 0, 1)}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"age": cv.Range(0, 128)})
    result = ask(data, study, protects=protects, epsilon=4, cuts={"age": 4})
    cuts = [float(word) for word in result.details["cut_points"].removeprefix("age: ").split(", ")]
    assert cuts == pytest.approx(np.quantile(age, [0.25, 0.5, 0.75]), abs=3)
    assert result.details["strata"] == 4
    assert abs(result.estimate - 0.2) < 0.05


def test_a_table_attached_before_and_a_file_give_the_same_answer(tmp_path):
    pandas = pytest.importorskip("pandas")
    data, *_ = lopsided(800)
    path = tmp_path / "people.parquet"
    frame = pandas.DataFrame(data)
    frame.to_parquet(path)
    for sensitivity in ("bounded", "smooth"):
        answers = [
            ask(source, sensitivity=sensitivity).to_dict()
            for source in (frame, str(path), Table.attach(frame, STUDY))
        ]
        assert answers[0] == answers[1] == answers[2]


def test_studies_that_do_not_fit():
    data, *_ = lopsided(200)
    plain = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 5)})
    with pytest.raises(StudyError, match="CV-S071"):
        ask(data, plain)
    with pytest.raises(StudyError, match="CV-S080"):
        ask(data, STUDY, cuts={"x": 3})
    apart = {"x": data["t"], "t": data["t"], "y": data["y"]}
    with pytest.raises(StudyError, match="CV-S081"):
        ask(apart, protects="outcome")


def test_auto_compares_within_strata_where_there_are_few():
    data, *_ = lopsided()
    chosen = cv.ate(data, STUDY, protects="record", epsilon=1, noise=SeededNoise(0))
    assert chosen.method.startswith("exact matching on strata")
    wide = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 5)})
    other = cv.ate(data, wide, protects="record", epsilon=4, delta="1e-6", noise=SeededNoise(0))
    assert other.method.startswith("doubly robust")

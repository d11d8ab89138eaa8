"""Effects as functions: methods, refusals, models that are saved and asked again; outcomes that few people have."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.thinned import thinned
from tools.loose_study import study_of

import counterveil as cv
from counterveil.datasets import dataset_1, dataset_2
from counterveil.estimators.moments.learner_design import choose_design, strength
from counterveil.estimators.moments.learner_fit import mean_outcome
from counterveil.rows.moments.arm_statistics import ArmProducts
from counterveil.settings import Cate

DATA = dataset_1(3000, 3)
POINTS = {"x1": np.linspace(0.05, 0.95, 10), "x2": np.full(10, 0.4)}


def ask(epsilon=3, seed=1, data=DATA, **words):
    usual = {"protects": "record", "epsilon": epsilon, "delta": 1e-6, "noise": cv.SeededNoise(seed)}
    return cv.cate(
        data.frame,
        data.study,
        **(usual | words),
    )


@pytest.fixture(scope="module")
def model():
    return ask()


@pytest.mark.parametrize("epsilon", [1, 4])
def test_one_effect_for_all_holds_outcomes_far_out_of_a_range_that_holds_them(epsilon):
    # Forty standard deviations out: 8 of 1,000 treated and 2 of 1,000 others.
    declared = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-20, 80)), {k: cv.Range(0, 1) for k in "ab"}
    )
    covered = []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        a, b, t = *generator.random((2, 8000)), generator.integers(0, 2, 8000)
        far = generator.random(8000) < np.where(t == 1, 0.008, 0.002)
        y = a + 0.3 * t + generator.normal(size=8000) + 40 * far
        asked = {"protects": "record", "epsilon": epsilon, "delta": 1e-6, "noise": cv.SeededNoise(seed)}
        found = cv.cate({"a": a, "b": b, "t": t, "y": y}, declared, **asked)
        assert not found.heterogeneous
        low, high = found.table[0].interval()
        covered.append(low <= 0.3 + 40 * 0.006 <= high)
    assert sum(covered) >= 7


@pytest.mark.parametrize("method", ["auto", "t_learner", "r_learner"])
def test_truth_lies_in_the_intervals(method):
    found = ask(method=method)
    truth = DATA.effect_at(POINTS)
    low, high = found.interval(POINTS)
    assert found.heterogeneous
    assert np.sqrt(np.mean((found.effect(POINTS) - truth) ** 2)) < 0.4
    assert np.mean((low <= truth) & (truth <= high)) > 0.8
    least, most = found.band(POINTS)
    assert (least <= low).all()
    assert (most >= high).all()


def test_pure_guarantee_by_arms_and_by_nothing_else():
    data = dataset_1(30_000, 1)
    found = ask(5, data=data, delta=0, method="t_learner")
    assert found.spent.pure
    assert "mechanisms/ball.proof.md" in found.guarantee.pages
    truth = data.effect_at(POINTS)
    assert np.sqrt(np.mean((found.effect(POINTS) - truth) ** 2)) < 1.0
    # How much to give is said: here 3,000 rows are public.
    with pytest.raises(cv.CounterveilError, match=r"CV-P521(.|\n)*pass delta=1e-06"):
        ask(delta=0, method="r_learner")


TRIAL = DATA.study._changed(randomised=True)


def test_one_effect_for_all_has_no_intervals_for_people(tmp_path):
    found = cv.cate(DATA.frame, TRIAL, protects="record", epsilon=0.01, delta=1e-6, noise=cv.SeededNoise(1))
    again = cv.results.CateModel.load(found.save(tmp_path / "one.json"))
    for model in (found, again):
        for asked in (model.interval, model.band, model.effect_interval, model.average):
            with pytest.raises(cv.CounterveilError, match="CV-P528"):
                asked(POINTS)
    with pytest.raises(cv.CounterveilError, match="CV-P528"):
        cv.plots.effect_curve(found, "x1")
    answers = cv.cate(
        DATA.frame,
        TRIAL,
        protects="record",
        epsilon=0.01,
        delta=1e-6,
        noise=cv.SeededNoise(1),
        queries=POINTS,
    )
    assert answers.effect() == pytest.approx(found.effect(POINTS))
    for asked in (answers.interval, answers.band, answers.effect_interval):
        with pytest.raises(cv.CounterveilError, match="CV-P528"):
            asked()
    assert [one.name for one in answers.table] == ["everybody"]
    assert [row["estimand"] for row in answers.tidy()] == ["ATE"]
    assert "ONE EFFECT FOR ALL" in str(answers)
    assert "interval" not in answers.to_dict()
    read = cv.results.CateAnswers.from_dict(json.loads(json.dumps(answers.to_dict())))
    assert read.one_effect
    assert str(read) == str(answers)


def test_what_cannot_be_adjusted_for_is_refused():
    """The same rule as of the average effect: nothing is answered by arms as they are, and nothing is spent."""
    with cv.Session(DATA.frame, DATA.study, budget=cv.Budget(1, "1e-5"), noise=cv.SeededNoise(1)) as session:
        for asked in (session.cate, session.ate):
            with pytest.raises(cv.CounterveilError, match="CV-P404"):
                asked(protects="record", epsilon=0.01, delta="1e-6")
        left = session.remaining()
        assert (left.epsilon, left.delta) == (1, cv.Budget(1, "1e-5").delta)


STRATA = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 1)),
    {"x": cv.Range(0, 1).cut("1/2"), "g": cv.Categories(["a", "b"])},
)


def of_strata(rows, differ=0.0, seed=1):
    rng = np.random.default_rng(seed)
    frame = {"x": rng.uniform(size=rows), "g": rng.choice(["a", "b"], rows), "t": rng.integers(0, 2, rows)}
    effects = 0.1 + differ * (2 * frame["x"] - 1)
    return frame | {"y": np.clip(0.4 + frame["t"] * effects + rng.normal(0, 0.1, rows), 0, 1)}


@pytest.mark.parametrize("protects", ["record", "outcome"])
@pytest.mark.parametrize("study", [STRATA, STRATA._changed(randomised=True)])
def test_one_number_is_what_ate_answers_for_the_whole_budget(protects, study):
    asked = {"protects": protects, "epsilon": "0.1", "delta": 0}
    found = cv.cate(of_strata(600, 0.3), study, noise=cv.SeededNoise(2), **asked)
    same = cv.ate(of_strata(600, 0.3), study, noise=cv.SeededNoise(2), **asked)
    assert not found.heterogeneous
    assert found.spent == same.spent
    assert found.guarantee == same.guarantee
    assert found.details["chosen_by_auto"] == same.details["chosen_by_auto"]
    (one,) = found.table
    assert one.estimate == pytest.approx(same.estimate)
    # Intervals of one effect are cut to what the outcome allows.
    low, high = one.interval()
    assert (high - low) / 2 == pytest.approx(same.uncertainty.half_width(0.95), rel=1e-5)


@pytest.mark.parametrize("protects", ["record", "outcome"])
@pytest.mark.parametrize(("rows", "epsilon", "function"), [(300, "0.1", False), (6000, 1, True)])
def test_outcomes_have_no_part_in_the_first_choice(protects, rows, epsilon, function):
    """The method is the same for people whose effects differ strongly, do not differ, and have other outcomes."""
    frames = [of_strata(rows, 0.3), of_strata(rows), of_strata(rows) | {"y": np.zeros(rows)}]
    words = {"protects": protects, "epsilon": epsilon, "delta": "1e-6", "noise": cv.SeededNoise(2)}
    found = [cv.cate(frame, STRATA._changed(randomised=True), **words) for frame in frames]
    tested = ["heterogeneity_p" in one.details for one in found]
    assert tested == [function] * 3
    assert found[0].heterogeneous == function


def test_public_numbers_choose_the_functions():
    study, settings = DATA.study, Cate()
    sizes = [
        choose_design(study, rows, cv.Budget(1, "1e-6"), settings).basis.size
        for rows in (200, 600, 3000, 30_000)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    many = choose_design(dataset_2(100).study, 3000, cv.Budget(1, "1e-6"), settings)
    assert many.is_worthwhile
    assert many.basis.size == 31
    assert not choose_design(dataset_2(100).study, 1000, cv.Budget("0.1", "1e-6"), settings).is_worthwhile
    assert strength(1000, cv.Budget(1), 10) < strength(1000, cv.Budget(1, "1e-6"), 10)


def test_model_is_saved_small_and_read_back(model, tmp_path):
    path = model.save(tmp_path / "model.json")
    assert path.stat().st_size < 100_000
    again = cv.results.CateModel.load(path)
    assert again.effect(POINTS) == pytest.approx(model.effect(POINTS), abs=1e-12)
    for one, two in zip(again.interval(POINTS), model.interval(POINTS), strict=True):
        assert one == pytest.approx(two, rel=1e-5)
    assert str(again).startswith("*** SIMULATED")
    assert again.simulated
    assert "3000" not in json.dumps(json.loads(path.read_text())["weights"])


@pytest.mark.parametrize("weight", [float("inf"), float("nan")])
def test_a_model_with_weights_that_are_no_numbers_is_not_read(model, weight):
    facts = model.to_dict()
    with pytest.raises(cv.CounterveilError, match="CV-P66"):
        cv.results.CateModel.from_dict(facts | {"weights": [weight, *facts["weights"][1:]]})


def test_people_are_read_from_any_table(model):
    expected = model.effect(POINTS)
    for table in (
        pd.DataFrame(POINTS),
        pl.DataFrame(POINTS),
        [{"x1": a, "x2": b} for a, b in zip(*POINTS.values(), strict=True)],
        np.column_stack(list(POINTS.values())),
        {name: list(values) for name, values in POINTS.items()},
    ):
        assert model.effect(table) == pytest.approx(expected)
    assert model.effect({"x1": 9.0, "x2": 0.4}) == pytest.approx(model.effect({"x1": 1.0, "x2": 0.4}))
    assert model.predict(POINTS) == pytest.approx(expected)
    assert model.to_sklearn().fit().predict(POINTS) == pytest.approx(expected)
    assert model.to_sklearn().get_params() == {"model": model}
    mean, low, high = model.average(POINTS)
    assert mean == pytest.approx(expected.mean())
    assert low < mean < high
    assert model.effect_interval(POINTS, alpha=0.05)[0] == pytest.approx(model.interval(POINTS)[0])


def test_labels_and_binaries_and_other_bases():
    rng = np.random.default_rng(2)
    n = 6000
    frame = {
        "age": rng.uniform(20, 80, n),
        "sex": rng.choice(["f", "m"], n),
        "site": rng.choice(["a", "b", "c"], n),
        "empty": np.zeros(n),
        "t": rng.integers(0, 2, n),
    }
    truth = np.where(frame["sex"] == "f", 2.0, 0.0) + np.where(frame["site"] == "b", 1.0, 0.0)
    frame["y"] = frame["t"] * truth + rng.uniform(-1, 1, n)
    domains = {
        "age": cv.Range(18, 90),
        "sex": cv.Categories(["f", "m"]),
        "site": cv.Categories(["a", "b", "c"]),
    }
    design = {"control": 0, "randomised": True}
    study = study_of("t", "y", (-2, 4), domains, treated_share="1/2", **design)
    people = [{"age": 50, "sex": sex, "site": site} for sex in "fm" for site in "abc"]
    for settings in (
        Cate(basis="spline", knots=1, products=False),
        Cate(basis="cosine", degree=2, products=False),
        Cate(),
    ):
        found = cv.cate(
            frame, study, protects="record", epsilon=5, delta=1e-6, settings=settings, noise=cv.SeededNoise(4)
        )
        assert found.effect(people) == pytest.approx([2, 3, 2, 0, 1, 0], abs=0.4)
    with pytest.raises(cv.CounterveilError, match="CV-P524"):
        found.effect([{"age": 50, "sex": "x", "site": "a"}])
    with pytest.raises(cv.CounterveilError, match="CV-P522"):
        found.effect([{"age": 50, "sex": "f"}])
    # A label that nobody has, and a column that is the same for everyone.
    more = {"site": cv.Categories(["a", "b", "c", "d"]), "empty": cv.Range(0, 1)}
    wider = study_of("t", "y", (-2, 4), domains | more, **design)
    found = cv.cate(frame, wider, protects="outcome", epsilon=5, delta=1e-6, noise=cv.SeededNoise(4))
    assert found.effect([one | {"empty": 0} for one in people]) == pytest.approx([2, 3, 2, 0, 1, 0], abs=0.4)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"protects": "outcome", "method": "r_learner"}, "CV-P018"),
        ({"method": "magic"}, "CV-P016"),
        ({"method": "influence"}, "CV-P016"),
        ({"settings": cv.settings.Series()}, "CV-P019"),
        ({"method": "series"}, "CV-P018"),
        ({"protects": "outcome", "method": "t_learner"}, "CV-P018"),
        ({"protects": "outcome", "method": "r_learner", "queries": POINTS}, "CV-P018"),
        ({"protects": "outcome", "settings": Cate()}, "CV-P019"),
        ({"protects": "outcome", "method": "magic"}, "CV-P016"),
    ],
)
def test_refusals_come_before_anything_is_spent(words, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(**words)


def test_too_many_functions_are_refused():
    with pytest.raises(cv.CounterveilError, match="CV-P526"):
        ask(data=dataset_2(300), settings=Cate(degree=5))


ROWS, CONTROL, TREATED = 20_000, 0.02, 0.04


def average(seed, method):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(ROWS, 2)), rng.uniform(size=ROWS) < 0.5
    y = (rng.uniform(size=ROWS) < np.where(t, TREATED, CONTROL)).astype(float)
    frame = {"t": t.astype(int), "y": y, "x0": x[:, 0], "x1": x[:, 1]}
    covariates = {"x0": cv.Range(0, 1), "x1": cv.Range(0, 1)}
    study = cv.Study(
        treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), covariates=covariates
    )
    model = cv.cate(
        frame, study, protects="record", epsilon=4, delta=1e-6, method=method, noise=cv.SeededNoise(seed)
    )
    assert model.heterogeneous
    return *model.average(frame), y[t].mean() - y[~t].mean()


@pytest.mark.parametrize("method", thinned(["t_learner", "r_learner"], "t_learner"))
def test_the_average_effect_on_a_rare_outcome_is_kept(method):
    found = [average(seed, method) for seed in range(6)]
    off = [estimate - plain for estimate, _, _, plain in found]
    assert abs(np.mean(off)) < 0.1 * (TREATED - CONTROL)
    assert sum(low <= TREATED - CONTROL <= high for _, low, high, _ in found) >= 5


def test_the_mean_outcome_is_read_off_the_constant_feature():
    constant, level = 0.5, -0.9
    gram = np.array([[constant**2 / 2, 0.0], [0.0, 0.1]])
    products = np.array([constant * level / 2, 0.0])
    moments = ArmProducts((gram, gram), (products, products), 1.0, 0.0, 0.0)
    assert mean_outcome(moments, constant) == pytest.approx(level)

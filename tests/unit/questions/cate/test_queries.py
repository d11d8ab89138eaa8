"""Effects at a finite set of queries: bins, fold aggregation, and the object that holds the answers."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.questions.groups.group_data import rows, study

import counterveil as cv
from counterveil.errors import ParameterError

PEOPLE = {
    "site": ["north", "south", "east", "south"],
    "age": [30.0, 50.0, 70.0, 55.0],
    "sex": ["f", "m", "f", "m"],
}
TRUTH = np.array([0.5, 1.5, -0.5, 1.5])


def ask(method, n=30_000, **arguments):
    given = {"epsilon": 2, "noise": cv.SeededNoise(1), "queries": PEOPLE} | arguments
    return cv.cate(rows(n), study(share=0.5), method=method, **given)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_bins_answer_with_the_effect_of_the_bin(delta):
    found = ask("bins", delta=delta, settings=cv.settings.Bins(by={"site": None, "age": (50,)}))
    assert np.abs((found.effect() - TRUTH) / found.std_error).max() < 3.5
    assert found.std_error.max() < 0.25
    # The second and the fourth person are in one bin.
    assert found.estimates[1] == found.estimates[3]
    assert found.distinct == 3
    assert found.rank == 6
    assert found.noise_tail == ("laplace" if delta == 0 else "normal")


def test_bins_of_all_covariates_are_as_fine_as_public_numbers_afford():
    fine, coarse = ask("bins"), ask("bins", n=2000)
    assert fine.details["bins"] > coarse.details["bins"] >= 6
    with pytest.raises(ParameterError, match="CV-P550"):
        ask("bins", n=300)


def test_sample_and_aggregate_answers_with_what_the_learner_says():
    settings = cv.settings.FoldQueries(folds=100)
    found = ask("sample_and_aggregate", epsilon=100, settings=settings)
    # A linear model of either arm cannot hold effects that differ by site and not by age alone, but it comes near.
    assert np.abs(found.effect() - TRUTH).max() < 0.25
    # A small budget affords lines alone.
    assert found.rank > ask("sample_and_aggregate", epsilon=1, settings=settings).rank == 5
    assert "NO VALID INTERVAL FOR THE EFFECT" in str(found)
    assert found.details["folds"] == 100


def test_any_learner_with_fit_and_predict_will_do():
    class Mean:
        def fit(self, x, y):
            self.value = float(np.mean(y))
            return self

        def predict(self, x):
            return np.full(len(x), self.value)

        def predict_proba(self, x):
            return np.full((len(x), 2), 0.5)

    settings = cv.settings.FoldQueries(learner=cv.settings.ModelPair(Mean(), Mean()), folds=60)
    plain = ask("sample_and_aggregate", epsilon=50, settings=settings)
    # Means of the arms: the effect on everyone, for every person.
    assert np.abs(plain.effect() - 0.6).max() < 4 * max(plain.noise)
    assert max(plain.noise) < 0.25
    # A learner of the user's sees private rows, and the guarantee rests on it.
    assert "Mean" in plain.method
    assert len(plain.guarantee.remarks) > len(ask("sample_and_aggregate", epsilon=50).guarantee.remarks)


@pytest.mark.parametrize("kind", [cv.results.CateAnswers, cv.results.CateModel, cv.Policy])
@pytest.mark.parametrize(
    "text", [None, "no json", "[]", "{}", '{"queries": 3}', '{"kind": "where"}', "[" * 10**5]
)
def test_files_that_hold_something_else_are_refused(kind, text, tmp_path):
    path = tmp_path / "found.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ParameterError) as refused:
        kind.load(path)
    assert refused.value.code == ("CV-P545" if kind is cv.Policy else "CV-P552")
    assert "found.json" in str(refused.value)


def test_scheffe_is_used_where_many_queries_rest_on_few_numbers():
    few = replace(
        ask("bins", n=3000, settings=cv.settings.Bins(by={"site": None})),
        queries=tuple({"x": float(k)} for k in range(500)),
        **dict.fromkeys(("sampling", "noise"), (0.1,) * 500),
        estimates=(1.0,) * 500,
        distinct=500,
        noise_tail="normal",
        rank=2,
    )
    many = replace(few, rank=400)
    assert few.band()[1][0] < many.band()[1][0]


@pytest.mark.parametrize(
    ("method", "settings", "code"),
    [
        ("bins", lambda: cv.settings.Bins(by={"nothing": None}), "CV-S072"),
        ("bins", lambda: cv.settings.Groups(), "CV-P019"),
        ("sample_and_aggregate", lambda: cv.settings.FoldQueries(learner="forest"), "CV-P025"),
        ("sample_and_aggregate", lambda: cv.settings.FoldQueries(folds=2), "CV-P025"),
        ("sample_and_aggregate", lambda: cv.settings.FoldQueries(folds=5000), "CV-P551"),
    ],
)
def test_refusals(method, settings, code):
    with pytest.raises(cv.CounterveilError, match=code):
        ask(method, n=300, settings=settings())


@pytest.mark.parametrize("method", ["bins", "sample_and_aggregate"])
def test_without_queries_there_is_nothing_to_answer(method):
    with pytest.raises(ParameterError, match="CV-P523"):
        ask(method, n=300, queries=None)

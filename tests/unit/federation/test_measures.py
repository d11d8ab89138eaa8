"""Ratios, odds ratios, lifts and numbers needed to treat over a federation: asked, paid, judged and pooled."""

import json

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.federation.coordinator import pooled, states
from counterveil.federation.messages import Ask, Reply, SiteRequest
from counterveil.federation.setup import make_study
from counterveil.federation.study_files import StudyFolder
from counterveil.questions.pooling.effects import PooledNumberNeededToTreat
from counterveil.questions.pooling.pool import pool
from counterveil.results import MeasureResult

MEANS = ("ratio", "odds_ratio", "lift")
ALL = ["difference", *MEANS, "nnt"]
# Far more than noise makes the weights of three sites with the same people differ.
WEIGHTS_DIFFER = 0.5
ADJUSTED = {
    "measure": "ratio",
    "method": "trial",
    "protects": "record",
    "settings": {"adjustment": "covariates"},
}


@pytest.fixture
def world(tmp_path, new_site, trial):
    """Three sites that answered one question about the same measure."""

    def make(measure, method="difference_in_means", protects="outcome", **settings):
        document = {"id": "s1", "address": "127.0.0.1:9092", "quorum": 2} | settings
        document["question"] = {"method": method, "protects": protects, "epsilon": "1", "measure": measure}
        document["sites"] = {name: {} for name in ("North", "South", "West")}
        make_study(tmp_path / "study", document, trial.study, {})
        folder = StudyFolder(tmp_path / "study")
        for name in folder.study.asks:
            site = new_site(name, estimators=[method], protects=[protects], measures=ALL)
            folder.keep(name, Reply.from_text(site.answer(folder.request(name, 4e9).to_text())))
        return folder

    return make


def results_in(folder):
    return {each.site: each.result for each in states(folder)}


def test_a_ratio_is_pooled_as_files_are(world):
    folder = world("ratio")
    found, results = pooled(folder), results_in(folder)
    assert isinstance(found, MeasureResult)
    assert found.means == pool(results, weight_limits=cv.settings.WeightLimits(0.5)).means
    means = np.mean([one.means.values for one in results.values()], axis=0)
    assert found.estimate == pytest.approx(means[0] / means[1])
    assert [found.details[f"weight_{name}"] for name in results] == pytest.approx([1 / 3] * 3)
    assert found.guarantee.epsilon == found.spent.epsilon == 1
    # Other measures of the same means are free; another way of pooling is one with public weights.
    assert pooled(folder, "all").as_measure("odds_ratio").estimate > 0
    with pytest.raises(CounterveilError, match="CV-P600"):
        pooled(folder, "ivw")


def test_numbers_needed_to_treat_are_those_of_the_average_difference(world):
    folder = world("nnt", "trial", "record")
    found, results = pooled(folder, "ivw"), results_in(folder)
    weights = [found.details[f"weight_{name}"] for name in results]
    differences = [one.difference.estimate for one in results.values()]
    assert 1 / found.estimate == pytest.approx(np.dot(weights, differences))
    # Sites of one size differ only by the scales of their noise, which follow the shares that were released.
    assert sum(weights) == pytest.approx(1)
    assert weights == pytest.approx([1 / 3] * 3, rel=WEIGHTS_DIFFER)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert PooledNumberNeededToTreat.from_dict(json.loads(text)) == found


def test_a_site_pays_what_the_same_question_costs_alone(new_site, trial, tmp_path):
    site = new_site(measures=ALL, epsilon=10, study_epsilon=10)
    with cv.open_ledger(tmp_path / "own.db", create=True) as ledger:
        ledger.register("own", cv.Budget(10))
        ledger.publish("own", trial.study.public_columns("outcome"))
    for measure in ("ratio", "nnt"):
        ask = Ask(method="difference_in_means", protects="outcome", epsilon="1", measure=measure)
        request = SiteRequest("s1", measure, "North", trial.study.to_dict(), ask, 2000.0)
        assert Reply.from_text(site.answer(request.to_text())).ok
        words = {name: value for name, value in ask.to_document().items() if name != "settings"}
        cv.ate(trial.frame, trial.study, ledger=tmp_path / "own.db", dataset="own", **words)
    charges = []
    for place, dataset in ((site.file.ledger, site.file.dataset), (tmp_path / "own.db", "own")):
        with cv.open_ledger(place) as ledger:
            assert ledger.account(dataset).spent.epsilon == 2
            paid = [entry for entry in ledger.entries(dataset) if entry.kind == "reserve"]
        charges.append([(one.facts["charge"], one.facts["description"]) for one in paid])
    assert charges[0] == charges[1]


@pytest.mark.parametrize(
    ("ask", "policy", "code"),
    [
        ({"measure": "ratio"}, {}, "CV-F002"),
        ({"measure": "nnt"}, {}, "CV-F002"),
        ({"measure": "lift"}, {"measures": ["ratio"]}, "CV-F002"),
        # Means of an adjusted trial are not released.
        (ADJUSTED, {"measures": ALL}, "CV-F013"),
    ],
)
def test_a_measure_that_is_not_allowed_or_not_there_costs_nothing(
    new_site, trial, budget_spent, ask, policy, code
):
    site = new_site(estimators=["difference_in_means", "trial"], protects=["outcome", "record"], **policy)
    words = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"} | ask
    request = SiteRequest("s1", "r1", "North", trial.study.to_dict(), Ask(**words), 2000.0)
    assert Reply.from_text(site.answer(request.to_text())).refusal == code
    assert budget_spent(site).requests == 0


@pytest.mark.parametrize(
    ("question", "changes", "settings", "code"),
    [
        ({"measure": "hazard"}, {}, {}, "CV-F001"),
        ({"measure": "ratio"}, {"outcome_range": (-1, 1)}, {}, "CV-P686"),
        ({"measure": "odds_ratio"}, {"outcome_range": (0, 2)}, {}, "CV-P686"),
        (ADJUSTED, {}, {}, "CV-P687"),
        ({"measure": "ratio"}, {}, {"pooling": "ivw"}, "CV-P600"),
    ],
)
def test_a_study_that_every_site_would_refuse_is_not_made(tmp_path, question, changes, settings, code):
    study = cv.Study(
        "t",
        cv.Outcome("y", changes.get("outcome_range", (0, 1))),
        {"x": cv.Range(0, 1)},
        assignment=cv.Trial(),
    )
    document = {"id": "s1", "address": "127.0.0.1:9092", "sites": {"North": {}, "South": {}}} | settings
    document["question"] = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"} | question
    with pytest.raises(CounterveilError, match=code):
        make_study(tmp_path / "study", document, study, {})
    assert not (tmp_path / "study" / "study.toml").exists()

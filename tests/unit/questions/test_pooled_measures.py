"""Ratios of several sites: pooled arm means, Fieller's interval, and what is refused."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.privacy.caveats import AtSites, FoldModels, KeptPeople, NotAdjusted
from counterveil.questions.pooled import PooledNeeded
from counterveil.report.caveats import fact_words

TRIAL = cv.Study("t", "y", (0, 1), randomised=True)
SIZES = {"north": 900, "south": 400, "west": 300}


def site(rows, seed, protects="outcome", epsilon=1, measure="ratio", risk=0.2):
    generator = np.random.default_rng(seed)
    treated = np.arange(rows) % 2
    data = {"t": treated, "y": (generator.random(rows) < risk * (1 + treated / 2)).astype(int)}
    noise = cv.SeededNoise(seed)
    return cv.ate(data, TRIAL, protects=protects, epsilon=epsilon, measure=measure, noise=noise)


@pytest.fixture(scope="module", params=["outcome", "record"])
def sites(request):
    return {name: site(rows, place, request.param) for place, (name, rows) in enumerate(SIZES.items())}


def test_means_are_averaged_by_size_and_divided_once(sites):
    found = cv.pool(sites, method="all")
    weights = np.array(list(SIZES.values())) / sum(SIZES.values())
    means = weights @ np.array([one.means.values for one in sites.values()])
    assert found.means.values == pytest.approx(means)
    assert found.estimate == pytest.approx(means[0] / means[1])
    low, high = found.interval()
    assert low < found.estimate < high
    assert high - low < min(np.diff(one.interval())[0] for one in sites.values())
    # By the delta method, on the scale of logarithms, the interval is about as long.
    assert np.log(high / low) == pytest.approx(2 * 1.96 * found.std_error.total / found.estimate, rel=0.15)
    assert found.as_measure("difference").estimate == pytest.approx(means[0] - means[1])
    assert found.details["weight_north"] == pytest.approx(weights[0])


def test_a_site_in_noise_is_left_out_by_public_numbers():
    results = {"north": site(900, 1), "lost": site(50, 2, epsilon="1/100")}
    found = cv.pool(results)
    assert found.details["weight_lost"] == 0
    assert found.guarantee.epsilon == 1


def test_weights_follow_public_numbers_alone():
    sent = {name: site(rows, rows, "record").to_dict() for name, rows in SIZES.items()}
    weights = cv.pool(sent).details
    # The noise of a difference follows the share treated that was released, which is private.
    noise = sent["south"]["numbers"]["known"]["noise"]
    noise["sensitivity"] = str(1000 * Fraction(noise["sensitivity"]))
    again = cv.pool(sent).details
    assert all(again[f"weight_{name}"] == weights[f"weight_{name}"] > 0 for name in SIZES)


def test_rare_outcomes_are_no_release_sent_twice():
    rare = [site(300, seed, epsilon=0.2, risk=0.01) for seed in range(6)]
    lost = [one for one in rare if one.means.values[0] < 0]
    assert len(lost) > 1
    assert len({one.estimate for one in lost}) == 1
    assert cv.pool(lost).interval()[0] == 0
    with pytest.raises(ParameterError, match="CV-P504"):
        cv.pool([lost[0], lost[1], lost[0]])


def test_what_is_not_pooled_is_refused(sites):
    results = list(sites.values())
    for method in ("ivw", "random_effects"):
        with pytest.raises(ParameterError, match="CV-P508"):
            cv.pool(results, method=method)
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool([results[0], site(200, 7, measure="difference")])
    for measure in ("odds_ratio", "difference"):
        other = results[1].as_measure(measure)
        for one in (other, json.loads(json.dumps(other.to_dict()))):
            with pytest.raises(ParameterError, match="another measure"):
                cv.pool([results[0], one])


def test_no_site_has_more_than_its_limit(sites):
    found = cv.pool(sites, method="all", weight_limits=cv.settings.WeightLimits(0.4))
    # North has more than half of the rows; what it may not have goes to the others by size.
    assert found.details["site_weight_limit"] == 0.4
    assert found.means.weights == pytest.approx((0.4, 0.6 * 4 / 7, 0.6 * 3 / 7))
    # A site that can only have said so little of its noise is not weighed with less.
    least = cv.settings.WeightLimits(1.0, min_variance={"north": 10.0})
    assert cv.pool(sites, weight_limits=least).details["weight_north"] == 0


def test_numbers_needed_to_treat_are_those_of_the_average_difference():
    results = {name: site(rows, place, measure="nnt") for place, (name, rows) in enumerate(SIZES.items())}
    found = cv.pool(results, method="all")
    weights = np.array(list(SIZES.values())) / sum(SIZES.values())
    differences = [one.difference.estimate for one in results.values()]
    assert 1 / found.estimate == pytest.approx(weights @ differences)
    assert found.details["weight_south"] == pytest.approx(weights[1])
    low, high = found.difference.interval()
    assert low < weights @ differences < high
    for method in ("all", "random_effects"):
        found = cv.pool({name: one.to_dict() for name, one in results.items()}, method=method)
        again = PooledNeeded.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
        assert again == found
    # What is known of the sites, as for differences.
    assert [row["site"] for row in found.tidy()] == [*SIZES, "pooled"]
    assert 1 / found.tidy()[0]["estimate"] == pytest.approx(differences[0])
    said = " ".join(str(found).split())
    for part in ("north", "I^2 =", "One more site: its difference lies in"):
        assert part in said
    average = found.as_measure("difference")
    assert average.as_measure("nnt") == found
    with pytest.raises(ParameterError, match="CV-P687"):
        average.as_measure("ratio")
    # What was pooled is not pooled again.
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool({"all": found, "north": results["north"]})


@pytest.mark.parametrize(
    "change",
    [
        {"numbers": {"values": [1]}},
        {"numbers": {"values": [0.2, 0.1], "known": [{}, {}], "range": [0, 1]}},
        {"numbers": {"values": [1e9, 0.1]}},
        {"measure": "hazard"},
        {"surprise": 1},
        {"level": 2},
    ],
)
def test_documents_of_another_form_are_refused(sites, change):
    good = json.loads(json.dumps(sites["north"].to_dict()))
    bad = good | change
    if isinstance(change.get("numbers"), dict) and "known" not in change["numbers"]:
        bad = good | {"numbers": good["numbers"] | change["numbers"]}
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool({"north": bad, "south": sites["south"].to_dict()})


def test_facts_of_any_site_in_the_average_come_first():
    said = {
        "population": (KeptPeople(800, 900, 0.1), KeptPeople(300, 400, 0.2)),
        "assumptions": tuple(FoldModels),
    }
    for measure in ("ratio", "nnt"):
        one, other = (
            replace(site(rows, rows, measure=measure), **{name: facts[place] for name, facts in said.items()})
            for place, rows in enumerate((900, 400))
        )
        found = cv.pool({"north": one, "south": other}, method="all")
        for facts in said.values():
            assert all(fact_words(one) in found.warning for one in facts)
        assert found.population == AtSites(("north", "south"), said["population"])
        assert cv.pool({"north": one, "south": other}, method="largest").warning == one.warning
        left = cv.pool([replace(each, population=None, condition=NotAdjusted(1.0)) for each in (one, other)])
        assert left.condition == NotAdjusted(1.0)
    # As the average of differences says it.
    assert found.warning == found.as_measure("difference").warning

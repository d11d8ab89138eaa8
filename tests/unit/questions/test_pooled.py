"""Pooling the results of sites: reading, agreement, promise, renderings."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.privacy import SIMULATED, Proof
from counterveil.privacy.caveats import AtSites, FoldModels, NotAdjusted, Target
from counterveil.report.caveats import fact_words

METHODS = ("mvagg", "ivw", "all", "largest", "random_effects")
STUDY = cv.Study(
    treatment="t",
    outcome="y",
    outcome_range=(0, 1),
    covariates={"x": cv.Range(0, 1), "z": cv.Binary()},
    randomised=True,
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    x, z = rng.random(n), rng.integers(0, 2, n)
    t = rng.permutation(n) % 2
    y = np.clip(0.3 * x + 0.1 * z + 0.2 * t + rng.normal(0.2, 0.1, n), 0, 1)
    return {"t": t, "x": x, "z": z, "y": y}


def site(n=600, seed=0, **arguments):
    arguments = {"protects": "outcome", "epsilon": 1} | arguments
    return cv.ate(people(n, seed), STUDY, noise=cv.SeededNoise(seed), **arguments)


@pytest.fixture(scope="module")
def sites():
    return [site(1200, 1, epsilon=1), site(500, 2, epsilon=2), site(800, 3, epsilon="1/2")]


@pytest.mark.parametrize("method", METHODS)
def test_the_average_is_the_weighted_one_and_covers_the_truth(sites, method):
    found = cv.pool(sites, method=method)
    weights = [part.weight for part in found.sites]
    assert sum(weights) == pytest.approx(1)
    assert found.estimate == pytest.approx(sum(w * s.estimate for w, s in zip(weights, sites, strict=True)))
    low, high = found.interval()
    assert low < 0.2 < high
    assert found.interval(0.99)[0] < low
    assert found.p_value < 0.05 or method == "random_effects"


def test_a_site_with_much_noise_is_left_out():
    found = cv.pool({"good": site(800, 1, epsilon=2), "noisy": site(800, 2, epsilon="1/100")})
    assert [part.weight for part in found.sites] == [1.0, 0.0]
    both = cv.pool([part.result for part in found.sites], method="all")
    assert found.std_error.total < both.std_error.total / 5


def test_the_promise_is_that_of_the_weakest_site():
    mixed = [site(400, 1, epsilon=1), site(400, 2, epsilon=2, delta=1e-6), site(400, 3, epsilon="1/2")]
    found = cv.pool(mixed)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (Fraction(2), Fraction(1, 10**6))
    assert found.spent == cv.Budget(2, 1e-6)
    assert "nobody is in two" in found.guarantee.public[0]
    assert "site 3 0.5" in found.guarantee.remarks[0]
    assert "inference/pooling.proof.md" in found.guarantee.pages


def test_simulated_and_unproved_parts_mark_the_whole(sites):
    assert cv.pool(sites).guarantee.proof is Proof.NONE
    assert str(cv.pool(sites)).startswith(f"*** {SIMULATED}")
    proved = [_with_proof(s, Proof.FINITE_SAMPLE) for s in sites]
    assert cv.pool(proved).guarantee.warning is None
    refuted = cv.pool([*proved[:2], _with_proof(sites[2], Proof.REFUTED)])
    assert refuted.guarantee.proof is Proof.REFUTED
    assert str(refuted).startswith("*** NO GUARANTEE")
    assert any(remark.startswith("site 3: NO GUARANTEE") for remark in refuted.guarantee.remarks)


def _with_proof(result, proof):
    return replace(result, guarantee=replace(result.guarantee, proof=proof))


RECORD = [("trial", {}), ("stratified", {"delta": 1e-6}), ("doubly_robust", {})]


@pytest.mark.parametrize(("method", "more"), RECORD)
def test_record_level_weights_do_not_follow_a_sites_own_variance(method, more):
    settings = cv.settings.Stratified(strata=("z",)) if method == "stratified" else None
    parts = [
        site(600, k, protects="record", epsilon=3, method=method, settings=settings, **more) for k in (1, 2)
    ]
    # The same noises and one variance much larger: with equal sizes and noise, weights stay equal.
    known = parts[0].uncertainty
    twin = replace(parts[1], uncertainty=known)
    large = replace(parts[0], uncertainty=replace(known, variance=known.variance + known.variance_cap / 3))
    found = cv.pool([large, twin], method="ivw")
    assert [part.weight for part in found.sites] == pytest.approx([0.5, 0.5])
    assert np.ptp(found.interval()) > np.ptp(cv.pool(parts, method="ivw").interval())


def smooth(rows, seed, epsilon, **more):
    """Return what a site says of the published form whose noise follows a smooth bound."""
    binary = cv.Study("t", "y", (0, 1), {"z": cv.Binary()}, randomised=True)
    given = {"epsilon": epsilon, "noise": cv.SeededNoise(seed)} | more
    return cv.published.smooth_matching_proved(people(rows, seed), binary, **given)


def test_smooth_noise_of_a_site_with_little_budget_is_left_out():
    parts = [smooth(3000, 1, 5), smooth(3000, 2, "1/4")]
    assert [part.weight for part in cv.pool(parts).sites] == [1.0, 0.0]
    assert all(part.independent_variance for part in parts)


def test_whether_a_variance_shares_noise_is_declared_and_survives_json():
    apart, divided = smooth(900, 1, 5), smooth(900, 1, 5, estimand="ATT")
    assert [part.independent_variance for part in (apart, divided)] == [True, False]
    for part in (apart, divided):
        facts = json.loads(json.dumps(part.to_dict()))
        assert facts["independent_variance"] is part.independent_variance
        assert cv.results.Result.from_dict(facts).independent_variance is part.independent_variance
    # A result that does not say so is not a result.
    del facts["independent_variance"]
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool([apart, facts])


def test_sites_that_differ_are_noticed_and_random_effects_allow_for_it():
    apart = [replace(site(900, k), estimate=0.1 * k) for k in range(1, 6)]
    fixed, random = cv.pool(apart, method="ivw"), cv.pool(apart, method="random_effects")
    assert fixed.heterogeneity.p_value < 0.001
    assert fixed.heterogeneity.i_squared > 0.8
    assert fixed.heterogeneity.tau_squared**0.5 == pytest.approx(0.158, abs=0.02)
    assert np.ptp(random.interval()) > 3 * np.ptp(fixed.interval())


def test_one_more_site_may_lie_further_away_than_their_mean():
    apart = [replace(site(900, k), estimate=0.1 * k) for k in range(1, 6)]
    found = cv.pool(apart, method="random_effects")
    assert [part.weight for part in found.sites] == pytest.approx([0.2] * 5)
    low, high = found.prediction_interval()
    assert high - low == pytest.approx(np.ptp(found.interval()) * 6**0.5, rel=1e-6)
    assert found.to_dict()["prediction"] == {"level": 0.95, "low": low, "high": high}
    assert "One more site" in str(found)
    with pytest.raises(ParameterError, match="CV-P507"):
        cv.pool(apart).prediction_interval()


def test_files_and_facts_are_read(sites, tmp_path):
    for name, result in zip(("a", "b", "c"), sites, strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(result.to_dict()))
    from_files = cv.pool([tmp_path / "a.json", str(tmp_path / "b.json"), tmp_path / "c.json"])
    assert [part.name for part in from_files.sites] == ["a", "b", "c"]
    from_facts = cv.pool([result.to_dict() for result in sites])
    assert from_files.estimate == from_facts.estimate == cv.pool(sites).estimate


def refusal(code, *arguments, **named):
    with pytest.raises(ParameterError) as caught:
        cv.pool(*arguments, **named)
    assert caught.value.code == code
    return caught.value


def test_too_few_and_unknown(sites):
    refusal("CV-P500", [])
    refusal("CV-P500", sites[:1])
    refusal("CV-P506", sites, method="median")
    refusal("CV-P015", sites, level=95)


def test_files_that_hold_no_result(sites, tmp_path):
    bad = tmp_path / "bad.json"
    refusal("CV-P501", [tmp_path / "none.json", sites[0]])
    for text in ("no json", "[1]", "\xff"):
        bad.write_bytes(text.encode("latin-1"))
        refusal("CV-P501", [bad, sites[0]])
    bad.write_text(json.dumps({"error": {"code": "CV-B001"}}))
    assert "refusal" in refusal("CV-P502", [bad, sites[0]]).got
    facts = sites[1].to_dict()
    for wrong in (
        {"hello": 1},
        facts | {"estimate": float("nan")},
        facts | {"uncertainty": facts["uncertainty"] | {"extra": -1.0}},
        facts | {"guarantee": 3},
        facts | {"spent": {"epsilon": "x", "delta": "0"}},
    ):
        refusal("CV-P502", [sites[0], wrong])


def test_results_that_answer_other_questions_are_refused(sites):
    first, second, _ = sites
    other = (
        site(500, 4, protects="record", epsilon=3),
        replace(second, outcome="other"),
        replace(second, treatment="other"),
        site(500, 5, estimand="ATT", method="matching"),
    )
    words = ("unit of protection", "outcome", "treatment", "estimand")
    for wrong, word in zip(other, words, strict=True):
        assert word in refusal("CV-P503", [first, wrong]).problem


def test_the_same_release_twice_is_refused(sites):
    error = refusal("CV-P504", {"a": sites[0], "b": sites[1], "c": sites[0].to_dict()})
    assert "a and c" in error.got


def test_a_result_without_its_number_of_rows_is_refused(sites):
    refusal("CV-P505", [sites[0], replace(sites[1], details={})])


def test_a_caution_of_a_site_is_said_first(sites):
    cautious = [replace(s, interval_target=Target.SHRUNK_CONTRAST) for s in sites]
    found = cv.pool(cautious)
    assert found.warning == cautious[0].warning
    assert "NO VALID INTERVAL FOR THE EFFECT" in str(found)
    assert found.to_dict()["interval_target"] == "shrunk_contrast"
    mixed = cv.pool([cautious[0], *sites[1:]], method="all")
    assert mixed.interval_target == AtSites(
        ("site 1", "site 2", "site 3"), (Target.SHRUNK_CONTRAST, None, None)
    )
    assert mixed.warning.endswith("; site 2, the effect; site 3, the effect")
    bound = [replace(s, condition=NotAdjusted(0.1)) for s in sites]
    assert cv.pool(bound).warning == bound[0].warning
    modelled = [replace(s, assumptions=FoldModels.OUTCOME) for s in sites]
    found = cv.pool([modelled[0], *sites[1:]])
    assert found.warning == modelled[0].warning
    assert found.tidy()[-1]["assumptions"] == fact_words(FoldModels.OUTCOME)

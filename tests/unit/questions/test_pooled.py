"""Pooling the results of sites: reading, agreement, limits of weights, promise, renderings; ratios and tables too."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned, thinned_rows

import counterveil as cv
from counterveil.errors import CounterveilError, ParameterError
from counterveil.privacy import SIMULATED, Proof
from counterveil.privacy.caveats import AtSites, FoldModels, KeptPeople, NotAdjusted, Target
from counterveil.questions.pooling.effects import PooledNumberNeededToTreat
from counterveil.questions.pooling.moments import PooledMoments
from counterveil.questions.pooling.tables import PooledTable
from counterveil.report.caveats import fact_words
from counterveil.report.survival_words import figure_words
from counterveil.results.survival import figure_of

METHODS = ("mvagg", "ivw", "all", "largest", "random_effects")
STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1), "z": cv.Binary()}, assignment=cv.Trial())


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
    binary = cv.Study("t", cv.Outcome("y", (0, 1)), {"z": cv.Binary()}, assignment=cv.Trial())
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
    refusal("CV-P019", sites, weight_limits=0.5)
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


LIMIT_STUDY = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())


def limit_site(rows, seed, epsilon=1):
    source = np.random.default_rng(seed)
    treated = source.permutation(rows) % 2
    data = {"t": treated, "y": np.clip(source.normal(0.4 + 0.1 * treated, 0.2), 0, 1)}
    return cv.ate(data, LIMIT_STUDY, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))


@pytest.fixture(scope="module")
def limit_sites():
    return {"north": limit_site(4000, 1), "south": limit_site(400, 2), "west": limit_site(600, 3)}


def weights(limit_sites, method="ivw", **limits):
    bounds = cv.settings.WeightLimits(**limits) if limits else None
    return {
        each.name: each.weight for each in cv.pool(limit_sites, method=method, weight_limits=bounds).sites
    }


@pytest.mark.parametrize("method", ["ivw", "mvagg", "all", "largest", "random_effects"])
def test_no_site_is_above_the_limit_and_all_add_up(limit_sites, method):
    found = weights(limit_sites, method, max_weight=0.4)
    assert max(found.values()) <= 0.4 + 1e-12
    assert sum(found.values()) == pytest.approx(1)


def test_a_site_may_have_a_limit_of_its_own(limit_sites):
    assert weights(limit_sites)["north"] > 0.75
    assert weights(limit_sites, max_weight=0.5)["north"] == pytest.approx(0.5)
    assert weights(limit_sites, max_weight=0.5, own={"north": 0.7})["north"] == pytest.approx(0.7)


def test_a_variance_that_a_site_reports_does_not_make_its_weight(limit_sites):
    known = limit_sites["south"].uncertainty
    bold = replace(limit_sites["south"], uncertainty=replace(known, variance=0.0))
    modest = replace(limit_sites["south"], uncertainty=replace(known, variance=known.variance_cap))
    few = {"west": limit_sites["west"], "east": limit_site(500, 9)}
    # One number for all sites moves with it, so weights move a little and together.
    moved = [weights(few | {"south": each}, max_weight=1)["south"] for each in (bold, modest)]
    believed = [weights(few | {"south": each})["south"] for each in (bold, modest)]
    assert abs(moved[0] - moved[1]) < 0.1 * abs(believed[0] - believed[1])


def test_a_site_is_not_weighed_with_less_than_its_least_variance(limit_sites):
    usual = weights(limit_sites, max_weight=1)
    floored = weights(limit_sites, max_weight=1, min_variance={"north": 1.0})
    assert floored["north"] < 0.01 < usual["north"]


def test_the_estimate_is_cut_to_what_effects_can_be():
    noisy = {name: limit_site(8, seed, epsilon="1/50") for seed, name in enumerate("abcd")}
    high = {name: replace(each, estimate=abs(each.estimate) + 2) for name, each in noisy.items()}
    assert cv.pool(high, method="all").estimate == 1.0


TRIAL = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
SIZES = {"north": 900, "south": 400, "west": 300}


def ratio_site(rows, seed, protects="outcome", epsilon=1, measure="ratio", risk=0.2):
    generator = np.random.default_rng(seed)
    treated = np.arange(rows) % 2
    data = {"t": treated, "y": (generator.random(rows) < risk * (1 + treated / 2)).astype(int)}
    noise = cv.SeededNoise(seed)
    return cv.ate(data, TRIAL, protects=protects, epsilon=epsilon, measure=measure, noise=noise)


@pytest.fixture(scope="module", params=["outcome", "record"])
def ratio_sites(request):
    return {name: ratio_site(rows, place, request.param) for place, (name, rows) in enumerate(SIZES.items())}


def test_means_are_averaged_by_size_and_divided_once(ratio_sites):
    found = cv.pool(ratio_sites, method="all")
    weights = np.array(list(SIZES.values())) / sum(SIZES.values())
    means = weights @ np.array([one.means.values for one in ratio_sites.values()])
    assert found.means.values == pytest.approx(means)
    assert found.estimate == pytest.approx(means[0] / means[1])
    low, high = found.interval()
    assert low < found.estimate < high
    assert high - low < min(np.diff(one.interval())[0] for one in ratio_sites.values())
    # By the delta method, on the scale of logarithms, the interval is about as long.
    assert np.log(high / low) == pytest.approx(2 * 1.96 * found.std_error.total / found.estimate, rel=0.15)
    assert found.as_measure("difference").estimate == pytest.approx(means[0] - means[1])
    assert found.details["weight_north"] == pytest.approx(weights[0])


# Risks of three sites whose ratios differ by far more than their errors.
APART = {"north": (9000, 0.5), "south": (4000, 0.9), "west": (5000, 0.1)}


def site_apart(rows, seed, lift):
    generator, treated = np.random.default_rng(seed), np.arange(rows) % 2
    data = {"t": treated, "y": (generator.random(rows) < 0.2 * (1 + lift * treated)).astype(int)}
    return cv.ate(data, TRIAL, protects="outcome", epsilon=1, measure="ratio")


@pytest.fixture(scope="module")
def apart():
    return {name: site_apart(rows, seed, lift) for seed, (name, (rows, lift)) in enumerate(APART.items(), 1)}


# What Fieller's intervals of these sites reach beyond normal ones of their logarithms, averaged.
SKEWNESS = 0.005


def logs_of(results, measure="ratio"):
    """Return the sites' log ratios and their variances by the delta method, from means and errors alone."""
    found = []
    for one in results.values():
        (treated, control), errors = one.means.values, one.means.known
        variances = [known.sampling_sd**2 + known.noise_sd**2 for known in errors]
        if measure == "odds_ratio":
            odds = treated / (1 - treated) / (control / (1 - control))
            slopes = 1 / (treated * (1 - treated)), 1 / (control * (1 - control))
        else:
            odds, slopes = treated / control, (1 / treated, 1 / control)
        found.append((np.log(odds), np.square(slopes) @ variances))
    return (np.array(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("measure", "method"),
    thinned_rows(
        list(product(("ratio", "odds_ratio", "lift"), ("mvagg", "all", "largest", "random_effects"))),
        ("ratio", "mvagg"),
        ("odds_ratio", "all"),
        ("lift", "largest"),
    ),
)
def test_pooled_ratios_say_how_far_the_sites_logarithms_differ(apart, measure, method):
    found = cv.pool({name: one.as_measure(measure) for name, one in apart.items()}, method=method)
    logs, variances = logs_of(apart, measure)
    weights = 1 / variances
    q = weights @ (logs - weights @ logs / weights.sum()) ** 2
    differ = found.heterogeneity
    assert (differ.q, differ.df) == (pytest.approx(q, rel=1e-6), 2)
    assert differ.i_squared == pytest.approx(1 - 2 / q)
    between = 1 / (variances + differ.tau_squared)
    assert between @ (logs - between @ logs / between.sum()) ** 2 == pytest.approx(2, rel=1e-6)
    assert differ.scale == {"ratio": "log ratio", "odds_ratio": "log odds ratio"}.get(
        measure, "log of 1 + lift"
    )
    ends = found.heterogeneity_interval()
    assert ends["tau"][0] < differ.tau < ends["tau"][1]
    # The sites' own, and the same figures wherever the answer goes.
    *sites, pooled = found.tidy()
    assert [row["estimate"] for row in sites] == [one.as_measure(measure).estimate for one in apart.values()]
    assert [site.weight for site in found.sites] == [row["weight"] for row in sites]
    assert (pooled["cochran_qe"], pooled["tau_squared"]) == (differ.q, differ.tau_squared)
    assert found.to_dict()["heterogeneity"] == differ.to_dict()
    said = " ".join(found.full().split())
    for name in (*APART, f"Q = {differ.q:.3g} on 2 degrees of freedom", f"sites' {differ.scale}s (tau)"):
        assert name in said
    assert f"I² = {differ.i_squared:.0%}, tau² = {differ.tau_squared:.2g}" in found.write_up()
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


def test_random_effects_of_ratios_are_those_of_their_logarithms(apart):
    found, (logs, _) = cv.pool(apart, method="random_effects"), logs_of(apart)
    assert found.estimate == pytest.approx(np.exp(logs.mean()))
    # Student's t with two degrees of freedom over the three logarithms, as far from them as they are from each other.
    half = 4.302653 * logs.std(ddof=1) / 3**0.5
    assert np.log(found.interval()) == pytest.approx([logs.mean() - half, logs.mean() + half], abs=SKEWNESS)
    one_more = [logs.mean() - 2 * half, logs.mean() + 2 * half]
    assert np.log(found.prediction_interval()) == pytest.approx(one_more, abs=SKEWNESS)
    assert found.std_error.total == pytest.approx(found.estimate * logs.std(ddof=1) / 3**0.5)
    lift = found.as_measure("lift")
    assert lift.interval() == pytest.approx([end - 1 for end in found.interval()])
    assert lift.p_value == pytest.approx(found.p_value)
    assert lift.prediction_interval() == pytest.approx([end - 1 for end in found.prediction_interval()])
    differences = [one.difference.estimate for one in apart.values()]
    difference = found.as_measure("difference")
    assert difference.estimate == pytest.approx(np.mean(differences))
    assert found.as_measure("nnt").estimate == pytest.approx(1 / np.mean(differences))
    assert found.difference.interval() == difference.interval()
    low, high = (f"{end:.2f}" for end in found.prediction_interval())
    assert f"95% prediction interval {low} to {high}" in found.write_up()
    assert f"its risk ratio lies in [{low}, {high}]" in " ".join(str(found).split())
    with pytest.raises(ParameterError, match="CV-P507"):
        cv.pool(apart, method="all").prediction_interval()


def test_a_ratio_lost_in_noise_takes_no_part_in_random_effects(apart):
    found = cv.pool(apart | {"lost": ratio_site(50, 2, epsilon="1/100")}, method="random_effects")
    assert [site.weight for site in found.sites][-1] == 0
    assert found.interval()[1] < np.inf


def test_a_site_in_noise_is_left_out_by_public_numbers():
    results = {"north": ratio_site(900, 1), "lost": ratio_site(50, 2, epsilon="1/100")}
    found = cv.pool(results)
    assert found.details["weight_lost"] == 0
    assert found.guarantee.epsilon == 1


def test_weights_follow_public_numbers_alone():
    sent = {name: ratio_site(rows, rows, "record").to_dict() for name, rows in SIZES.items()}
    weights = cv.pool(sent).details
    # The noise of a difference follows the share treated that was released, which is private.
    noise = sent["south"]["numbers"]["known"]["noise"]
    noise["sensitivity"] = str(1000 * Fraction(noise["sensitivity"]))
    again = cv.pool(sent).details
    assert all(again[f"weight_{name}"] == weights[f"weight_{name}"] > 0 for name in SIZES)


def test_rare_outcomes_are_no_release_sent_twice():
    rare = [ratio_site(300, seed, epsilon=0.2, risk=0.01) for seed in range(6)]
    lost = [one for one in rare if one.means.values[0] < 0]
    assert len(lost) > 1
    assert len({one.estimate for one in lost}) == 1
    assert cv.pool(lost).interval()[0] == 0
    with pytest.raises(ParameterError, match="CV-P504"):
        cv.pool([lost[0], lost[1], lost[0]])


def test_what_is_not_pooled_is_refused(ratio_sites):
    results = list(ratio_sites.values())
    with pytest.raises(ParameterError, match="CV-P508"):
        cv.pool(results, method="ivw")
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool([results[0], ratio_site(200, 7, measure="difference")])
    for measure in ("odds_ratio", "difference"):
        other = results[1].as_measure(measure)
        for one in (other, json.loads(json.dumps(other.to_dict()))):
            with pytest.raises(ParameterError, match="another measure"):
                cv.pool([results[0], one])


def test_no_site_has_more_than_its_limit(ratio_sites):
    found = cv.pool(ratio_sites, method="all", weight_limits=cv.settings.WeightLimits(0.4))
    # North has more than half of the rows; what it may not have goes to the others by size.
    assert found.details["site_weight_limit"] == 0.4
    assert found.means.weights == pytest.approx((0.4, 0.6 * 4 / 7, 0.6 * 3 / 7))
    # A site that can only have said so little of its noise is not weighed with less.
    least = cv.settings.WeightLimits(1.0, min_variance={"north": 10.0})
    assert cv.pool(ratio_sites, weight_limits=least).details["weight_north"] == 0


def test_numbers_needed_to_treat_are_those_of_the_average_difference():
    results = {
        name: ratio_site(rows, place, measure="nnt") for place, (name, rows) in enumerate(SIZES.items())
    }
    found = cv.pool(results, method="all")
    weights = np.array(list(SIZES.values())) / sum(SIZES.values())
    differences = [one.difference.estimate for one in results.values()]
    assert 1 / found.estimate == pytest.approx(weights @ differences)
    assert found.details["weight_south"] == pytest.approx(weights[1])
    low, high = found.difference.interval()
    assert low < weights @ differences < high
    for method in ("all", "random_effects"):
        found = cv.pool({name: one.to_dict() for name, one in results.items()}, method=method)
        again = PooledNumberNeededToTreat.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
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
def test_documents_of_another_form_are_refused(ratio_sites, change):
    good = json.loads(json.dumps(ratio_sites["north"].to_dict()))
    bad = good | change
    if isinstance(change.get("numbers"), dict) and "known" not in change["numbers"]:
        bad = good | {"numbers": good["numbers"] | change["numbers"]}
    with pytest.raises(ParameterError, match="CV-P502"):
        cv.pool({"north": bad, "south": ratio_sites["south"].to_dict()})


def test_facts_of_any_site_in_the_average_come_first():
    said = {
        "population": (KeptPeople(800, 900, 0.1), KeptPeople(300, 400, 0.2)),
        "assumptions": tuple(FoldModels),
    }
    for measure in ("ratio", "nnt"):
        one, other = (
            replace(
                ratio_site(rows, rows, measure=measure),
                **{name: facts[place] for name, facts in said.items()},
            )
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


COVARIATES = {"age": cv.Range(20, 80), "sex": cv.Binary()}
TWO = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 2)), COVARIATES, assignment=cv.Trial())
TIMES = cv.Study(
    cv.Treatment("t", control=0),
    cv.TimeToEvent("days", "e", horizon=24, grid=6),
    covariates=COVARIATES,
    assignment=cv.Trial(),
)
TABLE_SIZES = (300, 500, 900)
# So much budget that noise does not matter beside this part of a coefficient.
PLENTY, NEAR = 10**5, 1e-3


def rows(size, seed):
    source = np.random.default_rng(seed)
    frame = {"t": source.permutation(size) % 2, "sex": source.integers(0, 2, size)}
    frame["age"] = source.uniform(20, 80, size)
    frame["y"] = 0.5 + 0.2 * frame["t"] + 0.01 * frame["age"] - 0.2 * seed + source.uniform(-0.2, 0.2, size)
    frame["days"] = np.minimum(source.exponential(20 + 10 * frame["t"]), 24.0)
    frame["e"] = (frame["days"] < 24).astype(int)
    return frame


@pytest.fixture(scope="module")
def groups():
    asked = {"by": "sex", "protects": "outcome", "epsilon": 1}
    return {
        f"site {k}": cv.groups(rows(size, k), TWO, **asked, method="difference_in_means")
        for k, size in enumerate(TABLE_SIZES)
    }


@pytest.fixture(scope="module")
def survival():
    asked = {"protects": "outcome", "epsilon": 2, "method": "kaplan_meier"}
    return [cv.survival(rows(size, k), TIMES, **asked) for k, size in enumerate(TABLE_SIZES)]


def test_every_row_is_the_average_of_the_sites_rows(groups):
    found = cv.pool(groups)
    assert isinstance(found, PooledTable)
    assert [row.effect.name for row in found.rows] == ["sex=0", "sex=1"]
    for row in found.rows:
        estimates = [groups[site].effect(row.effect.name).estimate for site in row.weights]
        assert row.effect.estimate == pytest.approx(np.dot([*row.weights.values()], estimates))
        assert sum(row.weights.values()) == pytest.approx(1)
        # Noise is drawn anew: single sites may be more exact by chance.
        assert float(row.effect.std_error) < np.mean(
            [float(one.effect(row.effect.name).std_error) for one in groups.values()]
        )
    assert found.guarantee.epsilon == 1


def test_intervals_for_all_rows_are_bonferronis(groups):
    found = cv.pool(groups)
    for one in found.table:
        assert one.interval(simultaneous=True) == one.interval(1 - 0.05 / 2)
        assert one.adjusted_p_value <= 1
    assert PooledTable.from_dict(json.loads(json.dumps(found.to_dict()))).table == found.table


def test_a_group_that_one_site_alone_has_is_left_out(groups):
    lone = {
        name: one if name == "site 0" else replace(one, groups=(replace(one.groups[0], several=1),))
        for name, one in groups.items()
    }
    found = cv.pool(lone)
    assert found.left_out == ("sex=1",)
    assert [one.name for one in found.table] == ["sex=0"]


def test_other_questions_are_not_pooled(groups, survival):
    with pytest.raises(CounterveilError, match="CV-P503"):
        cv.pool([groups["site 0"], survival[0]])
    with pytest.raises(CounterveilError, match="CV-P502"):
        cv.pool([groups["site 0"].to_dict(), groups["site 1"].to_dict() | {"groups": []}])


def test_survival_and_any_number_of_it_is_averaged(survival):
    found = cv.pool(survival)
    assert [one.name for one in found.table] == [one.name for one in survival[0].table]
    for of in (
        lambda one: one.difference(12.0),
        lambda one: one.restricted_mean("treated"),
        lambda one: one.hazard_ratio(),
    ):
        low, high = found.average(of).interval()
        ends = [of(one).interval() for one in survival]
        assert min(end[0] for end in ends) <= low < high <= max(end[1] for end in ends)
        assert high - low < min(end[1] - end[0] for end in ends)


@pytest.mark.parametrize("method", ["mvagg", "random_effects"])
def test_averages_of_hazard_ratios_keep_the_sites_and_how_far_they_differ(survival, method):
    found = cv.pool(dict(zip("abc", survival, strict=True)), method=method)
    ratio = found.average(lambda one: one.hazard_ratio())
    own = [one.hazard_ratio() for one in survival]
    assert [(one.name, one.estimate) for one in ratio.pooled.sites] == [
        (name, one.estimate) for name, one in zip("abc", own, strict=True)
    ]
    logs = np.log([one.estimate for one in own])
    weights = np.array([(one.estimate / float(one.std_error)) ** 2 for one in own])
    differ = ratio.pooled.heterogeneity
    assert differ.q == pytest.approx(weights @ (logs - weights @ logs / weights.sum()) ** 2)
    assert differ.scale == "log ratio"
    said = " ".join(str(found).split())
    assert all(
        f"{name} {figure_words(figure_of(one))} (weight" in said for name, one in zip("abc", own, strict=True)
    )
    assert f"Q = {differ.q:.3g} on 2 degrees of freedom" in said
    ends = ratio.pooled.prediction_interval()
    if method == "mvagg":
        assert ends is None
    else:
        low, high = ratio.interval()
        assert ends[0] < low < high < ends[1]


@pytest.mark.parametrize("method", thinned(("all", "random_effects"), "all"))
def test_ratios_of_several_outcomes_compare_the_logarithms_of_sites(method):
    two = cv.Study("t", outcome={"y": (0, 1), "z": (0, 1)}, assignment=cv.Trial())

    def one(seed, rows):
        source, arm = np.random.default_rng(seed), np.arange(rows) % 2
        data = {"t": arm} | {name: (source.random(rows) < 0.2 + 0.1 * arm).astype(int) for name in "yz"}
        asked = {"protects": "outcome", "epsilon": 2, "noise": cv.SeededNoise(seed)}
        return cv.outcomes(data, two, measure="ratio", method="difference_in_means", **asked)

    sites = {name: one(seed, 2000) for seed, name in enumerate("abc")}
    found = cv.pool(sites, method=method)
    for row in found.rows:
        own = [site.effect(row.effect.name) for site in sites.values()]
        logs = np.log([each.estimate for each in own])
        weights = np.array([(each.estimate / float(each.std_error)) ** 2 for each in own])
        centre = weights @ logs / weights.sum()
        assert row.heterogeneity.q == pytest.approx(weights @ (logs - centre) ** 2)
        assert [each.estimate for each in row.sites] == [each.estimate for each in own]
    again = PooledTable.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.table == found.table
    assert {row["heterogeneity_scale"] for row in found.tidy()} == {"log ratio"}


def test_a_quantile_that_a_site_does_not_reach_is_not_known(survival):
    found = cv.pool(survival, method="all")
    assert found.average(lambda one: one.quantile("treated", 0.99)).interval() == (-np.inf, np.inf)
    low, high = found.average(lambda one: one.quantile_difference(0.25)).interval()
    assert low <= high


def test_moments_of_sites_add_up_to_those_of_all_rows():
    sites = [rows(size, k) for k, size in enumerate(TABLE_SIZES)]
    asked = {"protects": "outcome", "epsilon": PLENTY}
    found = cv.pool({f"s{k}": cv.moments(one, TWO, **asked) for k, one in enumerate(sites)})
    assert isinstance(found, PooledMoments)
    whole = {name: np.concatenate([one[name] for one in sites]) for name in sites[0]}
    site = np.repeat([0, 1, 2], TABLE_SIZES)
    columns = [np.ones(len(site)), whole["t"], whole["age"]]
    for formula, more in (("y ~ t + age", []), ("y ~ t + age | site", [site == 1, site == 2])):
        x = np.column_stack([*columns, *more]).astype(float)
        wanted, left, *_ = np.linalg.lstsq(x, whole["y"], rcond=None)
        fit = found.regress(formula)
        assert fit.coefficient("t").estimate == pytest.approx(wanted[1], rel=NEAR)
        error = np.sqrt(left[0] / (len(x) - x.shape[1]) * np.linalg.inv(x.T @ x)[1, 1])
        assert fit.coefficient("t").std_error.total == pytest.approx(error, rel=0.01)
    again = PooledMoments.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (
        again.regress("y ~ t").coefficient("t").estimate == found.regress("y ~ t").coefficient("t").estimate
    )


def test_a_held_weight_of_moments_counts_as_fewer_rows():
    sites = [
        cv.moments(rows(size, k), TWO, protects="outcome", epsilon=1)
        for k, size in enumerate((100, 100, 2000))
    ]
    found = cv.pool(sites, weight_limits=cv.settings.WeightLimits(0.5))
    assert max(one.weight for one in found.answers) == pytest.approx(0.5)
    assert found.rows == int(1 / (0.25 / 2000 + 2 * 0.0625 / 100))

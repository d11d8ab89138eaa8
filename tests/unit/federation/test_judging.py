"""What a coordinator believes of replies: honest ones however noisy, and no lie about noise, words or ledgers."""

import copy
import json
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.estimators.site_bounds.noise import effect_in_reach
from counterveil.estimators.site_bounds.pairs import least_step
from counterveil.federation.judging import (
    OTHER_NOISE,
    OUT_OF_REACH,
    WENT_BACK,
    DeclaredOutcome,
    SetAsideError,
    judged,
    released_difference,
)
from counterveil.federation.messages import Ask, Head, Reply, SiteRequest
from counterveil.federation.site import checked_arguments
from counterveil.privacy import Proof
from counterveil.privacy.caveats import Target
from counterveil.questions.ate import settings_from_values
from counterveil.questions.pooling.pool import pool
from counterveil.results.result import difference_result
from counterveil.results.site_bounds import Breach
from counterveil.settings import WeightLimits


@pytest.fixture
def answered(new_site, trial):
    """Return a request for weighted means and a site's reply to it."""
    site = new_site(estimators=["weighting"], protects=["outcome"])
    ask = Ask(method="weighting", protects="outcome", epsilon="1")
    request = SiteRequest("s1", "r1", site.file.name, trial.study.to_dict(), ask, 2000.0, None)
    return request, Reply.from_text(site.answer(request.to_text()))


def test_a_difference_without_a_variance_of_its_own_is_judged_by_the_largest(new_site, trial):
    site = new_site(estimators=["difference_in_means"], protects=["outcome"])
    ask = Ask("difference_in_means", "outcome", epsilon="1", settings={"variance_share": 0})
    request = SiteRequest("s1", "r1", site.file.name, trial.study.to_dict(), ask, 2000.0, None)
    reply = Reply.from_text(site.answer(request.to_text()))
    assert judged(request, reply, None, None).uncertainty.variance_noise is None
    forged = copy.deepcopy(reply.result)
    forged["uncertainty"]["variance"] /= 4
    with pytest.raises(SetAsideError):
        judged(request, replace(reply, result=forged), None, None)


def test_a_claimed_variance_does_not_widen_the_reach_of_an_estimate(answered, trial):
    request, reply = answered
    assert judged(request, reply, None, None).estimate == reply.result["estimate"]
    low, high = trial.study.outcome_range
    forged = copy.deepcopy(reply.result)
    width, step = float(high - low), float(Fraction(forged["uncertainty"]["noise"]["sensitivity"]))
    # Weights that add up to one bound the variance: the sum of their squares is at most the largest.
    forged["uncertainty"]["variance_cap"] = width * step
    assert judged(request, replace(reply, result=forged), None, None).estimate == reply.result["estimate"]
    forged["estimate"] = 12 * width
    with pytest.raises(SetAsideError, match=OUT_OF_REACH):
        judged(request, replace(reply, result=forged), None, None)
    forged["uncertainty"]["variance_cap"] = 1e6 * width**2
    with pytest.raises(SetAsideError, match=OTHER_NOISE):
        judged(request, replace(reply, result=forged), None, None)


def test_an_estimate_without_limits_is_judged_by_the_declared_outcome(answered, trial):
    request, reply = answered
    asked = DeclaredOutcome.of(request.declaration).asked(request.ask, 200)
    result = judged(request, reply, None, None)
    low, high = trial.study.outcome_range
    for estimate, holds in ((float(high - low), True), (12.0 * float(high - low), False)):
        bound = effect_in_reach(asked, released_difference(replace(result, estimate=estimate, limits=None)))
        assert (bound.breach, bound.holds) == (Breach.REACH, holds)


def test_a_ledger_that_ends_before_an_earlier_answer_went_back(answered):
    request, reply = answered
    seq, here = reply.head.seq, reply.head.hash
    for known in (Head(seq, here), Head(seq - 1, "0" * 64)):
        judged(request, reply, None, known)
    for known in (Head(seq + 1, "0" * 64), Head(seq, "0" * 64)):
        with pytest.raises(SetAsideError, match=WENT_BACK):
            judged(request, reply, None, known)


@pytest.mark.parametrize("method", ["difference_in_means", "weighting"])
def test_an_honest_site_with_a_range_that_is_far_too_wide_is_not_set_aside(new_site, tmp_path, method):
    rng, rows = np.random.default_rng(1), 4000
    table = np.column_stack([np.arange(rows) % 2, rng.normal(5, 1, rows).round(3), rng.uniform(0, 1, rows)])
    path = tmp_path / "wide.csv"
    np.savetxt(path, table, "%g", ",", header="t,y,x", comments="")
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (-95, 105)),
        {"x": cv.Range(0, 1)},
        assignment=cv.Trial(),
    )
    site = new_site(data=path, study=study, estimators=[method], protects=["outcome"])
    ask = Ask(method, "outcome", epsilon="1")
    request = SiteRequest("s1", "r1", site.file.name, study.to_dict(), ask, 2000.0, None)
    result = judged(request, Reply.from_text(site.answer(request.to_text())), None, None)
    assert len(result.releases) == 2


def test_a_search_for_the_range_is_refused_at_sites():
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-95, 105)), assignment=cv.Trial())
    ask = Ask("difference_in_means", "outcome", epsilon="1", settings={"find_range": True})
    with pytest.raises(ParameterError, match="CV-P025"):
        checked_arguments(study, ask)


HEAD = Head(3, "0" * 64)
COVARIATES = {"sex": cv.Binary(), "x": cv.Range(0, 1)}
TRIAL = cv.Study("t", cv.Outcome("y", (0, 1)), COVARIATES, assignment=cv.Trial())
DESIGNED = cv.Study("t", cv.Outcome("y", (0, 1)), COVARIATES, assignment=cv.Trial(share="1/2"))
OBSERVED = cv.Study("t", cv.Outcome("y", (0, 1)), COVARIATES)
KNOWN = cv.Study(
    "t", cv.Outcome("y", (0, 1)), {"x": cv.Range("0.001", "0.999")}, assignment=cv.Propensity("x")
)
STRATA = cv.Study("t", cv.Outcome("y", (0, 1)), {"sex": cv.Binary()})
OTHER_RANGE = cv.Study("t", cv.Outcome("y", ("1/3", 7)), {"sex": cv.Binary()}, assignment=cv.Trial())
NORMAL = {"mechanism": "gaussian", "delta": "1e-6"}
OUTCOME, RECORD = {"protects": "outcome"}, {"protects": "record"}
PAIR, PAIRS = (
    {"method": method, "protects": "treatment and outcome"} for method in ("trial", "doubly_robust")
)
SCORED = {"method": "doubly_robust", "delta": "1e-6"} | RECORD
WEIGHTED, CONTRAST = {"method": "weighting"} | OUTCOME, {"method": "trial"} | RECORD
# What is shown of a difference beside its released numbers takes long to make, and is not computed with.
SHOWN = {
    "std_error": {"total": 1, "sampling": 1, "noise": 1},
    "interval": {"level": 0.95, "low": 0, "high": 1},
    "interval_without_noise": {"low": 0, "high": 1},
    "p_value": 0.5,
}


def document(form, measure="difference", rows=400, epsilon="1", seed=1, study=TRIAL, share=0.5, whole=False):
    """Return a request and what an honest site would send; its noise has a seed, which is not said."""
    generator = np.random.default_rng(seed)
    x, leaning = 0.001 + 0.998 * generator.random(rows), 0.05 if min(share, 1 - share) < 0.2 else 0.4
    treated = (generator.random(rows) < share + leaning * (x - 0.5)).astype(int)
    treated[:4] = 1, 1, 0, 0
    events = generator.random(rows) < (0.3 if seed % 2 else 0.01) * (1 + 0.5 * treated)
    people = {"t": treated, "y": events.astype(int), "sex": generator.integers(0, 2, rows), "x": x}
    ask = Ask(epsilon=epsilon, measure=measure, **form)
    words = {name: value for name, value in ask.to_document().items() if name != "settings"}
    settings = settings_from_values(ask.method, ask.settings)
    result = cv.ate(people, study, settings=settings, noise=cv.SeededNoise(seed), **words)
    facts = result.to_dict() if whole else result.stored() | (SHOWN if measure == "difference" else {})
    facts = json.loads(json.dumps(facts)) | {
        "guarantee": facts["guarantee"] | {"proof": Proof.FINITE_SAMPLE.value}
    }
    facts.pop("guarantee_warning", None)
    return SiteRequest("s1", "r1", "North", study.to_dict(), ask, 4e9), facts


def sent(request, facts):
    """Return what the coordinator makes of a document, or raise."""
    text = Reply.to(request, result=facts, head=HEAD).to_text()
    return judged(request, Reply.from_text(text), None, None)


def changed(facts, lie):
    """Return a document with other numbers or words; `__` goes into a table or a list."""
    forged = deepcopy(facts)
    for path, value in lie.items():
        table = forged
        *tables, last = path.split("__")
        for name in tables:
            table = table[int(name) if isinstance(table, list) else name]
        table[int(last) if isinstance(table, list) else last] = value
    return forged


def believed(request, facts, lies):
    """Return the lies that are not found out; none may do anything else than set the site aside."""
    found = []
    for lie in lies:
        try:
            sent(request, changed(facts, lie))
            found.append(lie)
        except SetAsideError:
            continue
    return found


SMALL = [(60, "1/10", 0.5), (300, "1/10", 0.1), (500, "1/20", 0.05), (20, "1/100", 0.5), (400, "50", 0.97)]
STUDIES = {"trial": TRIAL, "designed": DESIGNED, "observed": OBSERVED, "range": OTHER_RANGE}
NOISES = {"staircase": {}, "laplace": {"mechanism": "laplace"}, "normal": NORMAL}


def believe_trials(study, noise, seeds):
    """Judge the contrasts of small trials, a few of them as other measures."""
    for rows, epsilon, share in SMALL:
        for seed in seeds:
            sent(*document(CONTRAST | noise, "difference", rows, epsilon, seed, study, share))
    if study is not OTHER_RANGE:
        for measure in ("nnt", "ratio"):
            sent(*document(CONTRAST | noise, measure, 60, "1/10", len(seeds), study))


def test_a_trial_of_few_people_and_normal_noise_is_believed():
    believe_trials(TRIAL, NORMAL, range(8))


@pytest.mark.parametrize(("study", "noise"), list(zip(STUDIES, ["laplace", *NOISES], strict=True)))
def test_a_trial_of_another_design_or_noise_is_believed(study, noise):
    believe_trials(STUDIES[study], NOISES[noise], range(1))


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("study", STUDIES)
def test_many_trials_of_few_people_are_believed(study, noise):
    believe_trials(STUDIES[study], NOISES[noise], range(40))


OF_OUTCOMES = [
    ("difference_in_means", "ratio", 60, {}),
    ("difference_in_means", "nnt", 12, NOISES["laplace"]),
    ("difference_in_means", "ratio", 12, NORMAL),
    ("weighting", "ratio", 12, {}),
    ("weighting", "difference", 60, NORMAL),
    ("matching", "ratio", 60, {}),
    ("matching", "nnt", 12, NORMAL),
    ("stratified", "ratio", 60, NORMAL),
    ("stratified", "difference", 12, {}),
    ("auto", "nnt", 60, {}),
]


@pytest.mark.parametrize(("method", "measure", "rows", "noise"), OF_OUTCOMES)
def test_averages_of_private_outcomes_are_believed(method, measure, rows, noise):
    study = STRATA if method == "stratified" else OBSERVED
    for seed, (epsilon, share) in enumerate([("1/10", 0.3), ("8", 0.97)]):
        sent(*document({"method": method} | OUTCOME | noise, measure, rows, epsilon, seed, study, share))


HONEST = [
    ({"method": "difference_in_means"} | OUTCOME, "ratio", 300, OTHER_RANGE),
    (CONTRAST, "ratio", 300, OTHER_RANGE),
    (WEIGHTED | {"estimand": "ATT"}, "ratio", 100, OBSERVED),
    (WEIGHTED | {"settings": {"prediction": "x", "residual_range": [-1, 1]}}, "difference", 100, OBSERVED),
    (WEIGHTED | {"settings": {"prediction": "x", "residual_range": ["-1/4", "1/4"]}}, "nnt", 100, OBSERVED),
    (WEIGHTED | {"settings": {"bias": 3}}, "ratio", 100, OBSERVED),
    (WEIGHTED | {"settings": {"variance_share": 0.001}}, "ratio", 100, OBSERVED),
    (CONTRAST | {"settings": {"adjustment": "covariates"}}, "difference", 600, TRIAL),
    (CONTRAST | {"settings": {"adjustment": "none", "centre": "arms"}}, "nnt", 60, OBSERVED),
    ({"method": "stratified"} | RECORD, "difference", 60, STRATA),
    ({"method": "stratified", "settings": {"limit": 2}} | RECORD, "nnt", 60, STRATA),
    ({"method": "sample_and_aggregate", "settings": {"folds": 3}} | RECORD, "difference", 60, OBSERVED),
    ({"method": "sample_and_aggregate", "settings": {"learner": "aipw"}} | RECORD, "nnt", 60, OBSERVED),
    ({"method": "doubly_robust", "settings": {"kappa": 0.9}} | RECORD, "difference", 60, OBSERVED),
    (SCORED, "difference", 20_000, OBSERVED),
    (SCORED, "ratio", 2000, OBSERVED),
    ({"method": "auto", "settings": {"kappa": 0.9}} | RECORD, "nnt", 60, OBSERVED),
    *((PAIRS | {"estimand": one}, "difference", 2000, OBSERVED) for one in ("ATE", "ATT", "ATO")),
    (PAIRS | {"delta": "1e-6"}, "nnt", 2000, OBSERVED),
    (PAIRS, "difference", 2000, KNOWN),
    *((PAIR, "difference", 60, one) for one in (TRIAL, DESIGNED, OTHER_RANGE)),
]


@pytest.mark.parametrize(("form", "measure", "rows", "study"), HONEST)
def test_what_other_methods_say_is_believed(form, measure, rows, study):
    few = rows < 1000
    for seed in range(2 if few else 1):
        sent(*document(form, measure, rows, "1/10" if few else "4", seed, study))


# Lies about a difference, under the name of its error.
QUIET = {"mechanism": "staircase", "sensitivity": "1e-59", "epsilon": "1"}
SURE = {"variance": 0.0, "variance_cap": 0.0, "variance_noise": None, "extra": 0.0, "noise": QUIET}
FALSE = [
    {"noise": QUIET},
    {"noise": None},
    SURE,
    SURE | {"noise": None, "variance_cap": 1e-12},
    {"variance_cap": 1e90, "variance": 1e90},
    {"variance_cap": 1e100},
    {"noise__sensitivity": "1000"},
    {"noise__sensitivity": "1/300"},
    {"noise__epsilon": "1/1000000000"},
    {"bias": 1e9},
]
FIRST = [
    {"population": {"name": "KeptPeople", "kept": 5, "rows": 10, "limit": 0.1}},
    {"interval_target": "BUY SHARES"},
    {"interval_target": "divided_contrast"},
    {"condition": {"name": "NotAdjusted", "kappa": 7.0}},
    {"assumptions": "y" * 19_000},
    {"assumptions": {"name": "AtSites", "sites": ["BUY"], "facts": ["outcome"]}},
    {"not_covered": ["BUY SHARES"]},
    {"not_covered": [{"name": "LearnerBias", "learner": "BUY SHARES", "rows": 5}]},
    {"not_covered": [{"name": "SitesLeftOut", "sites": ["North"]}]},
    {"not_covered": [{"name": "OtherFunctions", "balanced": ["BUY SHARES"]}]},
    {"not_covered": [{"name": "ParallelTrends", "outcome": "BUY", "adjusted": True, "of_untreated": True}]},
    {"not_covered": [{"name": "SmallArms", "share": "BUY"}]},
    {"not_covered": [{"name": "SmallArms", "share": 0.1, "more": "BUY"}]},
]
FORMS = {
    "weighting": (WEIGHTED, OBSERVED),
    "matching": ({"method": "matching"} | OUTCOME, OBSERVED),
    "stratified": ({"method": "stratified"} | OUTCOME, STRATA),
    "trial": (CONTRAST, TRIAL),
    "pairs": (PAIR, TRIAL),
    "pairs, searched": (PAIR, OTHER_RANGE),
    "pairs, gaussian": (PAIR | {"delta": "1e-6"}, TRIAL),
}


@pytest.mark.parametrize("measure", ["difference", "nnt"])
@pytest.mark.parametrize("name", FORMS)
def test_no_lie_about_a_difference_is_believed(name, measure):
    form, study = FORMS[name]
    study = study if measure == "difference" or study is not OTHER_RANGE else TRIAL
    request, facts = document(form, measure, study=study, whole=True)
    sent(request, facts)
    table = "" if measure == "difference" else "numbers__"
    lies = [{f"{table}uncertainty__{path}": value for path, value in lie.items()} for lie in FALSE]
    lies.append({f"{table}limits": None})
    assert believed(request, facts, [*lies, *FIRST]) == []


def test_noise_that_fits_a_contrast_of_nothing_is_not_believed():
    request, facts = document(CONTRAST)
    rows, share, step = 400, facts["details"]["share_treated"], Fraction(1, 10**6)
    rare = (1 / share**2 + 1 / (1 - share) ** 2) / rows**2
    cap = float(step) ** 2 * rows / 4 + rare
    lie = {"noise__sensitivity": str(step), "variance_noise__sensitivity": str(step**2), "extra": 0.0}
    lie |= {"variance_cap": cap, "variance": cap}
    assert believed(request, facts, [{f"uncertainty__{name}": value for name, value in lie.items()}]) == []


def test_no_lie_about_weighted_means_is_believed():
    request, facts = document(WEIGHTED, "ratio", whole=True)
    sent(request, facts)
    arm = "numbers__known__0__"
    lies = [
        {f"{arm}variance": 1e90, f"{arm}variance_cap": 1e90},
        *({"numbers__sizes__0": size} for size in (0.5, 1e-160, 1.0, 30.0)),
        {f"{arm}noise__sensitivity": "1000"},
        {f"{arm}noise__epsilon": "1/1000000000"},
    ]
    assert believed(request, facts, [*lies, *FIRST]) == []


def test_no_lie_about_adjusted_means_of_records_is_believed():
    request, facts = document(SCORED, "ratio", 2000, "4", study=OBSERVED, whole=True)
    sent(request, facts)
    arm = "numbers__known__0__"
    lies = [
        {f"{arm}variance": 1e90, f"{arm}variance_cap": 1e90},
        {f"{arm}noise": QUIET},
        {f"{arm}bias": 1e9},
        {
            f"{arm}noise__of": facts["numbers"]["known"][0]["noise"]["of"].replace(
                '"sensitivity": "', '"sensitivity": "1'
            )
        },
        {f"{arm}noise": None},
        *({"numbers__sizes__0": size} for size in (0.5, 1e-160, 1e9)),
        {"numbers__values__0": 40.0},
        {"numbers__range__1": 2.0},
    ]
    assert believed(request, facts, [*lies, *FIRST]) == []


@pytest.mark.parametrize("mechanism", ["staircase", "laplace"])
def test_a_budget_that_leaves_nothing_for_the_share_sets_a_site_aside(mechanism):
    request, facts = document(CONTRAST | {"mechanism": mechanism}, "ratio", whole=True)
    sent(request, facts)
    means = facts["numbers"]
    paid = Fraction(means["mean_noise"]["epsilon"]) + Fraction(means["known"]["noise"]["epsilon"])
    for digits in (30, 170, 200, 390):
        part = str(1 - paid - Fraction(1, 10**digits))
        assert believed(request, facts, [{"numbers__known__variance_noise__epsilon": part}]) == []


def test_facts_are_those_of_the_declared_study():
    request, facts = document(CONTRAST, "difference", study=OBSERVED)
    assert sent(request, facts).interval_target is Target.CONFOUNDED_DIFFERENCE
    confounded = facts["interval_target"]
    # Neither may a site leave out what its method must say, nor say it of a trial.
    assert believed(request, facts, [{"interval_target": None}]) == []
    assert believed(*document(CONTRAST, "difference"), [{"interval_target": confounded}]) == []


def test_limits_of_a_number_needed_to_treat_are_put_back_for_pooling():
    request, facts = document(CONTRAST, "nnt", study=OBSERVED)
    assert facts["numbers"]["limits"] is None
    assert difference_result(sent(request, facts)).limits == (-1.0, 1.0)
    request, facts = document(CONTRAST, "nnt")
    assert believed(request, facts, [{"interval_target": "divided_contrast", "numbers__limits": None}]) == []


@pytest.mark.parametrize("measure", ["odds_ratio", "lift"])
def test_a_mean_next_to_zero_is_shown(measure):
    form = {"method": "difference_in_means"} | OUTCOME
    found = [document(form, measure, seed=seed) for seed in (1, 3)]
    request, facts = found[0]
    for tiny in (5e-324, 1e-200):
        lying = sent(request, changed(facts, {"numbers__values__0": tiny}))
        effect = pool({"North": lying, "South": sent(*found[1])}, weight_limits=WeightLimits(0.5))
        assert effect.tidy()[0]["conf_low"] == (-1 if measure == "lift" else 0)
        assert str(effect)


def test_noise_of_pairs_is_that_of_one_score_and_no_less_than_it_can_be():
    request, facts = document(PAIR, epsilon="2")
    known = facts["uncertainty"]
    least = least_step(DeclaredOutcome.of(request.declaration).asked(request.ask, 400))
    assert Fraction(known["noise"]["sensitivity"]) >= least == Fraction(2, 400)
    below = least * Fraction(99, 100)
    fitting = {"variance_noise__sensitivity": str(below**2), "variance": 0.0}
    fitting |= {"variance_cap": float(below) ** 2 * 100}
    other = {"noise__epsilon": "1.9", "variance_noise__epsilon": "1.9"}
    lies = [
        fitting | {"noise__sensitivity": str(below)},
        other,
        {"noise__mechanism": "staircase"},
        {"bias": 0.36},
        {"extra": -0.001},
        {"variance_noise": None},
        {"variance_noise__sensitivity": str(below**2 / 10**6)},
    ]
    assert believed(request, facts, [{f"uncertainty__{k}": v for k, v in lie.items()} for lie in lies]) == []
    assert believed(request, facts, [{"assumptions": {"name": "KnownScore", "column": "BUY"}}]) == []
    noise = DeclaredOutcome.of(request.declaration).least_noise(request.ask, 400)
    assert noise == pytest.approx(2 * float(least / Fraction(17, 10)) ** 2)

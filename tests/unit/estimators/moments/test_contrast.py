"""The comparison of the arms of a trial of records: as it is, centred, by arm, of several outcomes, and adjusted."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.features import feature_map
from counterveil.errors import CounterveilError, ParameterError, StudyError
from counterveil.estimators.moments.contrast import plan_of, release, release_share
from counterveil.numerics.arm_totals import Arm, arm_totals, cell_totals
from counterveil.numerics.products import Standard
from counterveil.privacy import Budget, Proof
from counterveil.privacy.caveats import Caveat, Target
from counterveil.rows.moments.arms import bounds, three_sums
from counterveil.rows.moments.centred_contrast import CentredContrast, PrivateArms, mean_of_everyone
from counterveil.rows.moments.trial_residuals import Direction, PredictedSteps, residuals_by_arm
from counterveil.rows.records import Records
from counterveil.session import Gate, SeededNoise


def trial(n=3000, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    t = (rng.random(n) < share).astype(int)
    return {"t": t, "y": np.clip(rng.normal(0.3 + 0.35 * t, 0.1, n), 0, 1)}


def study(**extra):
    return study_of(**({"treatment": "t", "outcome": "y", "outcome_range": (0, 1), "control": 0} | extra))


ARMS = cv.settings.Trial("none", "arms")


def ask_for(data, declared, **extra):
    given = {"epsilon": 1, "settings": ARMS} | extra
    return cv.ate(data, declared, protects="record", method="trial", **given)


def difference(data):
    """Return the difference and its error, one more event in each arm counted."""
    y, t = data["y"], data["t"] == 1
    one_more = 1 / t.sum() ** 2 + 1 / (~t).sum() ** 2
    return y[t].mean() - y[~t].mean(), np.sqrt(y[t].var() / t.sum() + y[~t].var() / (~t).sum() + one_more)


def test_unequal_arms_with_a_large_effect_need_the_centre_of_both_arms():
    data = trial()
    effect, _ = difference(data)
    table = Table.attach(data, study(randomised=True))
    arms = PrivateArms(arm_totals(table.treated, table.outcome), table.outcome_unit, Fraction(1))
    budget = Budget(1)

    def error(centre):
        plan = plan_of(centre, table.rows, budget, "staircase")
        gates = [Gate(plan, SeededNoise(s)) for s in range(400)]
        found = [release(gate, plan, arms, declared=None, centre=centre).effect for gate in gates]
        return np.sqrt(np.mean([(float(one) - effect) ** 2 for one in found]))

    assert error("arms") < 0.9 * error("pooled")


def test_a_trial_has_an_interval_and_an_undeclared_study_has_none_for_the_effect():
    data = trial(500)
    for settings in (ARMS, cv.settings.Trial("none", "pooled"), None):
        assert ask_for(data, study(randomised=True), settings=settings).interval_target is None
        assert ask_for(data, study(), settings=settings).interval_target is Target.CONFOUNDED_DIFFERENCE
    loose = ask_for(data, study())
    assert loose.not_covered[0] is Caveat.NOTHING_ADJUSTED
    assert "NO VALID INTERVAL FOR THE EFFECT" in str(loose)
    assert cv.results.Result.from_dict(json.loads(json.dumps(loose.to_dict()))) == loose
    assert loose.guarantee.proof is Proof.FINITE_SAMPLE


def test_a_declared_share_never_lengthens_an_interval():
    for rows, epsilon, low in ((300, 0.5, 0.0), (1000, 4, 0.0), (5000, 1, -4.0), (20_000, 4, -30.0)):
        for seed in range(3):
            data = trial(rows, seed)
            halves = []
            for share in (None, 0.2):
                declared = study(randomised=True, treated_share=share, outcome_range=(low, 1))
                found = ask_for(data, declared, epsilon=epsilon, noise=SeededNoise(seed))
                halves.append(found.uncertainty.half_width(0.95))
            assert halves[1] <= 1.02 * halves[0]


def test_a_declared_share_is_joined_with_the_released_one():
    table = Table.attach(trial(1000), study(randomised=True))
    totals = arm_totals(table.treated, table.outcome)
    arms = PrivateArms(totals, table.outcome_unit, Fraction(1))
    exact = Fraction(totals.treated.count, totals.count)

    def found(declared, epsilon):
        plan = plan_of("arms", table.rows, Budget(epsilon), "staircase")
        return release_share(Gate(plan, SeededNoise(1)), arms, declared)

    sharp, _ = found(Fraction(1, 2), 10_000)
    assert float(sharp) == pytest.approx(float(exact), abs=1e-4)
    blurred, variance = found(Fraction(1, 2), Fraction(1, 1000))
    assert float(blurred) == pytest.approx(0.5, abs=1e-2)
    assert variance == pytest.approx(0.25 / 1000, rel=1e-2)
    (_, alone), (_, joined) = found(None, 1), found(Fraction(1, 2), 1)
    assert joined < alone


def test_refusals():
    with pytest.raises(ParameterError, match="CV-P240"):
        ask_for(trial(100), study(), delta=1e-6, mechanism="gaussian")
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(trial(100), study(), protects="outcome", method="trial", epsilon=1)
    with pytest.raises(ParameterError, match="CV-P019"):
        ask_for(trial(100), study(), settings=cv.settings.Matching())
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(trial(100), study(), protects="record", method="difference_in_means", epsilon=1)


@pytest.mark.parametrize(("rows", "centre"), [(300, "pooled"), (600, "arms")])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_what_is_left_open_is_chosen_from_public_numbers(rows, centre, delta):
    def ask(settings, **rest):
        return ask_for(
            trial(rows), study(randomised=True), delta=delta, noise=SeededNoise(3), settings=settings, **rest
        )

    named = ask(cv.settings.Trial("none", centre), mechanism="staircase")
    for settings in (None, cv.settings.Trial("none")):
        found = ask(settings)
        assert (found.estimate, found.method) == (named.estimate, named.method)


RECORDS = tuple(product((False, True), (0, 1, 2)))
WIDTH = Fraction(2)


def statistics(records, share, centre):
    treated = np.array([t for t, _ in records])
    outcome = np.array([y for _, y in records], dtype=np.int64)
    arms = arm_totals(treated, outcome)
    claim = CentredContrast(WIDTH, len(records), share, centre)
    contrast, moment = PrivateArms(arms, Fraction(1), WIDTH).moments(claim)
    share = Fraction(arms.treated.count, arms.count)
    mean = Fraction(arms.treated.total + arms.control.total, arms.count)
    return share, mean, contrast, moment


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 5), Fraction(3, 4)])
@pytest.mark.parametrize("centre", [Fraction(0), Fraction(1), Fraction(2), Fraction(3, 2)])
def test_no_replacement_exceeds_the_claim(share, centre):
    n = 3
    claim = CentredContrast(WIDTH, n, share, centre)
    bounds = (mean_of_everyone(Fraction(1), n), mean_of_everyone(WIDTH, n), claim.mean, claim.second_moment)
    known = {records: statistics(records, share, centre) for records in product(RECORDS, repeat=n)}
    worst = [Fraction(0)] * 4
    for records, values in known.items():
        for place, record in product(range(n), RECORDS):
            other = known[(*records[:place], record, *records[place + 1 :])]
            worst = [max(w, abs(a - b)) for w, a, b in zip(worst, values, other, strict=True)]
    assert all(w <= bound for w, bound in zip(worst, bounds, strict=True))
    assert worst[:3] == list(bounds[:3])
    # The square's claim counts on psi = 0, which a grid of three outcomes reaches for centres on it.
    if centre.denominator == 1:
        assert worst[3] == claim.second_moment


def test_variance_cap_is_never_exceeded():
    n, share, centre = 3, Fraction(1, 5), Fraction(3, 2)
    claim = CentredContrast(WIDTH, n, share, centre)
    for records in product(RECORDS, repeat=n):
        _, _, contrast, moment = statistics(records, share, centre)
        assert moment - contrast**2 <= claim.variance_cap


def test_contrast_differs_from_means_by_the_product_of_errors():
    records = [(True, 2), (True, 0), (True, 1), (False, 0), (False, 1)]
    q, centre = Fraction(1, 2), Fraction(1, 3)
    _, _, contrast, _ = statistics(records, q, centre)
    m1, m0, true_share = Fraction(1), Fraction(1, 2), Fraction(3, 5)
    best = (1 - q) * m1 + q * m0
    assert contrast - (m1 - m0) == (q - true_share) * (centre - best) / (q * (1 - q))


WEIGHTS = (Fraction(1), Fraction(1, 3))
LABELS = (0, 1, 2)


def vector(records):
    arms = np.array([arm for arm, *_ in records])
    found = []
    for place, weight in enumerate(WEIGHTS):
        steps = np.array([OUTCOME_STEPS * record[place + 1] // 2 for record in records])
        for totals in cell_totals(arms, 3, steps):
            found += [weight * one for one in three_sums(Arm(*map(int, totals)))]
    return found


def test_one_record_moves_the_sums_of_all_arms_within_both_bounds():
    rest = ((0, 0, 1), (1, 2, 0), (2, 1, 1))
    found = [vector((kind, *rest)) for kind in product(LABELS, (0, 1, 2), (0, 1, 2))]
    total, length = bounds(WEIGHTS)
    changes = [[abs(a - b) for a, b in zip(one, two, strict=True)] for one, two in product(found, repeat=2)]
    assert max(sum(change) for change in changes) == total
    longest = max(sum(one**2 for one in change) for change in changes)
    assert longest == 2 * (1 + Fraction(1, 9))
    assert longest <= length**2 <= longest * (1 + Fraction(1, 10**6))


def people(n=6000):
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 3, n)
    y = np.clip(40 + np.array([0, 5, -5])[arm] + 12 * rng.normal(size=n), 0, 100)
    return {"arm": arm, "y": y, "z": (rng.random(n) < 0.2 + 0.1 * arm).astype(float)}


def declared(**more):
    return study_of("arm", **({"outcome": "y", "outcome_range": (0, 100)} | more), arms=LABELS, reference=0)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_effects_of_private_arms_are_answered_around_the_truth(delta):
    study = declared(randomised=True)
    ask = {"protects": "record", "epsilon": 1, "delta": delta, "noise": cv.SeededNoise(1)}
    found = cv.arms(people(), study, **ask)
    for effect, truth in zip(found.pairwise(), (5, -5, -10), strict=True):
        low, high = effect.interval(simultaneous=True)
        assert low < truth < high < low + 3.5
    assert sum(mean.size for mean in found.means) == pytest.approx(6000, abs=100)
    assert type(found).from_dict(found.to_dict()).interval() == found.interval()


def test_a_dose_response_is_one_band_over_the_doses():
    study = declared(randomised=True)
    found = cv.arms(people(), study, protects="record", epsilon=1, noise=cv.SeededNoise(1))
    rows = found.dose_response({0: 10, 1: 0, 2: 5})
    assert [row["dose"] for row in rows] == [0, 5, 10]
    for row, truth in zip(rows, (45, 35, 40), strict=True):
        assert row["band_low"] < row["conf_low"] < row["estimate"] < row["conf_high"] < row["band_high"]
        assert row["band_low"] - 0.5 < truth < row["band_high"] + 0.5
    assert found.slope({0: 10, 1: 0, 2: 5}).interval()[0] < -0.5


def test_means_are_the_arms_own_where_noise_is_small():
    data, study = people(300), declared(randomised=True)
    found = cv.arms(data, study, protects="record", epsilon=10**6, noise=cv.SeededNoise(1))
    for arm, mean in enumerate(found.means):
        own = data["y"][data["arm"] == arm]
        assert mean.estimate == pytest.approx(own.mean(), rel=1e-4)
        assert float(mean.std_error) == pytest.approx(own.std() / len(own) ** 0.5, rel=1e-2)


def test_an_arm_lost_in_noise_has_the_whole_range():
    data = people(90)
    found = cv.arms(
        data, declared(randomised=True), protects="record", epsilon="1/5", noise=cv.SeededNoise(1)
    )
    assert all(mean.interval() == (0.0, 100.0) for mean in found.means)


def test_several_outcomes_of_private_arms_are_ratios_too():
    study = declared(outcome=None, outcome_range=None, outcomes={"y": (0, 100), "z": (0, 1)}, randomised=True)
    words = {"protects": "record", "epsilon": 2, "noise": cv.SeededNoise(1)}
    found = cv.outcomes(people(), study, importance={"z": 2}, **words)
    for (outcome, arm), truth in {("y", 1): 5, ("y", 2): -5, ("z", 1): 0.1, ("z", 2): 0.2}.items():
        low, high = found.effect(outcome, arm).interval()
        assert low < truth < high
    low, high = found.as_measure("ratio").effect("z", 2).interval()
    assert low < 2 < high < low + 0.6


def test_what_is_no_trial_is_refused_or_named():
    words = {"protects": "record", "epsilon": 1, "noise": cv.SeededNoise(1)}
    for more, code in (({}, "CV-S050"), ({"method": "weighting"}, "CV-P016")):
        with pytest.raises(CounterveilError, match=code):
            cv.arms(people(100), declared(), **words, **more)
    assert cv.arms(people(), declared(), method="difference_in_means", **words).interval_target is not None


EFFECT = 0.05
ADJUSTED, PLAIN = cv.settings.Trial("covariates"), cv.settings.Trial("none", "arms")


def covariate_study(covariates=4, **extra):
    domains = {f"x{place}": cv.Range(-1, 1) for place in range(covariates)}
    return study_of("t", "y", (0, 1), domains, control=0, **({"randomised": True} | extra))


def explained_trial(rows=4000, explained=0.8, seed=0, covariates=4):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (rows, covariates))
    t = (generator.random(rows) < 0.4).astype(int)
    signal = x @ np.linspace(1, 0.2, covariates)
    left = generator.uniform(-1, 1, rows)
    y = np.sqrt(explained) * signal / signal.std() + np.sqrt(1 - explained) * left / left.std()
    data = {"t": t, "y": np.clip(0.45 + 0.1 * y + EFFECT * t, 0, 1)}
    return data | {f"x{place}": x[:, place] for place in range(covariates)}


def ask(data, declared=None, settings=ADJUSTED, **extra):
    words = {"epsilon": 4, "delta": "1e-6", "noise": SeededNoise(1)} | extra
    return cv.ate(
        data, declared or covariate_study(), protects="record", method="trial", settings=settings, **words
    )


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_intervals_are_shorter_where_covariates_explain_outcomes(delta):
    data = explained_trial()
    plain = ask(data, settings=PLAIN, mechanism="staircase", delta=delta)
    found = ask(data, delta=delta)
    assert found.details["adjusted"] is True
    assert found.details["explained_variance"] > 0.5
    assert np.ptp(found.interval()) < 0.75 * np.ptp(plain.interval())
    assert found.interval_target is None


@pytest.mark.parametrize("explained", thinned([0.0, 0.8], 0.8))
def test_intervals_cover(explained):
    hits = 0
    for seed in range(60):
        data = explained_trial(1500, explained, seed)
        low, high = ask(data, noise=SeededNoise(seed)).interval()
        hits += low <= EFFECT <= high
    assert hits >= 54


def test_no_replacement_moves_what_is_left_by_more_than_the_claim():
    values = tuple(product((0, 1), (0.0, 0.5, 1.0), (-1.0, 0.3, 1.0)))
    standard = Standard(np.zeros(1), np.ones(1), 4.0, 1.0)
    direction = Direction(np.ones(1), 1.0, 1.0, 1.0)
    prediction = PredictedSteps(standard, direction, slope=0.5, middle=0.1, bound=0.4)
    # Half a coefficient was fitted to five rows.
    factor = 1 / (1 - Fraction(1, 10))
    share, declared = Fraction(2, 5), covariate_study(1)
    claim = None

    def statistics(records):
        nonlocal claim
        t, y, x = (list(column) for column in zip(*records, strict=True))
        table = Table.attach({"t": t, "y": y, "x0": x}, declared)
        arms = residuals_by_arm(Records(table, feature_map(declared, 1)), prediction, factor)
        claim = arms.bounds(share, arms.width / 3)
        return arms.moments(claim)

    rest = (values[0], values[1], values[-1], values[-2])
    found = [statistics((record, *rest)) for record in values]
    for place, bound in enumerate((claim.mean, claim.second_moment)):
        worst = max(abs(a[place] - b[place]) for a, b in product(found, repeat=2))
        assert 0.9 * bound < worst <= bound


@pytest.mark.parametrize(
    ("delta", "mechanism", "drawn"),
    [
        (0, None, {"ball", "laplace", "staircase"}),
        (0, "laplace", {"ball", "laplace"}),
        ("1e-6", None, {"gaussian", "laplace", "staircase"}),
    ],
)
def test_the_guarantee_names_every_law_and_what_joins_them(delta, mechanism, drawn):
    found = ask(explained_trial(), delta=delta, mechanism=mechanism)
    pages, said = found.guarantee.pages, dict(found.releases)
    assert {f"mechanisms/{name}.proof.md" for name in drawn} == {
        page for page in pages if page.startswith("mechanisms/")
    }
    assert len(pages) == len(set(pages))
    assert ("accounting/filters.proof.md" in pages) == (delta != 0)
    # Cells, which have Laplace noise wherever noise is pure.
    assert said["histogram of the rows' lengths"] == ("Gaussian noise" if delta else "Laplace noise")
    assert said["moments of covariates with outcomes"] == ("Gaussian noise" if delta else "l2-ball noise")


def test_refusals_of_adjustments():
    data = explained_trial(500)
    with pytest.raises(StudyError, match="CV-S050"):
        ask(data, covariate_study(randomised=None))
    with pytest.raises(StudyError, match="CV-S051"):
        ask(data, covariate_study(0))
    with pytest.raises(ParameterError, match="CV-P240"):
        ask(data, mechanism="gaussian")

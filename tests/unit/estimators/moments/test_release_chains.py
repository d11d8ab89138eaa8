"""Brute force through the estimators' own release code: every release of a chain, its earlier outputs fixed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.plain_questions import question
from tests.unit.estimators.moments.fixed_outputs import FixedGate, largest_changes

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import CounterveilError
from counterveil.estimators.moments import contrast
from counterveil.estimators.moments.contrast import release_share
from counterveil.estimators.moments.ratio import ratio_design, ratio_plan
from counterveil.estimators.moments.record_event_study import periods_plan, release_period
from counterveil.numerics.arm_totals import arm_totals
from counterveil.privacy import Budget
from counterveil.rows.moments.centred_contrast import PrivateArms
from counterveil.rows.moments.ratio_sums import arm_sums

ROWS, BUDGET = 3, Budget(2)
RECORDS = tuple(product((False, True), (0, 1, 2)))
WIDTH = Fraction(2)


def arms_of(data):
    treated, outcome = (np.array(column) for column in zip(*data, strict=True))
    return PrivateArms(arm_totals(treated, outcome.astype(np.int64)), Fraction(1), WIDTH)


# Noise takes released shares out of their range.
SHARES = [Fraction(1, 2), Fraction(1, 3), Fraction(-1), Fraction(2)]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("centre", "name"), [("arms", "centres"), ("pooled", "centre")])
def test_a_contrast_moves_by_its_sensitivities(share, centre, name):
    plan = contrast.plan_of(centre, ROWS, BUDGET, "staircase")
    # Both arms' means are released as the middle of the range, so that the centre is one of the outcomes.
    fixed = {"share": share} | ({"centre": 1} if centre == "pooled" else {})

    def run(data):
        gate = FixedGate(plan, fixed)
        contrast.release(gate, plan, arms_of(data), declared=None, centre=centre)
        return gate

    found = largest_changes(run, RECORDS, ROWS)
    assert found.keys() == {"share", name, "contrast", "moment"}
    assert all(change == sensitivity for change, sensitivity in found.values())


@pytest.mark.parametrize("far", [-100, 100])
def test_released_centres_out_of_their_range_are_brought_back(far):
    plan = contrast.plan_of("arms", ROWS, BUDGET, "staircase")
    gate = FixedGate(plan, {"share": Fraction(1, 2), "centres": [far, far]})
    setting = contrast.release(gate, plan, arms_of(RECORDS[:ROWS]), declared=None, centre="arms").setting
    assert 0 <= setting.centre <= WIDTH
    plan = contrast.plan_of("pooled", ROWS, BUDGET, "staircase")
    gate = FixedGate(plan, {"share": Fraction(1, 2), "centre": far})
    setting = contrast.release(gate, plan, arms_of(RECORDS[:ROWS]), declared=None, centre="pooled").setting
    assert 0 <= setting.centre <= WIDTH


STEPS = 2**24
PLACES = (0, 1)


def of_periods(epsilon=1):
    return question("record", "difference_in_means", epsilon=epsilon, estimand="ATT")


def run(data):
    """Release two periods of records (t, first change, second change), changes being halves of the range."""
    plan = periods_plan(of_periods(), len(data), list(PLACES))
    gate = FixedGate(
        plan, {"share": Fraction(1, 3)} | {f"centre {period}": Fraction(1, 4) for period in PLACES}
    )
    treated = np.array([row[0] for row in data], dtype=bool)
    share = None
    for period in PLACES:
        steps = np.array([row[1 + period] for row in data], dtype=np.int64) * STEPS // 2
        arms = PrivateArms(arm_totals(treated, steps), Fraction(1, STEPS), Fraction(OUTCOME_STEPS, STEPS))
        share = share or release_share(gate, arms, None)
        release_period(gate, plan, arms, share, period)
    return gate


def test_no_record_moves_a_release_by_more_than_its_sensitivity():
    records = [(t, one, two) for t in (0, 1) for one in (0, 2) for two in (0, 2)]
    found = largest_changes(run, records, 3)
    assert set(found) == {"share"} | {
        f"{what} {period}" for what in ("centre", "contrast", "moment") for period in PLACES
    }
    for name, (change, sensitivity) in found.items():
        assert change <= sensitivity
        if not name.startswith("moment"):
            assert change == sensitivity


def test_amounts_add_up_to_the_budget():
    plan = periods_plan(of_periods(2), 500, [0, 1, 3])
    assert 1.999 < sum(amount for _, amount in plan.amounts) <= 2


@pytest.mark.parametrize(("protects", "near", "close"), [("record", 1e-4, 0.02), ("outcome", 1e-6, 1e-3)])
def test_effects_are_differences_of_mean_changes(protects, near, close):
    rng = np.random.default_rng(0)
    n = 4000
    told = cv.Study(cv.Treatment("t", control=0), cv.Change("y", (-2, 2), before=("a", "b")))
    t = rng.integers(0, 2, n)
    data = {"t": t} | {
        name: np.clip(rng.normal(0, 0.5, n) + shift * t, -2, 2)
        for name, shift in (("a", 0), ("b", 0), ("y", 0.5))
    }
    found = cv.event_study(data, told, protects=protects, epsilon=1e9, noise=cv.SeededNoise(0))
    for name in ("a", "y"):
        change = data[name] - data["b"]
        effect = found.effect(name)
        assert effect.estimate == pytest.approx(change[t == 1].mean() - change[t == 0].mean(), abs=near)
        sampling = np.sqrt(change[t == 1].var() / (t == 1).sum() + change[t == 0].var() / (t == 0).sum())
        assert effect.std_error.sampling == pytest.approx(sampling, rel=close)


STUDY = cv.Study(cv.Treatment("t", control=0), cv.Ratio("n", (-1, 3), "d", (1, 3)), assignment=cv.Trial())


def ratio_question(protects, mechanism=None):
    return question(protects, "auto", delta=0 if mechanism is None else "1e-6", mechanism=mechanism)


def columns(data):
    treated, above, below = (np.array(part) for part in zip(*data, strict=True))
    steps = [(above + 1) * OUTCOME_STEPS // 4, (below - 1) * OUTCOME_STEPS // 2]
    return [[part[treated == arm].astype(np.int64) for part in steps] for arm in (1, 0)]


def released(data, asked):
    plan = ratio_plan(asked)
    answers = {"sums of both arms": [1, 2, 1, 1], "sums of treated": [1, 2], "sums of control": [2, 1]}
    gate = FixedGate(plan, answers)
    ratio_design(STUDY, asked).release_sums(gate, [arm_sums(*parts) for parts in columns(data)])
    return gate


RATIO_RECORDS = [(t, n, d) for t in (0, 1) for n, d in product((-1, 3), (1, 3))]


@pytest.mark.parametrize("mechanism", [None, "gaussian"])
def test_no_record_moves_the_sums_by_more_than_the_claim(mechanism):
    found = largest_changes(
        lambda data: released(data, ratio_question("record", mechanism)), RATIO_RECORDS, 3
    )
    change, bound = found["sums of both arms"]
    assert float(change) <= float(bound) * (1 + 1e-12)
    # Someone with the largest of both leaves one arm for the other.
    assert float(change) == pytest.approx(float(bound), rel=1e-6)
    change, bound = found["residuals of both arms"]
    assert float(change) <= float(bound) + 1e-12
    assert float(bound) == pytest.approx(2 if mechanism is None else 2**0.5)


@pytest.mark.parametrize("mechanism", [None, "gaussian"])
def test_where_arms_are_public_a_person_moves_their_own(mechanism):
    asked = ratio_question("outcome", mechanism)
    for arm, name in ((1, "treated"), (0, "control")):
        other = "control" if name == "treated" else "treated"
        rest = [(1, 3, 1), (0, -1, 3)]
        runs = [released([(arm, n, d), *rest], asked) for n, d in product((-1, 1, 3), (1, 2, 3))]
        for what in ("sums", "residuals"):
            assert len({run.given[f"{what} of {other}"] for run in runs}) == 1
            own = [np.array([float(v) for v in run.given[f"{what} of {name}"]]) for run in runs]
            order = 1 if mechanism is None else 2
            moved = max(np.linalg.norm(a - b, order) for a in own for b in own)
            bound = float(runs[0].sensitivity[f"{what} of {name}"])
            assert moved <= bound + 1e-9
            if what == "sums":
                assert moved == pytest.approx(bound, rel=1e-6)


def test_sums_of_squares_are_exact():
    data = [(1, n, d) for n, d in product((-1, 0, 2, 3), (1, 2, 3))]
    design = ratio_design(STUDY, ratio_question("record"))
    sums = arm_sums(*columns(data)[0])
    for ratio in (Fraction(0), Fraction(2, 7), Fraction(-5, 3)):
        assert design.squares(sums, ratio) == sum((n - ratio * d) ** 2 for _, n, d in data)
        assert design.largest_square(ratio) == max((n - ratio * d) ** 2 for n, d in product((-1, 3), (1, 3)))


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    t, heavy = rng.integers(0, 2, n), rng.gamma(2, 1, n)
    d = np.clip(1 + rng.poisson(2 * heavy), 1, 20)
    return {"t": t, "n": np.clip(rng.binomial(d, np.clip(0.2 + 0.1 * t + 0.02 * heavy, 0, 1)), 0, 20), "d": d}


RATIO = cv.Study(cv.Treatment("t", control=0), cv.Ratio("n", (0, 20), "d", (1, 20)), assignment=cv.Trial())


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_without_noise_it_is_the_delta_method(protects):
    data = people()
    found = cv.ate(data, RATIO, protects=protects, epsilon=1e9, noise=cv.SeededNoise(0))
    parts, variance = [], 0.0
    for arm in (1, 0):
        n, d = data["n"][data["t"] == arm], data["d"][data["t"] == arm]
        ratio = n.sum() / d.sum()
        parts.append(ratio)
        variance += ((n - ratio * d) ** 2).sum() / d.sum() ** 2
    assert found.estimate == pytest.approx(parts[0] - parts[1], abs=1e-5)
    assert [one.estimate for one in found.ratios] == pytest.approx(parts, abs=1e-5)
    assert found.std_error.sampling == pytest.approx(variance**0.5, rel=1e-4)
    low, high = found.interval()
    assert high - low == pytest.approx(2 * 1.96 * variance**0.5, rel=0.01)


def test_rows_of_a_person_are_added_up():
    data = people(400)
    who = np.repeat(np.arange(400), 2)
    rows = {"id": who, "t": data["t"][who]}
    for name in ("n", "d"):
        first = data[name] // 2
        rows[name] = np.stack([first, data[name] - first], axis=1).ravel()
    told = cv.Study(
        cv.Treatment("t", control=0),
        cv.Ratio("n", (0, 20), "d", (1, 20)),
        assignment=cv.Trial(),
        people="id",
    )
    one, several = Table.attach(data, RATIO), Table.attach(rows, told)
    assert (one.outcome == several.outcome).all()
    assert (one.measures[0] == several.measures[0]).all()


def test_a_denominator_lost_in_its_noise_leaves_everything_possible():
    data = people(8)
    data["t"] = np.arange(8) % 2
    told = replace_range((0, 20))
    found = cv.ate(data, told, protects="record", epsilon="0.001", noise=cv.SeededNoise(3))
    low, high = found.interval()
    assert np.isfinite([low, high]).all()
    assert high - low > 100


def replace_range(ends):
    return cv.Study(cv.Treatment("t", control=0), cv.Ratio("n", (0, 20), "d", ends), assignment=cv.Trial())


@pytest.mark.parametrize(
    "more",
    [
        {"method": "weighting", "protects": "outcome"},
        {"method": "difference_in_means", "protects": "outcome", "estimand": "ATT"},
        {"method": "trial", "protects": "record", "settings": cv.settings.Trial()},
    ],
)
def test_other_methods_are_refused(more):
    with pytest.raises(CounterveilError, match="CV-P673"):
        cv.ate(people(), RATIO, epsilon=1, **more)


def test_other_questions_are_refused():
    told = cv.Study(
        cv.Treatment("t", control=0),
        cv.Ratio("n", (0, 20), "d", (1, 20)),
        {"x": cv.Range(0, 1)},
    )
    for ask in (
        lambda: cv.groups({}, told, by={"x": (0.5,)}, protects="outcome", epsilon=1),
        lambda: cv.cate({}, told, protects="record", epsilon=1, delta=1e-6),
        lambda: cv.event_study({}, told, protects="outcome", epsilon=1),
    ):
        with pytest.raises(CounterveilError, match="CV-S022"):
            ask()
    found = cv.ate(people(), RATIO, protects="outcome", epsilon=1, noise=cv.SeededNoise(0))
    with pytest.raises(CounterveilError, match="CV-P502"):
        cv.pool([found, found])

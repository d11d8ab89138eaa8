"""Several outcomes in one request: numbers, simultaneous intervals, arms, measures, storage, refusals."""

import numpy as np
import pytest
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.results.arms import holm

RANGES = {"death": (0, 1), "days": (0, 90)}
TRIAL = cv.Study("t", outcome=cv.Outcomes(RANGES), assignment=cv.Trial())
NOISELESS = 10**7


def people(rows=1500, seed=1):
    generator = np.random.default_rng(seed)
    t, x = generator.integers(0, 2, rows), generator.uniform(-1, 1, rows)
    before = np.clip(30 + 15 * generator.normal(size=rows), 0, 90)
    return {
        "t": t,
        "x": x,
        "arm": np.array(["none", "low", "high"])[generator.integers(0, 3, rows)],
        "death": (generator.random(rows) < 0.2 + 0.1 * t).astype(int),
        "days": np.clip(before + 4 * t + 5 * x + 4 * generator.normal(size=rows), 0, 90),
        "days0": before,
    }


@pytest.fixture(scope="module")
def data():
    return people()


def ask(data, study=TRIAL, **given):
    return cv.outcomes(
        data, study, **({"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(3)} | given)
    )


@pytest.mark.parametrize("protects", ["outcome", "record"])
@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_without_noise_effects_are_those_of_the_arms_means(data, protects, measure):
    found = ask(data, protects=protects, epsilon=NOISELESS, measure=measure)
    assert [one.name for one in found.table] == list(RANGES)
    for one in found.table:
        y, t = data[one.name], data["t"] == 1
        means = y[t].mean(), y[~t].mean()
        wanted = means[0] - means[1] if measure == "difference" else means[0] / means[1]
        assert one.estimate == pytest.approx(wanted, rel=2e-3)
        if measure == "difference":
            error = np.sqrt(y[t].var(ddof=1) / t.sum() + y[~t].var(ddof=1) / (~t).sum())
            assert one.std_error.sampling == pytest.approx(error, rel=0.02)
    assert found.primary.name == "death"


def test_weights_balance_covariates_for_all_outcomes(data):
    study = cv.Study(
        "t", outcome=cv.Outcomes(RANGES), covariates={"x": cv.Range(-1, 1)}, assignment=cv.Trial()
    )
    found, plain = ask(data, study, epsilon=NOISELESS), ask(data, epsilon=NOISELESS)
    assert found.method.startswith("weighting")
    assert found.effect("days").estimate == pytest.approx(plain.effect("days").estimate, abs=1.5)
    assert "balance" in found.diagnostics
    ratio = ask(data, study, epsilon=NOISELESS, measure="lift")
    assert ratio.as_measure("difference").effect("days").estimate == pytest.approx(
        found.effect("days").estimate, abs=0.1
    )


def test_arms_are_compared_on_every_outcome(data):
    study = cv.Study(
        cv.Treatment("arm", arms=("none", "low", "high"), reference="none"),
        outcome=cv.Outcomes(RANGES),
        assignment=cv.Trial(),
    )
    found = ask(data, study, epsilon=NOISELESS, measure="lift")
    names = ["death: low", "death: high", "days: low", "days: high"]
    assert [one.name for one in found.table] == names
    low, none = (data["days"][data["arm"] == arm].mean() for arm in ("low", "none"))
    assert found.effect("days", "low").estimate == pytest.approx(low / none - 1, abs=1e-3)
    with pytest.raises(KeyError, match="the effects are"):
        found.effect("days")  # of which arm?
    assert [one.arm for one in found.released] == ["low", "high"] * 2
    records = ask(data, study, protects="record", epsilon=NOISELESS, measure="lift")
    assert records.effect("days", "low").estimate == pytest.approx(low / none - 1, abs=1e-3)


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_earlier_numbers_shorten_the_interval_and_leave_the_effect(protects):
    rows = people(8000)
    study = cv.Study("t", outcome=cv.Outcomes(RANGES, baseline={"days": "days0"}), assignment=cv.Trial())
    found, plain = (ask(rows, one, protects=protects, epsilon=4) for one in (study, TRIAL))
    assert "days" in found.details["slopes_on_earlier"]
    one, other = found.effect("days"), plain.effect("days")
    assert float(one.std_error) < 0.6 * float(other.std_error)
    assert abs(one.estimate - 4) < 3 * float(one.std_error)
    assert "slopes_on_earlier" not in ask(rows, study, protects=protects, measure="lift").details


def test_holm_steps():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


def study(**given):
    return study_of("t", **({"outcomes": RANGES, "randomised": True} | given))


@pytest.mark.parametrize(
    ("make", "given", "code"),
    [
        (lambda: study(outcomes={"a": (0, 1)}), {}, "CV-S140"),
        (lambda: study(outcomes={"a": (0, 1), "b": 3}), {}, "CV-S140"),
        (lambda: study(baseline={"hours": "h0"}), {}, "CV-S140"),
        (
            lambda: study(baseline={"days": "d0"}, randomised=False),
            {"method": "difference_in_means"},
            "CV-S143",
        ),
        (lambda: cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial()), {}, "CV-S142"),
        (study, {"importance": {"hours": 2}}, "CV-P688"),
        (study, {"importance": {"days": 0}}, "CV-P688"),
        (study, {"measure": "odds_ratio"}, "CV-P686"),
        (study, {"estimand": "ATO"}, "CV-P401"),
        (study, {"method": "weighting"}, "CV-S0"),
        (study, {"method": "doubly_robust"}, "CV-P016"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_data_are_read(make, given, code):
    with pytest.raises(CounterveilError, match=code):
        ask(None, make(), **given)


@pytest.mark.parametrize("question", [cv.ate, cv.arms, cv.cate, cv.groups])
def test_questions_about_one_outcome_refuse_several(question):
    given = {"by": {"x": (0,)}} if question is cv.groups else {}
    several = study(covariates={"x": cv.Range(-1, 1)})
    with pytest.raises(CounterveilError, match="CV-S141"):
        question(None, several, protects="outcome", epsilon=1, **given)


def test_study_files_hold_several_outcomes(tmp_path):
    declared = study(baseline={"days": "days0"}, covariates={"x": cv.Range(-1, 1)})
    path = tmp_path / "study.toml"
    path.write_text(declared.to_toml(), encoding="utf-8")
    assert cv.Study.from_toml(path) == declared
    assert declared.outcomes == ("death", "days", "days0")
    assert not [one for one in cv.drafting.check(people(50), path) if one.blocking]
    path.write_text(declared.to_toml().replace("[0, 90]", '"wide"'), encoding="utf-8")
    assert "CV-S140" in [one.code for one in cv.drafting.check(people(50), path)]


def test_few_events_count_as_for_one_outcome():
    data = {"t": np.arange(400) % 2, "a": (np.arange(400) < 9).astype(int), "b": np.arange(400) % 3 % 2}
    asked = {"protects": "outcome", "method": "difference_in_means", "noise": cv.SeededNoise(1)}
    one = cv.ate(data, cv.Study("t", cv.Outcome("a", (0, 1)), assignment=cv.Trial()), epsilon=1000, **asked)
    both = cv.Study("t", outcome={"a": (0, 1), "b": (0, 1)}, assignment=cv.Trial())
    found = cv.outcomes(data, both, epsilon=2000, **asked).table[0].known.uncertainty
    assert found.variance_cap == pytest.approx(one.uncertainty.variance_cap, rel=1e-12)

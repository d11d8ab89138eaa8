"""Effects as ratios, odds ratios, lifts and numbers needed to treat: numbers, refusals, renderings, storage."""

import json
from math import inf

import numpy as np
import pytest

import counterveil as cv
from counterveil.accounting import Ledger
from counterveil.errors import ParameterError, StudyError
from counterveil.results import MeasureResult, Result

TRIAL = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
OBSERVED = cv.Study("t", cv.Outcome("y", (0, 1)), covariates={"x": cv.Range(-4, 4)})
NOISELESS = 10**7


def people(rows=1000, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=rows)
    t = (generator.random(rows) < 1 / (1 + np.exp(-0.5 * x))).astype(int)
    y = (generator.random(rows) < 0.2 + 0.1 * t + 0.05 * (x > 0)).astype(int)
    return {"t": t, "y": y, "x": x}


def ask(data, study=TRIAL, **given):
    arguments = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(3)} | given
    return cv.ate(data, study, **arguments)


@pytest.fixture(scope="module")
def data():
    return people()


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_without_noise_measures_are_those_of_the_arms_means(data, protects):
    one, other = (float(data["y"][data["t"] == arm].mean()) for arm in (1, 0))
    found = ask(data, protects=protects, epsilon=NOISELESS, measure="ratio")
    wanted = {
        "ratio": one / other,
        "lift": one / other - 1,
        "odds_ratio": one / (1 - one) / (other / (1 - other)),
        "nnt": 1 / (one - other),
    }
    for measure, value in wanted.items():
        assert found.as_measure(measure).estimate == pytest.approx(value, rel=1e-4)
    assert found.as_measure("difference").estimate == pytest.approx(one - other, abs=1e-5)
    errors = [np.sqrt(m * (1 - m) / (data["t"] == arm).sum()) for m, arm in ((one, 1), (other, 0))]
    delta = np.hypot(errors[0], one / other * errors[1]) / other
    # What is not known of the arms' variances at record level is taken at its worst.
    assert found.std_error.sampling == pytest.approx(delta, rel=0.01 if protects == "outcome" else 0.2)
    low, high = found.interval()
    assert low < wanted["ratio"] < high
    assert np.log(high / low) == pytest.approx(2 * 1.96 * delta / wanted["ratio"], rel=0.25)


@pytest.mark.parametrize(
    ("method", "study", "settings"),
    [
        ("difference_in_means", TRIAL, cv.settings.DifferenceInMeans(variance_share=0)),
        ("weighting", OBSERVED, cv.settings.Weighting(variance_share=0)),
    ],
)
def test_everything_can_be_left_to_the_means(data, method, study, settings):
    found = ask(data, study, method=method, measure="ratio", settings=settings)
    assert found.details["variance_budget_share"] == 0
    for one in found.means.known:
        assert one.variance_noise is None
        assert one.variance == one.variance_cap


@pytest.mark.parametrize("method", ["weighting", "matching"])
@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_adjusted_means_have_the_difference_of_the_method(data, method, estimand):
    given = {"method": method, "estimand": estimand, "epsilon": NOISELESS}
    plain = ask(data, OBSERVED, **given)
    found = ask(data, OBSERVED, measure="ratio", **given)
    assert found.difference.estimate == pytest.approx(plain.estimate, abs=1e-5)
    assert found.difference.std_error.sampling == pytest.approx(plain.std_error.sampling, rel=0.02)
    treated, control = found.means.values
    assert 0.1 < control < treated < 0.5
    if estimand == "ATT":
        assert treated == pytest.approx(data["y"][data["t"] == 1].mean(), abs=0.02)


def test_means_over_strata_are_standardised(data):
    cut = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(-4, 4).cut(-1, 0, 1)})
    given = {"method": "stratified", "epsilon": NOISELESS}
    plain = ask(data, cut, **given)
    found = ask(data, cut, measure="ratio", **given)
    assert found.difference.estimate == pytest.approx(plain.estimate, abs=1e-5)
    assert found.difference.std_error.sampling == pytest.approx(plain.std_error.sampling, rel=1e-3)
    cells = np.searchsorted([-1, 0, 1], data["x"], side="right")
    for arm, value in zip((1, 0), found.means.values, strict=True):
        means = [data["y"][(cells == cell) & (data["t"] == arm)].mean() for cell in range(4)]
        assert value == pytest.approx(np.average(means, weights=np.bincount(cells)), abs=1e-4)


def test_ratios_of_private_records_are_answered_at_every_budget(data):
    declared = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(-4, 4)}, assignment=cv.Trial())
    for epsilon in (1, 100):
        found = ask(data, declared, protects="record", epsilon=epsilon, measure="ratio")
        assert found.details["chosen_by_auto"].startswith("trial")


def test_an_interval_of_numbers_needed_may_have_two_parts():
    found = ask(people(200), epsilon=0.2, measure="nnt")
    low, high = found.difference.interval()
    assert low < 0 < high
    assert found.interval() == (-inf, inf)
    assert found.to_dict()["interval"] == {
        "level": 0.95,
        "low": None,
        "high": None,
        "gap": pytest.approx([1 / low, 1 / high]),
    }
    assert "at most" in str(found)
    one, other = ("fewer", "more") if found.estimate < 0 else ("more", "fewer")
    ends = {
        "fewer": f"at least {-1 / low:.2f} for one fewer",
        "more": f"at least {1 / high:.2f} for one more",
    }
    assert f"{ends[one]} or {ends[other]}" in found.write_up()
    assert f"treated for one outcome {one}" in " ".join(str(found).split())
    assert found.tidy()[0]["conf_gap_low"] == pytest.approx(1 / low)
    assert "two parts" in " ".join(found.full().split())


def test_a_difference_of_released_means_is_a_result_too(data):
    found = ask(data, measure="ratio")
    plain = found.as_measure("difference")
    assert isinstance(plain, Result)
    assert (plain.estimate, plain.interval()) == (found.difference.estimate, found.difference.interval())
    assert "Guarantee:" in str(plain)
    assert "Not covered:" in str(plain)
    assert plain.as_measure("ratio") == found
    assert MeasureResult.from_dict(json.loads(json.dumps(plain.to_dict()))) == plain


def test_a_released_difference_has_a_number_needed_to_treat_and_no_ratio(data):
    found = ask(data, protects="record")
    needed = found.as_measure("nnt")
    assert needed == ask(data, protects="record", measure="nnt")
    assert needed.as_measure("difference") == found
    assert found.as_measure("difference") is found
    with pytest.raises(ParameterError, match="CV-P687"):
        found.as_measure("ratio")
    wide = ask(
        {"t": data["t"], "y": 2 * data["y"]},
        cv.Study(
            "t",
            cv.Outcome("y", (0, 2)),
            assignment=cv.Trial(),
        ),
        measure="ratio",
    )
    for measure in ("nnt", "odds_ratio"):
        with pytest.raises(ParameterError, match="CV-P686"):
            wide.as_measure(measure)
    with pytest.raises(ParameterError, match="CV-P686"):
        ask(
            {"t": data["t"], "y": data["y"]},
            cv.Study(
                "t",
                cv.Outcome("y", (0, 2)),
                assignment=cv.Trial(),
            ),
        ).as_measure("nnt")


@pytest.mark.parametrize(
    ("study", "given", "code"),
    [
        (TRIAL, {"measure": "hazard"}, "CV-P685"),
        (TRIAL, {"measure": None}, "CV-P685"),
        (cv.Study("t", cv.Outcome("y", (-1, 1)), assignment=cv.Trial()), {"measure": "ratio"}, "CV-P686"),
        (cv.Study("t", cv.Outcome("y", (0, 2)), assignment=cv.Trial()), {"measure": "odds_ratio"}, "CV-P686"),
        (cv.Study("t", cv.Outcome("y", (0, 2)), assignment=cv.Trial()), {"measure": "nnt"}, "CV-P686"),
        (OBSERVED, {"measure": "ratio", "protects": "record", "estimand": "ATT"}, "CV-P687"),
        (OBSERVED, {"measure": "lift", "protects": "record", "method": "sample_and_aggregate"}, "CV-P687"),
        (OBSERVED, {"measure": "ratio", "method": "stratified", "protects": "record"}, "CV-P687"),
        (
            cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial(), clusters="x"),
            {"measure": "ratio"},
            "CV-P687",
        ),
    ],
)
def test_what_has_no_measure_is_refused_before_data_are_read(study, given, code):
    with pytest.raises((ParameterError, StudyError), match=code):
        ask(None, study, **given)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_ratios_of_records_are_adjusted_by_the_released_models(delta):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 8000)
    t = rng.random(8000) < 0.45 + 0.3 * x
    y = rng.random(8000) < (0.3 + 0.2 * x) * np.where(t, 1.4, 1.0)
    rows = {"t": t.astype(int), "y": y.astype(float), "x": x}
    found = ask(rows, OBSERVED, protects="record", epsilon=2, delta=delta, measure="ratio")
    low, high = found.interval()
    assert low < 1.4 < high < low + 0.45
    assert found.details["mean_control"] == pytest.approx(0.3, abs=0.03)
    assert rows["y"][t].mean() / rows["y"][~t].mean() > high  # unadjusted
    low, high = found.as_measure("difference").interval()
    assert low < 0.12 < high


def test_the_released_sums_of_an_arm_of_records_move_its_mean_alone(monkeypatch):
    """The first is one of the reference's."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 2000)
    t = (rng.random(2000) < 0.5 + 0.3 * x).astype(int)
    data = {"t": t, "y": (rng.random(2000) < 0.2 + 0.1 * t + 0.1 * x).astype(float), "x": x}
    declared = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(-1, 1)},
        assignment=cv.Observational(),
    )
    keep = Ledger.release

    def means(score):
        def release(self, reservation, name, bounds, draw):
            found = keep(self, reservation, name, bounds, draw)
            return [score, *found[1:]] if name == "score" else found

        monkeypatch.setattr(Ledger, "release", release)
        with cv.open_ledger(":memory:", create=True) as ledger:
            ledger.register("people", cv.Budget(20, "1e-3"))
            words = {"protects": "record", "method": "doubly_robust", "measure": "ratio", "delta": "1e-6"}
            asked = cv.ate(
                data, declared, **words, epsilon=20, noise=cv.SeededNoise(1), ledger=ledger, dataset="people"
            )
        return asked.numbers.values

    (one, other), (more, less) = means("0/1"), means("1/1")  # hexadecimal
    assert more == one
    assert abs(less - other) > 1e-9

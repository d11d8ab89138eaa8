"""Event studies: results by period, the test of periods before, pictures, the command line, refusals."""

import numpy as np
import pandas as pd
import pytest
from tests.command_line import as_json
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.inference.noise_sums import NoiseSum

YEARS = [2000, 2001, 2002, 2003]


def panel(n=800, seed=0, lean=0.0):
    rng = np.random.default_rng(seed)
    t, own = np.arange(n) % 2, rng.normal(0, 1, n)
    parts = []
    for year in YEARS:
        y = own + 0.2 * (year - 2000) + t * (1.0 if year > 2001 else lean * (year - 2000))
        columns = {"id": np.arange(n), "year": year, "t": t, "y": y + rng.normal(0, 0.3, n)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts)


def study(**more):
    given = {"time": "year", "before": YEARS[:2], "after": YEARS[2:]} | more
    return study_of("t", "y", (-4, 6), control=0, person="id", **given)


def asked(data=None, told=None, **more):
    given = {"protects": "outcome", "epsilon": 8, "noise": cv.SeededNoise(2)} | more
    return cv.event_study(panel() if data is None else data, told or study(), **given)


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_effects_stand_in_the_order_of_time(protects):
    found = asked(protects=protects)
    assert [one.name for one in found.table] == [2000, 2002, 2003]
    assert (found.reference, found.place) == (2001, 1)
    assert [one.name for one in found.before] == [2000]
    assert [one.name for one in found.after] == [2002, 2003]
    for one, truth in zip(found.table, (0, 1, 1), strict=True):
        low, high = one.interval(simultaneous=True)
        assert low <= truth <= high
        assert low < one.interval()[0] < one.interval()[1] < high
    assert found.pre_trend_p_value == found.table[0].p_value


@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_what_is_public_says_which_changes_and_whose(protects):
    found = asked(told=study(where="year >= 2000"), protects=protects)
    (fact,) = (fact for fact in found.guarantee.public if "analysed" in fact)
    assert fact.startswith(
        "that the outcomes analysed are mean 'y' at 'year' 2000, 2002 and 2003, each minus"
    )
    assert fact.endswith("minus that of 2001")
    assert found.details["rows_where"] == "year >= 2000"


def test_effects_share_the_noise_of_the_reference():
    found = asked()
    own = found.periods[0].known.uncertainty.noise
    both = found.table[0].known.uncertainty.noise
    assert isinstance(both, NoiseSum)
    assert both.variance == pytest.approx(own.variance + found.reference_noise.variance)
    assert asked(told=study(change_range=(-3, 3))).reference_noise is None


def test_periods_before_show_trends_that_were_not_parallel():
    found = asked(panel(lean=1.5), epsilon=20)
    assert found.pre_trend_p_value < 0.01
    several = asked(panel(lean=1.5), study(before=YEARS[:3], after=YEARS[3:]), epsilon=20)
    assert several.pre_trend_p_value < 1e-6
    noisy = asked(told=study(before=YEARS[:3], after=YEARS[3:]), epsilon=0.5)
    assert 0.01 < noisy.pre_trend_p_value < 0.9
    assert noisy.pre_trend_p_value == pytest.approx(2 * min(one.p_value for one in noisy.before))
    one_before = study(before=[2001], after=[2002, 2003])
    assert asked(told=one_before).pre_trend_p_value is None


def test_columns_are_periods_too():
    rng = np.random.default_rng(0)
    n = 400
    data = {"t": np.arange(n) % 2} | {name: rng.uniform(0, 1, n) for name in ("a", "b", "y")}
    told = cv.Study(cv.Treatment("t", control=0), cv.Change("y", (0, 1), before=("a", "b")))
    found = asked(data, told, reference="a")
    assert [one.name for one in found.table] == ["b", "y"]
    assert found.reference == "a"


def test_people_without_every_period_are_left_out():
    rows = panel()
    rows = rows[~((rows["id"] < 10) & (rows["year"] == 2000))]
    found = asked(rows, study(missing={"y": cv.Drop()}))
    assert found.details["rows"] == 790
    assert found.details["rows_with_gaps"] == 10


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"reference": 2002}, "CV-P671"),
        ({"method": "doubly_robust"}, "CV-P016"),
        ({"method": "weighting", "protects": "record"}, "CV-P016"),
        ({"method": "weighting"}, "CV-S051"),
        ({"estimand": "ATO"}, "CV-P401"),
        ({"settings": cv.settings.Trial()}, "CV-P019"),
        ({"told": cv.Study("t", cv.Outcome("y", (0, 1)))}, "CV-S021"),
        ({"told": cv.Study("t", cv.Change("y", (0, 1), before="y0"))}, "CV-S021"),
    ],
)
def test_refusals(more, code):
    with pytest.raises(CounterveilError, match=code):
        asked(**more)


def test_predictions_are_refused():
    told = cv.Study("t", cv.Change("y", (0, 1), before=("a", "b")), {"x": cv.Range(0, 1)})
    settings = cv.settings.Weighting(prediction="x", residual_range=(-1, 1))
    with pytest.raises(CounterveilError, match="CV-P672"):
        asked({}, told, settings=settings)


def test_a_session_and_the_command_line_ask_too(tmp_path):
    rows = panel(100)
    with cv.Session(rows, study(), budget=cv.Budget(9)) as session:
        found = session.event_study(protects="outcome", epsilon=4, request_id="one")
        assert (
            session.event_study(protects="outcome", epsilon=4, request_id="one").interval()
            == found.interval()
        )
        assert session.account().remaining.epsilon == 5
    assert "all outcomes of one person" in str(found)
    rows.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "s.toml").write_text(study().to_toml())
    words = [
        "event-study",
        tmp_path / "d.csv",
        "--study",
        tmp_path / "s.toml",
        "--protects",
        "outcome",
        "--epsilon",
        4,
    ]
    assert as_json(*words, "--reference", 2000)["reference"] == 2000

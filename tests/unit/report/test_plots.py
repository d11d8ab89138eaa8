"""Pictures say what they show: titles, units, what bands mean, and SIMULATED where it is; and do without matplotlib."""

import sys

import numpy as np
import pytest
from tests.unit.questions.groups.group_data import AgeModel, rows, study

import counterveil as cv
from counterveil.errors import MissingExtraError, ParameterError
from counterveil.report import plots as plot_frame

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
# An attribute of the package only once it has been imported, which another test need not have done.
pytest.importorskip("matplotlib.pyplot")
WORDS = "SIMULATED, NOT A PRIVATE RELEASE"


def texts(ax):
    """Return everything that is written on the axes."""
    legend = ax.get_legend()
    found = [text.get_text() for text in ax.texts] + [
        ax.get_title(loc="left"),
        ax.get_xlabel(),
        ax.get_ylabel(),
    ]
    found += [text.get_text() for text in (legend.get_texts() if legend else [])]
    return " | ".join([*found, *(label.get_text() for label in ax.get_yticklabels())])


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def groups():
    declared = study(share=0.5)
    return cv.groups(rows(3000), declared, by="site", protects="record", epsilon=1, noise=cv.SeededNoise(1))


def test_a_forest_shows_every_group_with_both_intervals(groups, tmp_path):
    ax = cv.plots.forest(groups)
    said = texts(ax)
    for word in (WORDS, "site=south", "about", "hold for all at once", "epsilon 1", "in its units"):
        assert word in said
    ends = {(round(min(line.get_xdata()), 9), round(max(line.get_xdata()), 9)) for line in ax.lines}
    for one in groups.groups:
        for interval in (one.interval(), one.interval(simultaneous=True)):
            assert tuple(round(end, 9) for end in interval) in ends
    path = tmp_path / "forest.png"
    ax.figure.savefig(path)
    assert path.stat().st_size > 5000


def test_a_real_release_carries_no_stamp():
    result = cv.groups(rows(3000), study(share=0.5), by="site", protects="record", epsilon=1)
    assert "SIMULATED" not in texts(cv.plots.forest(result))


def test_a_policy_curve_starts_at_nothing_and_ends_at_everybody():
    asked = {"model": AgeModel(), "thresholds": (-0.3, 0.3), "cost": 0.5, "protects": "record", "epsilon": 1}
    curve = cv.targeting_curve(rows(3000), study(share=0.5), noise=cv.SeededNoise(1), **asked)
    ax = cv.plots.policy_curve(curve)
    line = ax.lines[0]
    assert line.get_xdata()[0] == line.get_ydata()[0] == 0
    assert line.get_xdata()[-1] == 1
    assert line.get_ydata()[-1] == pytest.approx(curve.gains[-1].estimate)
    said = texts(ax)
    for word in (WORDS, "at random", "whole curve", "after a cost of 0.5"):
        assert word in said


@pytest.fixture(scope="module")
def model():
    return cv.cate(
        rows(2000), study(share=0.5), protects="record", epsilon=2, delta=1e-6, noise=cv.SeededNoise(1)
    )


def test_an_effect_curve_holds_the_others_and_shows_its_band(model):
    ax = matplotlib.pyplot.subplots()[1]
    found = cv.plots.effect_curve(model, "age", at={"site": "south"}, points=31, ax=ax)
    assert found is ax
    said = texts(ax)
    for word in (WORDS, "site = south", "sex = m", "whole curve", "each point alone"):
        assert word in said
    x = ax.lines[0].get_xdata()
    people = {"age": x, "site": np.array(["south"] * 31, object), "sex": np.array(["m"] * 31, object)}
    assert ax.lines[0].get_ydata() == pytest.approx(model.effect(people))


def test_curves_are_refused_along_labels_and_strangers(model):
    for feature, at in (("site", {}), ("height", {}), ("age", {"height": 3})):
        with pytest.raises(ParameterError, match="CV-P023"):
            cv.plots.effect_curve(model, feature, at=at)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="CV-E040"):
        plot_frame.pyplot()


def test_a_love_plot_shows_every_covariate_before_and_after(groups):
    result = cv.ate(rows(600), study(share=0.5), protects="outcome", epsilon=1, method="weighting")
    ax = cv.plots.balance(result)
    table = result.diagnostics["balance"]
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == sorted(r["covariate"] for r in table)
    after = sorted(abs(row["difference_after"]) for row in table)
    assert sorted(ax.lines[1].get_xdata()) == pytest.approx(after)
    with pytest.raises(ParameterError, match="CV-P022"):
        cv.plots.balance(cv.ate(rows(600), study(share=0.5), protects="record", epsilon=1))


def test_overlap_shows_the_scores_of_both_arms():
    result = cv.ate(rows(600), study(share=0.5), protects="outcome", epsilon=1, method="weighting")
    ax = cv.plots.overlap(result)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(height for height in heights if height > 0) == pytest.approx(1.0)
    assert sum(height for height in heights if height < 0) == pytest.approx(-1.0)
    assert "propensity score" in texts(ax)
    with pytest.raises(ParameterError, match="CV-P026"):
        cv.plots.overlap(cv.ate(rows(600), study(share=0.5), protects="record", epsilon=1))

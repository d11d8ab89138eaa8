"""Beside the interval stands a second one that allows for undetected curvature, where the answer says there may be."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.privacy.caveats import Curvature
from counterveil.questions.pooled.pool import check_document
from counterveil.results import Result

WORDS = "allowing for undetected curvature"


def frame(rows, seed):
    """Return people whose treatment and outcome have the same kink; the effect is one."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 3))
    index = x @ np.array([1.0, 0.7, 0.5]) / 0.76
    bend = np.abs(index) + 0.3 * index
    t = (rng.random(rows) < 1 / (1 + np.exp(-1.2 * (bend - bend.mean())))).astype(int)
    y = np.clip(bend + t + 0.7 * rng.normal(size=rows), -4, 8)
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "t": t, "y": y}


STUDY = cv.Study("t", "y", (-4, 8), {name: cv.Range(-1, 1) for name in "abc"}, control=0, randomised=False)


def ask(epsilon, study=STUDY, seed=1, bends=0.5, **more):
    given = {"protects": "record", "delta": 1e-6, "method": "doubly_robust"} | more
    if given["method"] == "doubly_robust":
        given["settings"] = cv.settings.DoublyRobust(bends=bends)
    return cv.ate(frame(2000, seed), study, epsilon=epsilon, noise=cv.SeededNoise(seed), **given)


@pytest.fixture(scope="module")
def doubted():
    return ask(1)


@pytest.fixture(scope="module")
def followed():
    return ask(40)


def middle(ends):
    return (ends[0] + ends[1]) / 2


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_contains_the_first_and_has_its_centre(delta):
    found = replace(ask(4, delta=delta), limits=None)
    for level in (0.5, 0.95, 0.999):
        first, second = found.interval(level), found.curvature_interval(level)
        assert second[0] < first[0] < first[1] < second[1]
        assert middle(second) == pytest.approx(middle(first)) == pytest.approx(found.estimate)


def test_it_is_the_first_interval_of_a_larger_allowance(doubted):
    # `bends=2` allows in the first interval for what the second one always does.
    large = ask(1, bends=2)
    assert large.interval() == pytest.approx(doubted.curvature_interval())
    assert large.curvature_interval() == pytest.approx(large.interval())
    assert ask(1, bends=0).curvature_interval() == pytest.approx(doubted.curvature_interval())


def test_it_grows_with_the_allowance(doubted):
    widths = []
    for times in (1.0, 2.0, 4.0):
        bends = doubted.bends[0], times * doubted.bends[0]
        low, high = replace(doubted, bends=bends, limits=None).curvature_interval()
        widths.append(high - low)
    low, high = doubted.uncut_interval()
    assert widths[0] == pytest.approx(high - low)
    assert widths[0] < widths[1] < widths[2]


def test_it_is_cut_to_what_an_effect_can_be(doubted):
    low, high = replace(doubted, limits=(0.5, 1.0)).curvature_interval(0.999)
    assert (low, high) == (0.5, 1.0)


def test_it_is_shown_where_curvature_would_go_undetected(doubted):
    assert doubted.assumes.curvature is Curvature.UNDETECTED
    low, high = doubted.curvature_interval()
    row, facts = doubted.tidy()[0], doubted.to_dict()
    assert (row["conf_low_curvature"], row["conf_high_curvature"]) == (low, high)
    assert facts["curvature_interval"] == {"level": 0.95, "low": low, "high": high}
    texts = [doubted.summary(), doubted.full(), doubted.write_up(), doubted.to_latex(), doubted._repr_html_()]
    for text in texts:
        assert " ".join(text.split()).count(WORDS) == 1
    again = type(doubted).from_dict(facts)
    assert again == doubted
    assert again.to_dict() == facts


def test_a_page_shows_it(doubted, tmp_path):
    page = doubted.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<p>{WORDS.capitalize()}, the 95 % interval is" in page


def test_it_is_a_number_only_where_curvature_was_followed(followed):
    assert followed.assumes.curvature is Curvature.FOLLOWED
    first, second = followed.interval(), followed.curvature_interval()
    assert second[0] < first[0] < first[1] < second[1]
    assert "curvature_interval" not in followed.to_dict()
    assert "conf_low_curvature" not in followed.tidy()[0]
    for text in (followed.summary(), followed.write_up(), followed.to_latex()):
        assert WORDS not in " ".join(text.split())


@pytest.mark.parametrize(("times", "shown"), [(1.15, False), (1.35, True)])
def test_it_is_shown_where_it_is_a_quarter_longer(followed, times, shown):
    allowed = followed.bends[0]
    low, high = followed.uncut_interval()
    # Noise is nearly normal here: lengths go with standard deviations.
    variance = ((high - low) / 2 / 1.96) ** 2
    larger = (allowed**2 + (times**2 - 1) * variance) ** 0.5
    answer = replace(followed, bends=(allowed, larger))
    ends = answer.curvature_interval()
    assert (ends[1] - ends[0]) / (high - low) == pytest.approx(times, rel=0.04)
    assert ("curvature_interval" in answer.to_dict()) == shown


@pytest.mark.parametrize(
    "more",
    [
        {"study": replace(STUDY, randomised=True)},
        {"protects": "outcome", "method": "weighting", "delta": 0},
        {"estimand": "ATO"},
    ],
    ids=["trial", "outcome", "ATO"],
)
def test_others_have_none(more):
    found = ask(**{"epsilon": 4} | more)
    assert found.curvature_interval() is None
    assert "curvature_interval" not in found.to_dict()
    assert found.bends is None
    assert WORDS not in " ".join(found.full().split())


def test_levels_are_checked(doubted):
    with pytest.raises(ParameterError, match="CV-P015"):
        doubted.curvature_interval(95)


def test_a_site_may_send_it(doubted):
    facts = doubted.to_dict()
    check_document(facts)
    # What is shown is computed again, whatever stands in the file.
    assert Result.from_dict(facts | {"curvature_interval": "wide"}) == doubted


def test_it_covers_where_the_first_does_not():
    answers = [ask(1, seed=seed) for seed in range(24)]
    first, second = (
        sum(low <= 1 <= high for low, high in ends)
        for ends in (
            [found.interval() for found in answers],
            [found.curvature_interval() for found in answers],
        )
    )
    assert first < 20
    assert second >= 22

"""Effects of groups: both units of protection, every form, intervals, renderings, refusals, the ledger."""

import numpy as np
import pytest
from tests.unit.questions.groups.group_data import EFFECTS, rows, study

import counterveil as cv
from counterveil.errors import ParameterError, StudyError

NAMES = [f"site={name}" for name in EFFECTS]


def ask(data, declared, by="site", **arguments):
    given = {"protects": "record", "epsilon": 1, "noise": cv.SeededNoise(5)} | arguments
    return cv.groups(data, declared, by=by, **given)


def off(result):
    """Return the error of every group's effect in its standard errors."""
    truth = dict(zip(NAMES, EFFECTS.values(), strict=True))
    return [abs(one.estimate - truth[one.name]) / float(one.std_error) for one in result.groups]


@pytest.mark.parametrize("method", ["arms", "adjusted"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_every_form_finds_the_effects_of_a_trial(method, delta):
    result = ask(rows(30_000), study(share=0.5), method=method, epsilon=2, delta=delta)
    assert [one.name for one in result.groups] == NAMES
    assert max(off(result)) < 3.5
    assert all(float(one.std_error) < 0.25 for one in result.groups)
    for one, part in zip(result.groups, (0.5, 0.3, 0.2), strict=True):
        assert abs(one.size - part * 30_000) < 4 * one.size_sd + 300


@pytest.mark.parametrize("method", ["difference_in_means", "weighting", "matching"])
def test_outcomes_protected_every_linear_method_finds_the_effects(method):
    result = ask(rows(3000), study(), protects="outcome", method=method)
    assert max(off(result)) < 3.5
    assert [one.size for one in result.groups] == [
        sum(site == name for site in rows(3000)["site"]) for name in EFFECTS
    ]
    assert all(one.size_sd == 0 for one in result.groups)


def test_every_group_gets_the_whole_budget():
    """A group's noise is that of a study of this group alone: groups of public rows cost nothing beside others."""
    data, declared = rows(900), study()
    result = ask(data, declared, protects="outcome", method="difference_in_means")
    own = [place for place, site in enumerate(data["site"]) if site == "north"]
    alone = cv.ate(
        {name: [column[place] for place in own] for name, column in data.items()},
        declared,
        protects="outcome",
        epsilon=1,
        method="difference_in_means",
        noise=cv.SeededNoise(1),
    )
    assert result.effect("site=north").std_error.noise == pytest.approx(alone.std_error.noise)


def test_groups_without_two_people_in_an_arm_are_left_out_where_that_is_public():
    data = rows(600)
    data["site"] = ["north"] * 599 + ["south"]
    result = ask(data, study(), protects="outcome")
    assert [one.name for one in result.groups] == ["site=north"]
    assert result.left_out == ("site=south", "site=east")
    assert "too few people" in str(result)


def test_at_record_level_an_empty_group_is_answered_like_any_other():
    data = rows(6000)
    data["site"] = ["north"] * 6000
    result = ask(data, study(share=0.5))
    low, high = result.effect("site=east").interval()
    assert high - low > 10
    assert [one.name for one in result.groups] == NAMES


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"by": ()}, "CV-P541"),
        ({"by": 3}, "CV-P541"),
        ({"by": "nothing"}, "CV-S072"),
        ({"by": "age"}, "CV-S071"),
        ({"by": {"age": [30 + k / 100 for k in range(2500)]}}, "CV-P542"),
        ({"method": "weighting"}, "CV-P016"),
        ({"method": "scores"}, "CV-P016"),
        ({"settings": cv.settings.Matching()}, "CV-P019"),
        ({"protects": "outcome", "settings": cv.settings.Groups()}, "CV-P019"),
    ],
)
def test_refusals_come_before_the_data(arguments, code):
    with pytest.raises((ParameterError, StudyError), match=code):
        ask(None, study(share=0.5), **arguments)


def test_unaffordable_adjustment_is_refused_before_anything_is_spent():
    with cv.Session(rows(200), study(randomised=False), budget=cv.Budget(1)) as session:
        with pytest.raises(ParameterError, match="CV-P544"):
            session.groups(by="site", protects="record", epsilon="1/10")
        assert session.remaining().epsilon == 1


def test_where_no_group_can_be_compared_it_is_said_before_anything_is_spent():
    data = rows(12)
    data["t"] = [0, 1] * 6
    data["age"] = np.repeat(np.linspace(20, 80, 6), 2)
    with cv.Session(data, study(), budget=cv.Budget(1)) as session, pytest.raises(StudyError) as refused:
        session.groups(by={"age": (26, 38, 50, 62, 74)}, protects="outcome", epsilon=1)
    assert refused.value.code == "CV-S110"

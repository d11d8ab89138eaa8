"""Bounds that follow from a method's plan: noise of the least budget, parts of a budget, and every unit's table."""

from dataclasses import replace
from fractions import Fraction

import pytest

from counterveil.bounded_reading import UnreadableError
from counterveil.estimators.site_bounds import methods
from counterveil.estimators.site_bounds.noise import BudgetParts, PlainNoise, noise_like
from counterveil.estimators.site_bounds.site_question import ReleasedDifference, SiteQuestion
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Budget, Estimand, Unit
from counterveil.results.effect import noise_from_dict
from counterveil.results.site_bounds import first_broken

ASKED = SiteQuestion(
    unit=Unit.OUTCOME,
    method="difference_in_means",
    estimand=Estimand.ATE,
    budget=Budget(1),
    mechanisms=("staircase",),
    rows=200,
)


def noise(epsilon="1/2", sensitivity="1/100", mechanism="staircase"):
    return noise_from_dict({"mechanism": mechanism, "sensitivity": sensitivity, "epsilon": epsilon})


def test_parts_of_a_budget_add_up_to_no_more_than_all_of_it():
    fair = BudgetParts.of(ASKED, [noise(), noise()])
    assert fair.remaining == 0
    assert first_broken(fair.bounds(ASKED)) is None
    assert first_broken(fair.bounds(ASKED, spare=Fraction(1, 50))) is not None
    too_much = BudgetParts.of(ASKED, [noise(), noise("51/100")])
    assert first_broken(too_much.bounds(ASKED)).figure == "remaining budget"
    too_little = BudgetParts.of(ASKED, [noise(), noise("1/100")])
    assert first_broken(too_little.bounds(ASKED)).figure == "smallest part of the budget"
    divided = replace(ASKED, settings={"variance_share": 0.01})
    assert first_broken(too_little.bounds(divided)) is None


def test_noises_are_drawn_by_one_mechanism_that_was_asked_for():
    mixed = BudgetParts.of(ASKED, [noise(), noise(mechanism="laplace")])
    assert first_broken(mixed.bounds(ASKED)).figure == "number of mechanisms"
    other = BudgetParts.of(ASKED, [noise(mechanism="laplace")])
    assert first_broken(other.bounds(ASKED)).figure == "mechanism of a noise"
    assert first_broken(other.bounds(replace(ASKED, mechanisms=("laplace",)))) is None


def test_a_noise_of_another_kind_has_no_figures():
    assert PlainNoise.of(noise()) == PlainNoise("staircase", Fraction(1, 100), Fraction(1, 2))
    for other in (
        None,
        noise_from_dict({"mechanism": "box", "sensitivity": "1", "epsilon": "1", "dimension": "2"}),
    ):
        with pytest.raises(UnreadableError):
            PlainNoise.of(other)


def test_noise_like_another_has_its_mechanism():
    like = noise_like(noise(), sensitivity=Fraction(1, 7), paid=Fraction(1, 9))
    assert PlainNoise.of(like) == PlainNoise("staircase", Fraction(1, 7), Fraction(1, 9))


@pytest.mark.parametrize("unit", Unit)
def test_the_least_noise_of_more_rows_or_more_budget_is_less(unit):
    asked = replace(ASKED, unit=unit)
    least = methods.least_noise(asked)
    assert 0 < methods.least_noise(replace(asked, rows=400)) == pytest.approx(least / 4)
    assert methods.least_noise(replace(asked, budget=Budget(2))) < least


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize(
    "method", ["difference_in_means", "weighting", "trial", "stratified", "auto", "unknown"]
)
def test_no_unit_and_method_believes_an_estimate_without_noise(unit, method):
    certain = Uncertainty(None, 0.0, 0.0)
    found = ReleasedDifference(
        estimate=0.5,
        error=certain,
        details={"treated": 100, "control": 100, "share_treated": 0.5},
        level=0.95,
        conditional=False,
        independent_variance=True,
    )
    assert not believed(replace(ASKED, unit=unit, method=method), found)
    assert believed(ASKED, replace(found, error=PLAIN))


# What an honest difference in means of two arms of 100 says of outcomes in [0, 1].
PLAIN = Uncertainty(
    noise(sensitivity="1/100"),
    variance=0.004,
    variance_cap=2 * (2500 / (100 * 99)) / 100 + 2 / 100**2,
    variance_noise=noise(sensitivity="1/10000"),
)


def believed(asked, found):
    """Return whether all bounds hold; noise that has no figures is not believed."""
    try:
        broken = first_broken(methods.difference(asked, found))
    except UnreadableError:
        return False
    return broken is None

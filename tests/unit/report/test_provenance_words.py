"""Every estimator, release and premise that an answer may name has words of its own."""

from typing import get_args

import pytest

from counterveil.privacy import provenance
from counterveil.privacy.provenance import (
    Bounded,
    Clustered,
    Estimator,
    LessEarlierNumbers,
    Noise,
    Quantity,
    WhichGroups,
)
from counterveil.report.methods import estimator_words
from counterveil.report.releases import bounded_words, premise_words, quantity_words, release_words

# Those that are said of an arm, a period or so many outcomes.
OF_SOMEBODY = {
    *(Quantity.MEAN_OF, Quantity.VARIANCE_OF, Quantity.ITS_VARIANCE_OF, Quantity.MEAN_OVER_STRATA_OF),
    *(Quantity.ITS_VARIANCE_OVER_STRATA_OF, Quantity.COMPARISON_AT, Quantity.VARIANCE_OF_CHANGE_AT),
    *(Quantity.CONTRAST_AT, Quantity.CENTRES_OF_OUTCOMES, Quantity.CONTRASTS_OF_OUTCOMES),
    Quantity.MOMENTS_OF_OUTCOMES,
}
# One of every class whose fields make the words.
ESTIMATORS = {
    provenance.WithinSites(3): "difference in means within 3 sites",
    provenance.WithinSites(1): "difference in means",
    LessEarlierNumbers(Estimator.MEANS_OF_ALL_ARMS): "means of all arms, less earlier numbers",
    Clustered(Estimator.COMPARISON_OF_MEANS, "school", 40): (
        "comparison of means; standard error clustered by school, 40 clusters"
    ),
    provenance.ClusteredGroups(provenance.InGroups("difference_in_means"), "school"): (
        "difference in means in every group; standard errors clustered by school"
    ),
    provenance.InGroups("weighting"): "weighting in every group",
    provenance.InGroups(
        "weighting", WhichGroups.TREATED_AND_OTHERS
    ): "weighting of those treated and of the others",
    provenance.InGroups("weighting", WhichGroups.PARTS_OF_RANKING): "weighting in every part of the ranking",
    provenance.BalancedArms(Estimator.KAPLAN_MEIER): "Kaplan-Meier with balancing weights in each arm",
    provenance.BalancedArms(Estimator.QUANTILES): "quantiles with balancing weights in each arm",
    provenance.LimitedStrata(4.0): "exact matching on strata, weights up to 4",
    provenance.StandardisedSurvival("sex"): "Kaplan-Meier by stratum, standardised: sex",
    provenance.StandardisedSurvival("sex x age", 3): (
        "Kaplan-Meier by stratum, standardised: sex x age, merged into 3"
    ),
    provenance.FoldAverage("ols"): "average over folds of ols",
    provenance.FunctionAverage(Estimator.T_LEARNER): "average of a function by T-learner",
    provenance.MeanScore(doubly_robust=True, ranked=False): "mean doubly robust score of those treated",
    provenance.MeanScore(doubly_robust=False, ranked=True): "mean score of the people ranked highest",
}
BOUNDS = {
    provenance.Sensitivity(2.0): "sensitivity 2",
    provenance.CentringSensitivity(0.5, several=False): "sensitivity 0.5; centres the contrast",
    provenance.CentringSensitivity(0.5, several=True): "sensitivity 0.5; they centre the contrast",
    provenance.LengthSensitivity(1.25): "l2 sensitivity 1.25",
    provenance.ScaledSensitivity(3.0, length=True): "l2 sensitivity 3, scaled",
    provenance.ScaledSensitivity(3.0, length=False): "sensitivity 3, scaled",
    provenance.CountChange(2.0, heavy=True): "sum of changes 2",
    provenance.CountChange(2**0.5, heavy=False): "length of the change 1.414",
    provenance.ArmTotalChange(2.0, length=True): "changes of length 2",
    provenance.ArmTotalChange(2.0, length=False): "changes of sum 2",
    provenance.RangePart(0.01): "each moves by at most 0.01 of its range",
    provenance.RangePart(0.01, squared=True): "each moves by at most 0.01 of its squared range",
    provenance.SquaredLength(9.0): "squared length at most 9",
    provenance.ResidualClip(0.5): "residuals in +-0.5 half ranges",
    provenance.DeclaredBound(1.5): "bound 1.5",
    provenance.BudgetPart(0.25): "0.25 of the budget",
    provenance.BudgetPart(0.25, Noise.LAPLACE): "0.25 of the budget; Laplace noise",
    provenance.ScoreBudgetPart(0.25, "cells"): "25% of the budget; cells of pure noise",
    provenance.ScoreBudgetPart(0.25, None): "25% of the budget; Gaussian noise",
    provenance.ShapedNoise(Noise.BALL, several=False): "l2-ball noise in the shape of its predictions",
    provenance.ShapedNoise(Noise.BALL, several=True): "l2-ball noise in the shape of their predictions",
    provenance.TwoSearches(20): "two searches of 20 noisy counts each",
}


def classes(alias, *others):
    """Return the dataclasses of a union, which are neither enumerations nor texts."""
    return set(get_args(alias)) - {str, *others}


@pytest.mark.parametrize(
    ("words", "members"),
    [
        (estimator_words, set(Estimator)),
        (quantity_words, set(Quantity) - OF_SOMEBODY),
        (lambda quantity: quantity_words(provenance.QuantityOf(quantity, 3)), OF_SOMEBODY),
        (bounded_words, {*Noise, *Bounded}),
    ],
)
def test_members_have_words_of_their_own(words, members):
    said = {words(member) for member in members}
    assert len(said) == len(members)
    assert not said & {str(member) for member in members} - {"effect", "effects"}


@pytest.mark.parametrize(("estimator", "words"), ESTIMATORS.items())
def test_an_estimator_is_called_by_its_fields(estimator, words):
    assert estimator_words(estimator) == words


@pytest.mark.parametrize(("bound", "words"), BOUNDS.items())
def test_a_bound_is_said_by_its_fields(bound, words):
    assert bounded_words(bound) == words


def test_every_class_is_tried():
    assert set(map(type, ESTIMATORS)) == classes(provenance.AnyEstimator, Estimator)
    assert set(map(type, BOUNDS)) == classes(provenance.AnyBound, Noise, Bounded)


def test_releases_are_said_in_pairs():
    values = provenance.OutcomeNumbers(3, "the arms")
    variances = provenance.OutcomeNumbers(3, "the arms", variances=True)
    assert release_words(
        [(values, Bounded.OWN_BOUND_EACH), (variances, "laplace"), ("counts", Noise.BALL)]
    ) == (
        ("3 values of the arms", "each moves by its own bound"),
        ("3 variances of the arms", "laplace"),
        ("counts", "l2-ball noise"),
    )


def test_what_a_guarantee_rests_on_is_said():
    assert "the column 'risk' is taken as public" in premise_words(provenance.PublicPrediction("risk"))
    assert premise_words(provenance.Premise.LEARNER_SEES_ROWS_ALONE).startswith(
        "the guarantee rests on the learner"
    )
    assert premise_words("the model was released before") == "the model was released before"

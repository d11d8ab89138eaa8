"""What answers call their estimators: the words of `privacy.provenance`, written here alone."""

from __future__ import annotations

from counterveil.privacy.provenance import (
    AnyEstimator,
    BalancedArms,
    Clustered,
    ClusteredGroups,
    Estimator,
    FoldAverage,
    FunctionAverage,
    InGroups,
    LessEarlierNumbers,
    LimitedStrata,
    MeanScore,
    StandardisedSurvival,
    WhichGroups,
    WithinSites,
)

_NAMES = {
    Estimator.DIFFERENCE_IN_MEANS: "difference in means",
    Estimator.CENTRED_DIFFERENCE: "difference in means (centred contrast)",
    Estimator.CENTRED_MEANS: "means of both arms (centred contrast and mean of everyone)",
    Estimator.COMPARISON_OF_MEANS: "comparison of means",
    Estimator.UNADJUSTED_CONTRAST: "unadjusted contrast",
    Estimator.BOUNDED_CONFOUNDING: "unadjusted contrast with a declared bound on confounding",
    Estimator.RATIOS_OF_SUMS: "difference of ratios of sums",
    Estimator.MEANS_OF_BOTH_ARMS: "means of both arms",
    Estimator.MEANS_OF_THE_ARMS: "means of the arms",
    Estimator.MEANS_OF_ALL_ARMS: "means of all arms",
    Estimator.MEANS_IN_GROUPS: "difference of the arms' means in every group",
    Estimator.WEIGHTING: "weighting for balance",
    Estimator.KNOWN_SCORES: "weighting by inverse known scores",
    Estimator.WEIGHTING_OF_ARMS: "balancing weights in each arm",
    Estimator.MATCHING: "matching on the propensity score",
    Estimator.MULTINOMIAL_MATCHING: "matching on the multinomial score",
    Estimator.STRATIFIED: "exact matching on strata",
    Estimator.MEANS_OVER_STRATA: "means of both arms over strata",
    Estimator.ADJUSTED_CONTRAST: "contrast adjusted for covariates",
    Estimator.UNEXPLAINED_CONTRAST: "contrast; covariates explain too little",
    Estimator.DOUBLY_ROBUST_BY_ARM: "doubly robust with moments by arm",
    Estimator.DOUBLY_ROBUST_ON_PUBLIC: "doubly robust score with public covariates",
    Estimator.SCORES_IN_GROUPS: "mean doubly robust score of every group",
    Estimator.T_LEARNER: "T-learner",
    Estimator.R_LEARNER: "R-learner",
    Estimator.SERIES: "series regression (R-learner), noise shaped to its predictions",
    Estimator.SERIES_OF_SCORES: "series regression of doubly robust scores",
    Estimator.KAPLAN_MEIER: "Kaplan-Meier",
    Estimator.QUANTILES: "quantiles of each arm",
    Estimator.QUANTILES_BY_PROPENSITY: "quantiles with inverse propensity weights",
}
_GROUPS = {
    WhichGroups.EVERY_GROUP: "in every group",
    WhichGroups.TREATED_AND_OTHERS: "of those treated and of the others",
    WhichGroups.PARTS_OF_RANKING: "in every part of the ranking",
}


def estimator_words(estimator: AnyEstimator) -> str:
    """Return what an answer calls its estimator."""
    match estimator:
        case Estimator():
            return _NAMES[estimator]
        case WithinSites(sites):
            plain = _NAMES[Estimator.DIFFERENCE_IN_MEANS]
            return f"{plain} within {sites} sites" if sites > 1 else plain
        case LessEarlierNumbers(of):
            return f"{estimator_words(of)}, less earlier numbers"
        case Clustered(of, column, clusters):
            return f"{estimator_words(of)}; standard error clustered by {column}, {clusters} clusters"
        case ClusteredGroups(of, column):
            return f"{estimator_words(of)}; standard errors clustered by {column}"
        case InGroups(method, groups):
            return f"{method.replace('_', ' ')} {_GROUPS[groups]}"
        case BalancedArms(Estimator.QUANTILES):
            return "quantiles with balancing weights in each arm"
        case BalancedArms(of):
            return f"{estimator_words(of)} with balancing weights in each arm"
        case LimitedStrata(limit):
            return f"{_NAMES[Estimator.STRATIFIED]}, weights up to {limit:g}"
        case StandardisedSurvival(strata, merged):
            into = "" if merged is None else f", merged into {merged}"
            return f"{_NAMES[Estimator.KAPLAN_MEIER]} by stratum, standardised: {strata}{into}"
        case FoldAverage(learner):
            return f"average over folds of {learner}"
        case FunctionAverage(of):
            return f"average of a function by {estimator_words(of)}"
        case MeanScore(doubly_robust, ranked):
            score = "doubly robust score" if doubly_robust else "score"
            return f"mean {score} of {'the people ranked highest' if ranked else 'those treated'}"
    return estimator

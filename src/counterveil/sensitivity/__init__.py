"""How far one unit can move a statistic: one statistic a file, its proof beside it."""

from counterveil.sensitivity.arm_mean import ArmMean
from counterveil.sensitivity.arm_sums import ArmSums
from counterveil.sensitivity.bounded_strata import BoundedStrata
from counterveil.sensitivity.capacity_matching import CapacityMatching
from counterveil.sensitivity.centred_contrast import CentredContrast, Totals
from counterveil.sensitivity.difference_in_means import DifferenceInMeans
from counterveil.sensitivity.linear_estimate import LinearEstimate
from counterveil.sensitivity.penalised_fit import PenalisedFit
from counterveil.sensitivity.record_matching import MatchedSum, ScoreRange
from counterveil.sensitivity.score_strata import ClippedDirection, ScoreSpread, StratifiedContrast
from counterveil.sensitivity.strata_variance import (
    local_variance_change,
    pooled_change,
    smooth_variance_change,
)
from counterveil.sensitivity.stratified_effect import (
    global_change,
    local_change,
    smooth_change,
    smooth_weight,
)
from counterveil.sensitivity.stratum_counts import StratumCounts
from counterveil.sensitivity.unmatched import local_unmatched_change, smooth_unmatched_change

__all__ = [
    "ArmMean",
    "ArmSums",
    "BoundedStrata",
    "CapacityMatching",
    "CentredContrast",
    "ClippedDirection",
    "DifferenceInMeans",
    "LinearEstimate",
    "MatchedSum",
    "PenalisedFit",
    "ScoreRange",
    "ScoreSpread",
    "StratifiedContrast",
    "StratumCounts",
    "Totals",
    "global_change",
    "local_change",
    "local_unmatched_change",
    "local_variance_change",
    "pooled_change",
    "smooth_change",
    "smooth_unmatched_change",
    "smooth_variance_change",
    "smooth_weight",
]

"""How far one unit can move a statistic: one statistic a file, its proof beside it."""

from counterveil.sensitivity.arm_mean import ArmMean
from counterveil.sensitivity.arm_sums import ArmSums
from counterveil.sensitivity.capacity_matching import CapacityMatching
from counterveil.sensitivity.centred_contrast import CentredContrast, Totals
from counterveil.sensitivity.difference_in_means import DifferenceInMeans
from counterveil.sensitivity.linear_estimate import LinearEstimate
from counterveil.sensitivity.penalised_fit import PenalisedFit
from counterveil.sensitivity.record_matching import MatchedSum, ScoreRange
from counterveil.sensitivity.score_strata import ClippedDirection, ScoreSpread, StratifiedContrast

__all__ = [
    "ArmMean",
    "ArmSums",
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
    "Totals",
]

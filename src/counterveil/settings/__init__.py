"""Settings of methods and questions, for `settings=`: `cv.settings.Matching(neighbours=5)`."""

from counterveil.settings.effects import Bins, Cate, FoldQueries, RandomFeatures
from counterveil.settings.folds import Folds, ModelPair
from counterveil.settings.outcome_level import Arms, Matching, Weighting
from counterveil.settings.pooling import WeightLimits
from counterveil.settings.record_level import (
    IPW,
    Auto,
    CrossFit,
    DoublyRobust,
    Groups,
    RecordMatching,
    ScoreStrata,
    Trial,
)
from counterveil.settings.strata import Stratified

__all__ = [
    "IPW",
    "Arms",
    "Auto",
    "Bins",
    "Cate",
    "CrossFit",
    "DoublyRobust",
    "FoldQueries",
    "Folds",
    "Groups",
    "Matching",
    "ModelPair",
    "RandomFeatures",
    "RecordMatching",
    "ScoreStrata",
    "Stratified",
    "Trial",
    "WeightLimits",
    "Weighting",
]

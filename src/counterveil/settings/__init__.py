"""Settings of methods and questions, for `settings=`: `cv.settings.Matching(neighbours=5)`."""

from counterveil.settings.effects import (
    Bins,
    Cate,
    FoldQueries,
    RandomFeatures,
    Series,
    Survival,
    WeightLimits,
)
from counterveil.settings.outcome_level import Arms, DifferenceInMeans, Matching, Stratified, Weighting
from counterveil.settings.record_level import (
    IPW,
    Auto,
    CrossFit,
    DoublyRobust,
    Folds,
    Groups,
    ModelPair,
    RecordMatching,
    ScoreStrata,
    Trial,
)

__all__ = [
    "IPW",
    "Arms",
    "Auto",
    "Bins",
    "Cate",
    "CrossFit",
    "DifferenceInMeans",
    "DoublyRobust",
    "FoldQueries",
    "Folds",
    "Groups",
    "Matching",
    "ModelPair",
    "RandomFeatures",
    "RecordMatching",
    "ScoreStrata",
    "Series",
    "Stratified",
    "Survival",
    "Trial",
    "WeightLimits",
    "Weighting",
]

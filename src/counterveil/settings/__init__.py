"""Settings of methods and questions, for `settings=`: `cv.settings.Matching(neighbours=5)`."""

from counterveil.settings.effects import (
    Bins,
    Cate,
    FoldQueries,
    Series,
    Survival,
    WeightLimits,
)
from counterveil.settings.outcome_level import Arms, DifferenceInMeans, Matching, Stratified, Weighting
from counterveil.settings.record_level import (
    Auto,
    DoublyRobust,
    Folds,
    Groups,
    ModelPair,
    Trial,
)

__all__ = [
    "Arms",
    "Auto",
    "Bins",
    "Cate",
    "DifferenceInMeans",
    "DoublyRobust",
    "FoldQueries",
    "Folds",
    "Groups",
    "Matching",
    "ModelPair",
    "Series",
    "Stratified",
    "Survival",
    "Trial",
    "WeightLimits",
    "Weighting",
]

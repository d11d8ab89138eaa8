"""Settings of methods and questions, for `settings=`: `cv.settings.Matching(neighbours=5)`."""

from counterveil.settings.methods import (
    Arms,
    Auto,
    Cate,
    DifferenceInMeans,
    DoublyRobust,
    Folds,
    Groups,
    Matching,
    ModelPair,
    Series,
    Stratified,
    Survival,
    Trial,
    Weighting,
    WeightLimits,
)

__all__ = [
    "Arms",
    "Auto",
    "Cate",
    "DifferenceInMeans",
    "DoublyRobust",
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

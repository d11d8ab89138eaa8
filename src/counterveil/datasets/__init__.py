"""Data sets for demonstrations, tests and experiments, each with its study and its source."""

from counterveil.datasets.dataset import Dataset
from counterveil.datasets.observational import nhefs, pension401k
from counterveil.datasets.semi_synthetic import acic2016, ihdp
from counterveil.datasets.simulated import (
    dataset_1,
    dataset_2,
    kink,
    simulated_trial,
    skewed,
    synth,
    synth_strata,
)
from counterveil.datasets.trials import ist, lalonde, nsw, star

__all__ = [
    "Dataset",
    "acic2016",
    "dataset_1",
    "dataset_2",
    "ihdp",
    "ist",
    "kink",
    "lalonde",
    "nhefs",
    "nsw",
    "pension401k",
    "simulated_trial",
    "skewed",
    "star",
    "synth",
    "synth_strata",
]

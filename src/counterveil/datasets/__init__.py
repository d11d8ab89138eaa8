"""Data sets for demonstrations, tests and experiments, each with its study and its source."""

from counterveil.datasets.acic2016 import acic2016
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.ihdp import ihdp
from counterveil.datasets.ist import ist
from counterveil.datasets.lalonde import lalonde
from counterveil.datasets.nhefs import nhefs
from counterveil.datasets.nsw import nsw
from counterveil.datasets.pension401k import pension401k
from counterveil.datasets.simulated import (
    dataset_1,
    dataset_2,
    kink,
    simulated_trial,
    skewed,
    synth,
    synth_strata,
)
from counterveil.datasets.star import star

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

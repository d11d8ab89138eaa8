"""Data sets for demonstrations, tests and experiments, each with its study and its source."""

from counterveil.datasets.acic2016 import acic2016
from counterveil.datasets.cate_designs import dataset_1, dataset_2, kink, skewed
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.ihdp import ihdp
from counterveil.datasets.ist import ist
from counterveil.datasets.lalonde import lalonde
from counterveil.datasets.nhefs import nhefs
from counterveil.datasets.nsw import nsw
from counterveil.datasets.pension401k import pension401k
from counterveil.datasets.star import star
from counterveil.datasets.synth import synth
from counterveil.datasets.synth_strata import synth_strata
from counterveil.datasets.trial import simulated_trial

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

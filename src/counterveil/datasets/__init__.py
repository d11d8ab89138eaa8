"""Data sets for demonstrations, tests and experiments, each with its study and its source."""

from counterveil.datasets.acic2016 import acic2016
from counterveil.datasets.dataset import Dataset
from counterveil.datasets.ihdp import ihdp
from counterveil.datasets.ist import ist
from counterveil.datasets.lalonde import lalonde
from counterveil.datasets.nhefs import nhefs
from counterveil.datasets.nsw import nsw
from counterveil.datasets.star import star
from counterveil.datasets.synth import synth
from counterveil.datasets.synth_strata import synth_strata
from counterveil.datasets.trial import simulated_trial

__all__ = [
    "Dataset",
    "acic2016",
    "ihdp",
    "ist",
    "lalonde",
    "nhefs",
    "nsw",
    "simulated_trial",
    "star",
    "synth",
    "synth_strata",
]

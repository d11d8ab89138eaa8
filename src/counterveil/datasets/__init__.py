"""Data sets for demonstrations, tests and experiments, each with its study and its source."""

from counterveil.datasets.dataset import (
    Dataset,
    acic2016,
    dataset_1,
    dataset_2,
    ihdp,
    ist,
    kink,
    lalonde,
    nhefs,
    nsw,
    pension401k,
    simulated_trial,
    skewed,
    star,
    synth,
    synth_strata,
)

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

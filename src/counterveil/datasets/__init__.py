"""Data sets for demonstrations, tests and experiments, each with its study and its source.

`simulated_trial`, `synth`, `synth_strata`, `dataset_1`, `dataset_2`, `skewed` and `kink` are simulated.
`lalonde` needs the extra ``demo``. All others read files below a folder, by default that in the environment
variable COUNTERVEIL_DATA. Files are checked by their SHA-256.
"""

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

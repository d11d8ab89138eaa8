"""ACIC 2016: simulated treatments and outcomes on 4802 real pregnancies, the true effect known."""

from __future__ import annotations

from os import PathLike

import numpy as np

from counterveil.data import Binary, Categories, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets.dataset import Dataset, locate, numbers, out_of_range, read_text
from counterveil.privacy import Number

COVARIATES = "acic2016/x.csv.gz"
_SHA256_X = "ce985c73f5bf3344143541fdacc3988c00a547a2c1ab8708d8a42e23a1b9b4f5"
_SHA256 = {
    1: "2b748aacdc1df9dd3c5b15df888c54fb60888d08c95bd65f5fbb64a6c92fe7a9",
    2: "4657e82af89f87529f9d6ea4670e8d80ff1d717147688b288004dbbe2198d849",
    3: "cbd98c33d2a532c76a628ab962b5a98ba9e2c23a7b1bc1dd1127c5b565784830",
    4: "7001cc982ad176919e617dff52133e2d0f6de9394c9fae287331d6c270c9e6c8",
    5: "6c3dc940c712879631e6b092da32113ebf117e73650e13fcc3357ebad385134f",
}
_TEXT = {"x_2": "ABCDEF", "x_21": "ABCDEFGHIJKLMNOP", "x_24": "ABCDE"}
_BINARY = ("x_17", "x_22", "x_38", "x_51", "x_54")
# Round upper bounds of the measures that are not counts of a few.
_UPPER = {
    100: (1, 3, 4, 5, 20, 23, 28, 34, 35, 37, 44, 57, 58),
    150: (19, 26),
    300: (6, 27),
    1000: (36,),
    30: (18, 25, 29, 43, 45),
}
_COUNT = 10


def acic2016(
    setting: int = 1,
    outcome_range: tuple[Number, Number] = (-20, 40),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one simulation setting; the true effect is the sample average of mu1 - mu0."""
    if setting not in _SHA256:
        raise out_of_range("setting", f"one of {list(_SHA256)}", setting)
    domains = _covariates()
    covariates = read_text(locate(COVARIATES, _SHA256_X, folder), list(domains))
    simulated = read_text(
        locate(f"acic2016/zymu_{setting}.csv.gz", _SHA256[setting], folder), ["z", "y0", "y1", "mu0", "mu1"]
    )
    z, y0, y1, mu0, mu1 = (numbers(column) for column in simulated.values())
    frame = {"z": z, "y": np.where(z == 1, y1, y0)}
    frame |= {name: column if name in _TEXT else numbers(column) for name, column in covariates.items()}
    return Dataset(
        name=f"ACIC 2016, setting {setting}",
        frame=frame,
        study=Study("z", "y", outcome_range, domains, control=0, randomised=False),
        source="Dorie et al. 2019, Statistical Science 34, 43-68; PyPI package causallib 0.10.0",
        licence="CDLA-Sharing 1.0",
        true_effect=float(np.mean(mu1 - mu0)),
        notes="The bounds of covariates are round numbers fixed for this benchmark; the default bounds "
        "of the outcome suit setting 1.",
        effects=mu1 - mu0,
    )


def _covariates() -> dict[str, Domain]:
    upper = {f"x_{place}": bound for bound, places in _UPPER.items() for place in places}
    domains: dict[str, Domain] = {}
    for name in (f"x_{place}" for place in range(1, 59)):
        if name in _TEXT:
            domains[name] = Categories(list(_TEXT[name]))
        elif name in _BINARY:
            domains[name] = Binary()
        else:
            domains[name] = Range(0, upper.get(name, _COUNT))
    return domains

"""Real covariates with simulated outcomes, so that the true effect is known: IHDP and ACIC 2016."""

from __future__ import annotations

from os import PathLike

import numpy as np

from counterveil.data import Binary, Categories, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets.dataset import Dataset, locate, numbers, read_text
from counterveil.errors import refusal
from counterveil.privacy import Number

_IHDP_SHA256 = {
    1: "9caef0ca17652473e11b11d2b5ff9aedc1b1f1b6ce73f2130bc0905ef323f192",
    2: "4b46483198a11a2bc6a74b85e275dc90f323bd3732fb797b9edae5e47b8093d3",
    3: "eed0aa237d23456ec5f15493166fe303ad7f99a436a6070939ad862982d9e208",
    4: "5c4e68d60bafb0f07ed760e0131ec9ad98f0a38ab5be4e9f0999a9455ae219d4",
    5: "d311f21a37a6b2eb16fdf3e5f8ca553e762d081eb7a47799488407978d71bd7c",
    6: "4c20bf6be267b216b175307f6db7da283724b3980f755ede2c338d99242e0605",
    7: "9d177316f16916f59c79b73bba8fdb6a5db8c4098e886ba87203a2fd10e4b404",
    8: "9178fe9b9b60ceac3185b844c2e7d138af7a93001e1421da145ee3cb5377672f",
    9: "d1e17e5aa2ab913fa25c0a82fc83c755eb818833f72e103c23d68546fd4bf4df",
    10: "be5598ce7633664541d26fb9602cfea7b769b264b3968694b4953bb5043ae36c",
    11: "7233825d79d55f389723db5f2ea77761f2273f11a848dcd73074b6438ecf23e3",
    12: "bb08027cd0fdcdae2f10f5998e6d95770ca09e676ae1841eb47368d8f9839f15",
    13: "117efbbcb11464db03e8af243afc0671eb25e9cbb04882333e47705e3272563e",
    14: "abdf069a3687bcc2225cf7f38041580ba07a0766781139644d618fbf56981d93",
    15: "4bfabae7ebc36f2762df520b801c79e52b16cf5a5064e5398e8d0a70773b3b76",
    16: "3f7ea987f8b264e1c83a6aa8f53f411f911fd3bead97e5b8de94ffe5762f8b0d",
    17: "0a4f4496fd4022615e327f259a64ae51c3b56e7c81497b68c1fd8997f85b3802",
    18: "8ebce605fa25fe1f30701135ea6ef1e0fe1bc70bb9f732680a3a0d8f49fd9bc4",
    19: "3f538ef7c14d6a38e09fc2b9a754ae11e458ace556b48a653823d313670658b3",
    20: "36e36576707bdd437defc88ce63f66c81d6fe94e72b53bb033265ae130a1964f",
    21: "4aa026a0420f7a5eb7cd363587e6d20cefaa02f74698eb6d77723988c2cfb80c",
    22: "ca7ec993cbef660c1246995eb6086901600f264d2f1f78081f73b76ccf3b2511",
    23: "dc38551b3896e1101bb87f40055cb710a12c3c6d3440fadaff1d11a555507ed5",
    24: "963bbcdf14eb7a72f49f21ed2603f116d919db0cde6bacfdc04795cbbdeb8fb8",
    25: "5b338719af5f4b62e6e0f12871d6f73049eec18299f866efed874d0debf864bd",
}
_IHDP_CONTINUOUS = 6
_IHDP_COVARIATES = 25

ACIC2016_FILE = "acic2016/x.csv.gz"
_ACIC2016_SHA256_X = "ce985c73f5bf3344143541fdacc3988c00a547a2c1ab8708d8a42e23a1b9b4f5"
_ACIC2016_SHA256 = {
    1: "2b748aacdc1df9dd3c5b15df888c54fb60888d08c95bd65f5fbb64a6c92fe7a9",
    2: "4657e82af89f87529f9d6ea4670e8d80ff1d717147688b288004dbbe2198d849",
    3: "cbd98c33d2a532c76a628ab962b5a98ba9e2c23a7b1bc1dd1127c5b565784830",
    4: "7001cc982ad176919e617dff52133e2d0f6de9394c9fae287331d6c270c9e6c8",
    5: "6c3dc940c712879631e6b092da32113ebf117e73650e13fcc3357ebad385134f",
}
_ACIC2016_TEXT = {"x_2": "ABCDEF", "x_21": "ABCDEFGHIJKLMNOP", "x_24": "ABCDE"}
_ACIC2016_BINARY = ("x_17", "x_22", "x_38", "x_51", "x_54")
# Round upper bounds of the measures that are not counts of a few.
_ACIC2016_UPPER = {
    100: (1, 3, 4, 5, 20, 23, 28, 34, 35, 37, 44, 57, 58),
    150: (19, 26),
    300: (6, 27),
    1000: (36,),
    30: (18, 25, 29, 43, 45),
}
_ACIC2016_COUNT = 10


def ihdp(
    realisation: int = 1,
    outcome_range: tuple[Number, Number] = (-5, 15),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one realisation; the true effect is the sample average of mu1 - mu0."""
    if realisation not in _IHDP_SHA256:
        raise refusal(
            "CV-D043",
            argument="realisation",
            expected=f"an int from 1 to {len(_IHDP_SHA256)}",
            got=realisation,
        )
    study = Study("treatment", "y_factual", outcome_range, _ihdp_covariates(), control=0, randomised=False)
    path = locate(f"ihdp/ihdp_npci_{realisation}.csv.gz", _IHDP_SHA256[realisation], folder)
    text = read_text(path, [*study.columns, "mu0", "mu1"])
    columns = {name: numbers(column) for name, column in text.items()}
    return Dataset(
        name=f"IHDP, realisation {realisation}",
        frame={name: columns[name] for name in study.columns},
        study=study,
        source="Hill 2011, J. Comput. Graph. Stat. 20, 217-240, with the outcomes of the npci generator; "
        "as distributed with AMLab-Amsterdam/CEVAE and claudiashi57/dragonnet",
        licence="the distributing repositories state no licence",
        true_effect=float(np.mean(columns["mu1"] - columns["mu0"])),
        notes="139 treated, 608 controls. x1 to x6 are standardised measures. The range of the outcome "
        "differs between realisations; the default suits the first.",
        effects=columns["mu1"] - columns["mu0"],
    )


def _ihdp_covariates() -> dict[str, Domain]:
    names = [f"x{place}" for place in range(1, _IHDP_COVARIATES + 1)]
    domains: dict[str, Domain] = dict.fromkeys(names[:_IHDP_CONTINUOUS], Range(-6, 6))
    domains |= dict.fromkeys(names[_IHDP_CONTINUOUS:], Binary())
    # First birth is coded 1 and 2 in the published files.
    domains["x14"] = Binary(one=2, zero=1)
    return domains


def acic2016(
    setting: int = 1,
    outcome_range: tuple[Number, Number] = (-20, 40),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one simulation setting; the true effect is the sample average of mu1 - mu0."""
    if setting not in _ACIC2016_SHA256:
        raise refusal("CV-D043", argument="setting", expected=f"one of {list(_ACIC2016_SHA256)}", got=setting)
    domains = _acic2016_covariates()
    covariates = read_text(locate(ACIC2016_FILE, _ACIC2016_SHA256_X, folder), list(domains))
    simulated = read_text(
        locate(f"acic2016/zymu_{setting}.csv.gz", _ACIC2016_SHA256[setting], folder),
        ["z", "y0", "y1", "mu0", "mu1"],
    )
    z, y0, y1, mu0, mu1 = (numbers(column) for column in simulated.values())
    frame = {"z": z, "y": np.where(z == 1, y1, y0)}
    frame |= {
        name: column if name in _ACIC2016_TEXT else numbers(column) for name, column in covariates.items()
    }
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


def _acic2016_covariates() -> dict[str, Domain]:
    upper = {f"x_{place}": bound for bound, places in _ACIC2016_UPPER.items() for place in places}
    domains: dict[str, Domain] = {}
    for name in (f"x_{place}" for place in range(1, 59)):
        if name in _ACIC2016_TEXT:
            domains[name] = Categories(list(_ACIC2016_TEXT[name]))
        elif name in _ACIC2016_BINARY:
            domains[name] = Binary()
        else:
            domains[name] = Range(0, upper.get(name, _ACIC2016_COUNT))
    return domains

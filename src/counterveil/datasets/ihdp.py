"""IHDP: simulated outcomes on 747 real infants, the true effect known."""

from __future__ import annotations

from os import PathLike

import numpy as np

from counterveil.data import Binary, Range, Study
from counterveil.data.domains import Domain
from counterveil.datasets.dataset import Dataset, locate, numbers, out_of_range, read_text
from counterveil.privacy import Number

_SHA256 = {
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
_CONTINUOUS = 6
_COVARIATES = 25


def ihdp(
    realisation: int = 1,
    outcome_range: tuple[Number, Number] = (-5, 15),
    folder: str | PathLike[str] | None = None,
) -> Dataset:
    """Return one realisation; the true effect is the sample average of mu1 - mu0."""
    if realisation not in _SHA256:
        raise out_of_range("realisation", f"an int from 1 to {len(_SHA256)}", realisation)
    study = Study("treatment", "y_factual", outcome_range, _covariates(), control=0, randomised=False)
    path = locate(f"ihdp/ihdp_npci_{realisation}.csv.gz", _SHA256[realisation], folder)
    text = read_text(path, [*study.columns, "mu0", "mu1"])
    columns = {name: numbers(column) for name, column in text.items()}
    return Dataset(
        name=f"IHDP, realisation {realisation}",
        frame={name: columns[name] for name in study.columns},
        study=study,
        source="Hill 2011, J. Comput. Graph. Stat. 20, 217-240, with the outcomes of the npci generator; "
        "as carried by AMLab-Amsterdam/CEVAE and claudiashi57/dragonnet",
        licence="no licence stated by the carrying repositories",
        true_effect=float(np.mean(columns["mu1"] - columns["mu0"])),
        notes="139 treated, 608 controls. x1 to x6 are standardised measures. The range of the outcome "
        "differs between realisations; the default suits the first.",
        effects=columns["mu1"] - columns["mu0"],
    )


def _covariates() -> dict[str, Domain]:
    names = [f"x{place}" for place in range(1, _COVARIATES + 1)]
    domains: dict[str, Domain] = dict.fromkeys(names[:_CONTINUOUS], Range(-6, 6))
    domains |= dict.fromkeys(names[_CONTINUOUS:], Binary())
    # First birth is coded 1 and 2 in the published files.
    domains["x14"] = Binary(one=2, zero=1)
    return domains

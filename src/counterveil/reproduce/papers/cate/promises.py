"""What decides the claims about guarantees, algorithms and medical data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from counterveil.reproduce.papers.cate.judges import MUCH, SMALL_NOISE, size_of
from counterveil.reproduce.papers.cate.methods import NETWORK
from counterveil.reproduce.protocol import Judged, Verdict

if TYPE_CHECKING:
    import pandas as pd

    Tables = Mapping[str, pd.DataFrame]


def guarantee(theorem: int) -> Callable[[Tables], Judged]:
    """Return what decides whether a lower bound on the true epsilon exceeds the claimed one."""
    reasons = {
        1: "the influence function of an average bounds neither a forest nor many queries, nor nuisance rows",
        2: "the power of the bandwidth is q where q/2 is right",
    }

    def judge(tables: Tables) -> Judged:
        own = tables["guarantees"][tables["guarantees"]["theorem"] == theorem]
        worst = own.loc[own["bound"].idxmax()]
        return Judged.of(
            bool(worst["bound"] <= worst["claimed"]),
            f"true epsilon at least {worst['bound']:.2f} where {worst['claimed']:g} is claimed ({worst['release']})",
            reasons[theorem] if worst["bound"] > worst["claimed"] else "no bound exceeds the claim",
        )

    return judge


def iterative(tables: Tables) -> Judged:
    """Return whether Algorithm 2 as printed answers with the fitted effect."""
    table = tables["algorithm2"]
    printed = table[(table["algorithm"] == "iterative_printed") & (table["query"] > 1)]
    off = float(np.max(np.abs(printed["mean"] - printed["fitted"]) / np.abs(printed["fitted"])))
    return Judged.of(
        off < SMALL_NOISE,
        f"answers after the first are off by up to {100 * off:.0f} % of the fitted effect at epsilon 1000",
        "they are drawn given earlier answers and never read the fit; with the fit added, a repeated query tells it",
    )


def consistent(tables: Tables) -> Judged:
    """Return whether noise falls with the number of people."""
    noise = tables["sizes"][tables["sizes"]["measure"] == "noise"]
    ratio = {}
    for form, own in noise.groupby("form", sort=False):
        ratio[str(form)] = float(own["value"].iloc[-1] / own["value"].iloc[0])
    most = int(noise["size"].max() / noise["size"].min())
    return Judged.of(
        max(ratio["finite"], ratio["literal"]) < SMALL_NOISE,
        f"with {most} times the people noise is {ratio['finite']:.3f} (finite), {ratio['literal']:.3f} (functional as "
        f"printed), {ratio['alpha']:.3f} (scikit-learn's lambda) times as large",
        "with scikit-learn's lambda the noise does not fall with the number of people",
    )


def no_growth(tables: Tables) -> Judged:
    """Return whether the work of Algorithm 1 stays the same with more queries."""
    own = tables["sizes"][tables["sizes"]["measure"] == "seconds"]
    seconds, sizes = own["value"].to_numpy(), own["size"].to_numpy()
    growth = float(seconds[-1] / max(float(seconds[0]), 1e-6))
    return Judged.of(
        growth < MUCH,
        f"{seconds[0]:.3f} s for {sizes[0]:,} queries, {seconds[-1]:.2f} s for {sizes[-1]:,}",
        "a path of the process needs a factor of the kernel matrix of all queries, whose work grows with their cube",
    )


def medical(
    figure: str, files: tuple[str, ...], holds: Callable[[pd.DataFrame], tuple[bool, str]]
) -> Callable[[Tables], Judged]:
    """Return what decides a claim about data that need credentials; without them it cannot be checked."""

    def judge(tables: Tables) -> Judged:
        if figure not in tables:
            why = f"the data need credentials; not below COUNTERVEIL_DATA: {', '.join(files)}"
            return Judged(Verdict.CANNOT_BE_CHECKED, "", why)
        right, number = holds(tables[figure])
        return Judged.of(
            right, number, "as the loader prepares the data: the paper does not print every step"
        )

    return judge


def rises(table: pd.DataFrame) -> tuple[bool, str]:
    """Return whether the effect of ventilation rises with hematocrit, with the number that says so."""
    own = table[(table["method"] == NETWORK) & (table["epsilon"] == table["epsilon"].max())]
    slope = float(np.polyfit(own["x"], own["middle"], 1)[0])
    return slope > 0, f"slope {slope:.3g} a unit of hematocrit"


def small_loss(table: pd.DataFrame) -> tuple[bool, str]:
    """Return whether the noise is small beside the constant effect, with the number that says so."""
    part = size_of(table, NETWORK, float(table["epsilon"].max()), "noise")
    return part < SMALL_NOISE, f"noise {part:.2g} beside an effect of 1"

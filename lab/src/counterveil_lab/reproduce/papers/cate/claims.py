"""The paper's claims in our words, where they stand, and what decides them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.papers.cate.judges import (
    MUCH,
    SMALL_NOISE,
    anonymous_worse,
    boosted_worse,
    converges,
    correct,
    dr_functional,
    dr_noise,
    errors_fall,
    functional_alike,
    functional_usable,
    one_sided,
    relative,
    same_learners,
    size_of,
)
from counterveil_lab.reproduce.papers.cate.medical import MIMIC_FILES, TCGA_FILES
from counterveil_lab.reproduce.papers.cate.methods import FOREST, LITERAL, NETWORK
from counterveil_lab.reproduce.protocol import Claim, Judged, Tables, Verdict


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


CLAIMS = (
    Claim(
        "Answers to finitely many queries are (epsilon, delta)-differentially private.",
        "Theorem 1",
        ("guarantees",),
        guarantee(1),
    ),
    Claim(
        "A released function is (epsilon, delta)-differentially private.",
        "Theorem 2",
        ("guarantees",),
        guarantee(2),
    ),
    Claim(
        "On Dataset 1 predictions become less noisy with the budget and approach those without privacy.",
        "Section 5.1, Figure 3",
        ("figure3",),
        converges("figure3", (FOREST, NETWORK)),
    ),
    Claim(
        "Predictions under a forest and a network are almost identical.",
        "Section 5.1, Figures 3 and 14",
        ("figure14",),
        same_learners,
    ),
    Claim(
        "Functional predictions on Dataset 1 approach those without privacy as the budget grows.",
        "Section 5.1, Figure 4",
        ("figure4",),
        converges("figure4", (LITERAL,)),
    ),
    Claim(
        "The functional form makes precise predictions of the effect at a large budget.",
        "Section 5.2, takeaways, Figure 4",
        ("figure4",),
        functional_usable,
    ),
    Claim(
        "On Dataset 2 errors at finitely many queries fall with the budget to those without privacy.",
        "Section 5.1, Figure 5",
        ("figure5",),
        errors_fall,
    ),
    Claim(
        "On Dataset 2 the functional form behaves as the finite one does.",
        "Section 5.1, Figure 5",
        ("figure5",),
        functional_alike,
    ),
    Claim(
        "On Dataset 2 predictions are correct; here: closer to the effects than one private effect for all.",
        "Section 5.1, Figure 5",
        ("figure5",),
        correct,
    ),
    Claim(
        "On MIMIC-III the effect of ventilation rises with hematocrit.",
        "Section 5.2, Figure 6",
        (),
        medical("figure6", MIMIC_FILES, rises),
    ),
    Claim(
        "On TCGA the loss in precision due to privacy is fairly small.",
        "Section 5.2, Figure 7",
        (),
        medical("figure7", TCGA_FILES, small_loss),
    ),
    Claim(
        "The DR-learner needs extremely enlarged noise compared to the R-learner.",
        "Supplement B, Figure 9",
        ("figure3", "figure9"),
        dr_noise,
    ),
    Claim(
        "With the DR-learner the functional form approaches its answers without noise faster than the finite one.",
        "Supplement B, Figure 10",
        ("figure9", "figure10"),
        dr_functional,
    ),
    Claim(
        "Functional noise is correlated and can look like over- or underestimation throughout.",
        "Supplement C.1",
        ("figure3", "figure4"),
        one_sided,
    ),
    Claim(
        "Iterative queries get private estimates of the effect.",
        "Supplement C.2, Algorithm 2",
        ("algorithm2",),
        iterative,
    ),
    Claim(
        "The work of Algorithm 1 does not grow with the number of queries.",
        "Section 4.2, scalability",
        ("sizes",),
        no_growth,
    ),
    Claim(
        "Noise vanishes with the number of people, so that the private estimate is consistent.",
        "Supplement D",
        ("sizes",),
        consistent,
    ),
    Claim(
        "Private boosted trees have by far the larger error, above all at small budgets.",
        "Supplement E.1, Figures 11 and 12",
        ("figure12",),
        boosted_worse,
    ),
    Claim(
        "k-anonymisation has the larger error for almost all budgets.",
        "Supplement E.2, Figure 13",
        ("figure13",),
        anonymous_worse,
    ),
    Claim(
        "On Dataset 1 the error relative to that without privacy falls as epsilon grows from 0.1 to 0.2.",
        "Supplement I, Figures 14 and 15",
        ("figure15",),
        relative,
    ),
)

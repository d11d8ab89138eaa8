"""What the paper says of its figures and guarantees, judged, and the paper as a whole."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.page import Claim, Judged, Paper, Tables, Verdict
from counterveil_lab.reproduce.papers.cate.figures import FIGURES
from counterveil_lab.reproduce.papers.cate.methods import (
    ALPHA,
    ANONYMOUS,
    BOOSTED,
    CONSTANT,
    DELTA,
    FOREST,
    HARDLY_NOISY,
    LITERAL,
    NETWORK,
    OURS,
    STUDIES,
    ZERO,
)
from counterveil_lab.reproduce.papers.cate.studies import MIMIC_FILES, TCGA_FILES
from counterveil_lab.reproduce.rivals.simple import K

# What counts as close: the noise beside the spread of the true effects, and one error beside another.
SMALL_NOISE, _CLOSE = 0.25, 1.1
# What counts as much larger, and as nearly the same.
MUCH, _SAME = 2.0, 1.25


def size_of(table: pd.DataFrame, method: str, epsilon: float, column: str) -> float:
    """Return a column of a method at an epsilon: the root mean square over bins where there are several."""
    own = table[(table["method"] == method) & (table["epsilon"] == epsilon)][column]
    return float(np.sqrt(np.mean(np.square(own))))


def _ends(table: pd.DataFrame) -> tuple[float, float]:
    return float(table["epsilon"].min()), float(table["epsilon"].max())


def _falls(table: pd.DataFrame, method: str, column: str) -> bool:
    """Return whether a column falls with epsilon by more than a hundredth from its first value to its last."""
    epsilons = sorted(set(table["epsilon"]))
    sizes = [size_of(table, method, epsilon, column) for epsilon in epsilons]
    return all(b < a for a, b in pairwise(sizes)) and sizes[-1] < 0.99 * sizes[0]


def converges(figure: str, methods: tuple[str, ...]) -> Callable[[Tables], Judged]:
    """Return what decides whether noise falls with the budget to a small part of the differences between people."""

    def judge(tables: Tables) -> Judged:
        table = tables[figure]
        least, most = _ends(table)
        spread = float(table[table["method"] == methods[0]]["truth"].std())
        parts = {method: size_of(table, method, most, "noise") / spread for method in methods}
        holds = (
            all(_falls(table, method, "noise") for method in methods) and max(parts.values()) < SMALL_NOISE
        )
        first = size_of(table, methods[0], least, "noise") / spread
        number = f"noise over spread of the effects: {first:.2g} at epsilon {least:g}; " + ", ".join(
            f"{part:.2g} ({method})" for method, part in parts.items()
        )
        return Judged.of(holds, f"{number} at {most:g}", "the noise is in proportion to 1/epsilon")

    return judge


def same_learners(tables: Tables) -> Judged:
    """Return whether a forest and a network give nearly the same predictions."""
    table = tables["figure14"]
    least, _ = _ends(table)
    noises = [size_of(table, method, least, "noise") for method in (FOREST, NETWORK)]
    floors = [size_of(table, method, least, "floor") for method in (FOREST, NETWORK)]
    ratio = max(floors) / min(floors)
    return Judged.of(
        ratio < _SAME,
        f"noise {noises[0] / noises[1]:.2f} times, error without noise {floors[0]:.2f} and {floors[1]:.2f}",
        "the noise is alike, so small budgets look alike; the fits under it are not",
    )


def functional_usable(tables: Tables) -> Judged:
    """Return whether a functional release is much closer to the effects than zero is."""
    table = tables["figure4"]
    _, most = _ends(table)
    errors = {method: size_of(table, method, most, "error") for method in (LITERAL, ALPHA)}
    zero = float(np.sqrt(np.mean(np.square(table[table["method"] == LITERAL]["truth"]))))
    return Judged.of(
        min(errors.values()) < zero / MUCH,
        f"error at epsilon {most:g}: {errors[LITERAL]:.2g} as printed, {errors[ALPHA]:.2g} with scikit-learn's "
        f"lambda; zero has {zero:.2g}",
        "lambda = 1 on the mean loss shrinks every effect towards zero; as scikit-learn's alpha its noise is huge",
    )


def errors_fall(tables: Tables) -> Judged:
    """Return whether errors on Dataset 2 fall to those without noise."""
    table = tables["figure5"]
    _, most = _ends(table)
    ratios = {
        m: size_of(table, m, most, "error") / size_of(table, m, most, "floor") for m in (FOREST, NETWORK)
    }
    return Judged.of(
        all(_falls(table, method, "error") for method in ratios) and max(ratios.values()) < _CLOSE,
        f"at epsilon {most:g} {ratios[FOREST]:.3f} (forest) and {ratios[NETWORK]:.3f} (network) times the error "
        "without noise",
        "the noise is in proportion to 1/epsilon",
    )


def functional_alike(tables: Tables) -> Judged:
    """Return whether the functional form's error on Dataset 2 falls with the budget."""
    table = tables["figure5"]
    least, most = _ends(table)
    change = size_of(table, LITERAL, least, "error") / size_of(table, LITERAL, most, "error") - 1
    noise = size_of(table, LITERAL, least, "noise")
    return Judged.of(
        _falls(table, LITERAL, "error"),
        f"error {100 * change:.1g}% larger at epsilon {least:g} than at {most:g}; noise {noise:.1g}",
        "with 30 covariates the printed power of the bandwidth makes noise and fit vanish: the answer is zero, and "
        "its flat curve is no sign of accuracy",
    )


def correct(tables: Tables) -> Judged:
    """Return whether a published form is closer to the effects of Dataset 2 than one private effect for all."""
    table = tables["figure5"]
    forms = (FOREST, NETWORK, LITERAL)
    best = min(size_of(table, method, 1.0, "clipped") for method in forms)
    zero, constant = (size_of(table, method, 1.0, "error") for method in (ZERO, CONSTANT))
    ours = size_of(table, OURS, 1.0, "error")
    return Judged.of(
        best < constant,
        f"error at epsilon 1: {best:.2g} at best, zero {zero:.2g}, one private effect for all {constant:.2g}, "
        f"ours {ours:.2g}",
        "answers are clipped to the outcome's range before they are scored, in the published forms' favour",
    )


def dr_noise(tables: Tables) -> Judged:
    """Return whether the DR-learner needs much more noise than the R-learner."""
    ratios = [
        size_of(tables["figure9"], method, 1.0, "noise") / size_of(tables["figure3"], method, 1.0, "noise")
        for method in (FOREST, NETWORK)
    ]
    return Judged.of(
        min(ratios) > MUCH,
        f"noise of DR over R: {ratios[0]:.2f} (forest), {ratios[1]:.2f} (network)",
        "propensities of Dataset 1 lie in [0.5, 0.8], where the DR-learner's largest influence is little above the "
        "R-learner's",
    )


def dr_functional(tables: Tables) -> Judged:
    """Return the noise of the DR-learner's functional form beside its finite one; settings not printed decide."""
    finite = size_of(tables["figure9"], NETWORK, 1.0, "noise")
    functional = {m: size_of(tables["figure10"], m, 1.0, "noise") for m in (LITERAL, ALPHA)}
    return Judged.of(
        None,
        f"noise at epsilon 1: functional {functional[LITERAL]:.2g} as printed, {functional[ALPHA]:.2g} with "
        f"scikit-learn's lambda; finite {finite:.2g}",
        "the size of the functional noise follows the bandwidth, which is not printed, and the reading of lambda; both "
        "fall in proportion to 1/epsilon",
    )


def one_sided(tables: Tables) -> Judged:
    """Return whether the functional noise is off in one direction."""
    shares = [
        size_of(tables[figure], method, 1.0, "shift") / size_of(tables[figure], method, 1.0, "noise")
        for figure, method in (("figure4", LITERAL), ("figure3", NETWORK))
    ]
    return Judged.of(
        shares[0] > MUCH * shares[1],
        f"mean of the noise over its size: {shares[0]:.2f} functional, {shares[1]:.2f} finite",
        "one path of a Gaussian process is off in the same direction at neighbouring queries",
    )


def boosted_worse(tables: Tables) -> Judged:
    """Return whether private boosted trees are further off at every budget."""
    if "figure11" not in tables:
        return Judged(Verdict.CANNOT_BE_CHECKED, "", "Figure 11 needs the extra interpret")
    ratios = []
    for epsilon in sorted(set(tables["figure11"]["epsilon"])):
        theirs = size_of(tables["figure12"], NETWORK, epsilon, "error")
        ratios.append((epsilon, size_of(tables["figure11"], BOOSTED, epsilon, "error") / theirs))
    return Judged.of(
        all(ratio > _SAME for _, ratio in ratios),
        "error of DP-EBM over DP-CATE's (network): "
        + ", ".join(f"{ratio:.2g} at {epsilon:g}" for epsilon, ratio in ratios),
        "DP-EBM privatises all of its models and needs less noise where the budget is small; DP-CATE leaves its "
        "nuisances unprotected",
    )


def anonymous_worse(tables: Tables) -> Judged:
    """Return how often k-anonymisation is further off; the k of the paper is not printed and decides."""
    table = tables["figure13"]
    epsilons = sorted(set(table["epsilon"]))
    wins = [
        size_of(table, published, epsilon, "error") < size_of(table, anonymous, epsilon, "error")
        for anonymous, published in ANONYMOUS.items()
        for epsilon in epsilons
    ]
    return Judged.of(
        None,
        f"DP-CATE has the smaller error in {sum(wins)} of {len(wins)} pairs of learner and epsilon",
        f"k is not printed: with k = {K} averaging two covariates costs little; it has no guarantee",
    )


def relative(tables: Tables) -> Judged:
    """Return whether the relative error falls with the budget."""
    table = tables["figure15"]
    least, most = _ends(table)
    sizes = [size_of(table, NETWORK, epsilon, "relative") for epsilon in (least, most)]
    return Judged.of(
        all(_falls(table, method, "relative") for method in (FOREST, NETWORK)),
        f"network: {sizes[0]:.0f}% of the error without noise at epsilon {least:g}, {sizes[1]:.0f}% at {most:g}",
        "the error falls with the budget, from many times that of the learner itself",
    )


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
        f"answers after the first are off by up to {100 * off:.0f}% of the fitted effect at epsilon 1000",
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
        "Noise vanishes with the number of people, so the private estimate is consistent.",
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
_ASSUMPTIONS = f"""## Assumptions

- Every point is a mean over studies of 3,000 people, {STUDIES} in a full run. 2,700 are learnt from and 300 scored, \
with one release for each study and epsilon. The column `spread` tells how far errors of studies vary.
- delta is {DELTA}. "fitted" and "floor" are answers and errors without noise; for ours, which has no such form, at \
epsilon {HARDLY_NOISY:g}.
- The bandwidth of the kernel, the reading of lambda and the k of k-anonymisation are not printed: claims that they \
decide cannot be checked."""
PAPER = Paper(
    "cate",
    "Differentially private learners for heterogeneous treatment effects (DP-CATE)",
    FIGURES,
    CLAIMS,
    lambda _: _ASSUMPTIONS,
)

"""What the paper says of its figures, tables and theorems, judged, and the paper as a whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from counterveil.datasets.dataset import NSW_FILE, ihdp_file
from counterveil_lab.attacks.gallery import Claimed, papers
from counterveil_lab.reproduce.page import Claim, Judge, Judged, Paper, Tables
from counterveil_lab.reproduce.papers.ipw.figures import (
    DERIVED,
    EFFECTS,
    EPSILONS,
    FIGURES,
    MEAN,
    OF_THE_PAPER,
    PAPER_RUNS,
    PRINTED,
    RUNS,
    SIMULATED,
    TABLES,
    TRIALS,
    WRONG,
)
from counterveil_lab.reproduce.papers.ipw.synthetic import IHDP_FILES, LONG, PARTLY, PLAIN, RELEASED

# Shares of wrong signs closer than this are the same within what a few hundred runs tell; a fall of this is at issue.
_SAME, CLEAR = 0.06, 0.1
# How many standard errors make a difference clear.
_ERRORS = 2
# A mean that is farther off than so many times the effect says nothing about it.
_EXPLODED = 10


# Figure 1 and Lemma 3.


def bias_falls(tables: Tables) -> Judged:
    """Judge whether the bias falls with rows and budget."""
    table = tables["figure-1"]
    sizes = (
        table[table["form"] == SIMULATED].pivot_table(index="rows", columns="epsilon", values="bias").abs()
    )
    by_rows = bool((np.diff(sizes.to_numpy(), axis=0) < 0).all())
    by_budget = bool((np.diff(sizes.to_numpy(), axis=1) < 0).all())
    number = f"{sizes.iloc[0, 0]:.3g} at m = {sizes.index[0]}, epsilon 0.2; {sizes.iloc[-1, -1]:.2g} at the other end"
    return Judged.of(
        by_rows and by_budget, number, "mean change over draws of the noise, in every step smaller"
    )


def bias_as_printed(tables: Tables) -> Judged:
    """Judge whether equation 8 gives the bias."""
    table = tables["figure-1"].pivot_table(index=["rows", "epsilon"], columns="form", values="bias")
    off = float((table[PRINTED] / table[SIMULATED] - 1).abs().max())
    derived = float((table[DERIVED] / table[SIMULATED] - 1).abs().max())
    first = table.iloc[0]
    number = f"printed {first[PRINTED]:.3f}, drawn {first[SIMULATED]:.3f} at m = 500, epsilon 0.2"
    why = (
        "the printed exponent has the sign (-1)^t, which its own proof does not have: symmetric noise widens both "
        f"arms' weights; without that sign it is right to {derived:.1%}"
    )
    return Judged.of(off < 0.1, number, why)


# Figure 2.


def _signs(tables: Tables, estimate: str) -> pd.DataFrame:
    table = tables["figure-2ab"]
    return table[table["estimate"] == estimate].pivot_table(index="epsilon", columns="effect", values="wrong")


def _falls(first: float, last: float, runs: int) -> tuple[bool | None, float]:
    """Return whether a share of so many runs falls by more than chance, and the standard error of its fall.

    None where the runs neither show a fall nor rule out one that matters.
    """
    error = ((first * (1 - first) + last * (1 - last)) / runs) ** 0.5
    if first - last > _ERRORS * error:
        return True, error
    return (False if first - last + _ERRORS * error < CLEAR else None), error


def signs_by_budget(estimate: str) -> Judge:
    """Return what decides whether wrong signs become fewer with epsilon, by more than chance."""

    def judge(tables: Tables) -> Judged:
        table = tables["figure-2ab"]
        own = table[(table["estimate"] == estimate) & (table["effect"] == EFFECTS[0])].sort_values("epsilon")
        first, last = float(own["wrong"].iloc[0]), float(own["wrong"].iloc[-1])
        holds, error = _falls(first, last, int(own["trials"].min()))
        number = f"{first:.2f} to {last:.2f} at effect 0.1"
        why = f"from the smallest to the largest epsilon; the difference has a standard error of {error:.2f}"
        return Judged.of(holds, number, why)

    return judge


def signs_by_effect(tables: Tables) -> Judged:
    """Judge whether wrong signs become fewer with the effect."""
    small, large = (
        float(np.mean([_signs(tables, name)[effect].mean() for name in (PARTLY, RELEASED)]))
        for effect in EFFECTS
    )
    return Judged.of(
        small - large > CLEAR,
        f"{small:.2f} at effect 0.1, {large:.2f} at 2",
        f"mean over budgets and both estimates; fewer by {CLEAR:g} or more",
    )


def converges(tables: Tables) -> Judged:
    """Judge whether estimates before the last noise come closer to those without noise with more rows for the model."""
    table = tables["figure-2cd"]
    ends = {}
    for name in (PARTLY, RELEASED):
        wide = table[table["estimate"].isin([name, PLAIN])]
        wide = wide[wide["effect"] == EFFECTS[1]].pivot_table(index="rows", columns="estimate", values="mean")
        gap = (wide[name] - wide[PLAIN]).abs()
        ends[name] = (float(gap.iloc[0]), float(gap.iloc[-1]))
    half = table[(table["estimate"] == RELEASED) & (table["effect"] == EFFECTS[1])]["half"]
    number = "; ".join(f"{name} off by {a:.3f}, then {b:.3f}" for name, (a, b) in ends.items())
    why = (
        "effect 2, m = 500 and 2500, judged before the last noise, which does not shrink with m: released means are "
        f"known to {half.iloc[0]:.2f} and {half.iloc[-1]:.2f} only"
    )
    return Judged.of(ends[PARTLY][1] < ends[PARTLY][0] / 2, number, why)


def exponential_means(tables: Tables) -> Judged:
    """Judge whether mean estimates grow exponentially with the effect."""
    table = tables["figure-2cd"]
    wide = table[table["rows"] == table["rows"].min()].pivot_table(
        index="effect", columns="estimate", values="mean"
    )
    slope = float((wide[PARTLY].iloc[-1] - wide[PARTLY].iloc[0]) / (EFFECTS[1] - EFFECTS[0]))
    why = "outcomes enter linearly: a larger effect adds in proportion; the bias is exponential in the noise"
    return Judged.of(
        slope > _EXPLODED, f"the mean grows by {slope:.2f} for each unit of the effect at m = 500", why
    )


# Tables 2 and 3.


def _line(tables: Tables, name: str, estimate: str, measure: str) -> list[float]:
    table = tables[name]
    found = table[(table["estimate"] == estimate) & (table["measure"] == measure)]
    return [float(found[f"{epsilon:g}"].iloc[0]) for epsilon in EPSILONS]


def _shown(values: list[float], digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def fewer_wrong(name: str, estimate: str) -> Judge:
    """Return what decides whether wrong signs become fewer with epsilon in a table."""

    def judge(tables: Tables) -> Judged:
        values = _line(tables, name, estimate, WRONG)
        printed = _line(tables, name, f"{OF_THE_PAPER}{estimate}", WRONG)
        table = tables[name]
        holds, error = _falls(
            values[0], values[-1], int(table[table["estimate"] == estimate]["runs"].iloc[0])
        )
        # A rise on the way contradicts a fall as a whole.
        steady = all(b < a + _SAME for a, b in pairwise(values))
        why = f"printed {_shown(printed)}; first less last has a standard error of {error:.2f}"
        return Judged.of(steady if holds else holds, _shown(values), why)

    return judge


def close_to_printed(name: str, estimate: str) -> Judge:
    """Return what decides whether the shares of wrong signs are the printed ones."""

    def judge(tables: Tables) -> Judged:
        values, printed = (
            _line(tables, name, each, WRONG) for each in (estimate, f"{OF_THE_PAPER}{estimate}")
        )
        close = all(abs(a - b) < _SAME for a, b in zip(values, printed, strict=True))
        why = "rows are brought to length one by public bounds, as the paper's claim needs"
        if name == "table-2":
            why += f"; with IHDP's rows as they come {_shown(_line(tables, name, LONG, WRONG))}: near the printed ones"
        return Judged.of(close, f"{_shown(values)}, printed {_shown(printed)}", why)

    return judge


def last_noise_small(name: str) -> Judge:
    """Return what decides whether the last noise hardly changes the signs, as the printed table has it."""

    def judge(tables: Tables) -> Judged:
        before, after = (_line(tables, name, each, WRONG) for each in (PARTLY, RELEASED))
        close = all(abs(a - b) < _SAME for a, b in zip(before, after, strict=True))
        why = (
            "noise for outcomes of up to 60,000 dollars (IHDP: 20) and weights of up to 10 is larger than the effect; "
            "the bounds that the paper used are not said, and its printed difference fits none that hold the data"
        )
        return Judged.of(close, f"before {_shown(before)}, released {_shown(after)}", why)

    return judge


def small_budget_explodes(tables: Tables) -> Judged:
    """Judge whether the mean at epsilon 0.2 on IHDP is far off."""
    own, long = _line(tables, "table-2", PARTLY, MEAN)[0], _line(tables, "table-2", LONG, MEAN)[0]
    plain = _line(tables, "table-2", PLAIN, MEAN)[0]
    number = f"mean {own:.2f} at epsilon 0.2, {plain:.2f} without noise, printed -237487.30"
    why = f"it explodes ({long:.3g}) only with rows longer than one, for which the printed noise is too small"
    return Judged.of(abs(own - plain) > _EXPLODED * abs(plain), number, why)


def fidelity_grows(name: str) -> Judge:
    """Return what decides whether means come closer to those without noise with epsilon."""

    def judge(tables: Tables) -> Judged:
        plain = _line(tables, name, PLAIN, MEAN)
        gaps = [abs(a - b) for a, b in zip(_line(tables, name, PARTLY, MEAN), plain, strict=True)]
        return Judged.of(
            gaps[-1] < gaps[0] / 2,
            _shown(gaps),
            "distance of the means before the last noise, by epsilon; less than half at last",
        )

    return judge


# Guarantees and theorems.


def guarantee(_: Tables) -> Judged:
    """Judge the guarantee by the counterexample of the gallery."""
    entry = next(one for one in papers() if one.name == "unclipped weighting")
    finding = entry.examine()
    return Judged.of(not finding.violated, Claimed(entry, finding).found, entry.fails)


def sign_bound(exponent: float) -> Judge:
    """Return what decides Theorem 4: the largest probability of a sign error that a mean u eta allows is 1 - u."""

    def judge(_: Tables) -> Judged:
        u = np.linspace(0, 1, 1001)
        worst = float(((1 - u) / np.exp(-exponent * u**2)).max())
        why = (
            "a variable of at most eta with mean u eta is not positive with probability 1 - u at most, to which the "
            "bound is compared for all u; Hoeffding's inequality, which the proof names, has a quarter of the exponent"
        )
        return Judged.of(worst <= 1 + 1e-12, f"largest probability over bound {worst:.2f}", why)

    return judge


def treated_effect(tables: Tables) -> Judged:
    """Judge whether the estimators of Appendix F estimate the effect on the treated."""
    row = tables["appendix-f"].iloc[0]
    number = (
        f"{row['printed']:.2f} for an effect of {row['effect']:.0f} and a share treated of {row['share']:.2f}"
    )
    return Judged.of(
        bool(abs(row["printed"] - row["effect"]) < 0.2),
        number,
        "it estimates the effect times the share treated",
    )


CLAIMS = (
    Claim(
        "The bias of the weighted estimate falls with m and with epsilon.",
        "Figure 1",
        ("figure-1",),
        bias_falls,
    ),
    Claim("Equation 8 gives the bias.", "Lemma 3", ("figure-1",), bias_as_printed),
    Claim(
        "Before the last noise, wrong signs become fewer as epsilon grows.",
        "Figures 2a and 2b",
        ("figure-2ab",),
        signs_by_budget(PARTLY),
    ),
    Claim(
        "Released, wrong signs become fewer as epsilon grows.",
        "Figures 2a and 2b",
        ("figure-2ab",),
        signs_by_budget(RELEASED),
    ),
    Claim(
        "Wrong signs become fewer as the effect grows.", "Figures 2a and 2b", ("figure-2ab",), signs_by_effect
    ),
    Claim(
        "Mean estimates converge to the one without noise as m grows.",
        "Figures 2c and 2d",
        ("figure-2cd",),
        converges,
    ),
    Claim(
        "A larger effect has exponentially larger mean estimates.",
        "Section 4",
        ("figure-2cd",),
        exponential_means,
    ),
    Claim(
        "Before the last noise, wrong signs on IHDP become fewer with epsilon.",
        "Table 2",
        ("table-2",),
        fewer_wrong("table-2", PARTLY),
    ),
    Claim(
        "Released, wrong signs on IHDP become fewer with epsilon.",
        "Table 2",
        ("table-2",),
        fewer_wrong("table-2", RELEASED),
    ),
    Claim(
        "The shares of wrong signs on IHDP before the last noise are those printed.",
        "Table 2",
        ("table-2",),
        close_to_printed("table-2", PARTLY),
    ),
    Claim(
        "Means on IHDP come closer to those without noise with epsilon.",
        "Table 2",
        ("table-2",),
        fidelity_grows("table-2"),
    ),
    Claim(
        "At epsilon 0.2 the estimate on IHDP is unreliable: its mean is far off.",
        "Table 2",
        ("table-2",),
        small_budget_explodes,
    ),
    Claim("On IHDP the last noise hardly matters.", "Table 2", ("table-2",), last_noise_small("table-2")),
    Claim(
        "Before the last noise, wrong signs on LaLonde become fewer with epsilon.",
        "Table 3",
        ("table-3",),
        fewer_wrong("table-3", PARTLY),
    ),
    Claim(
        "Released, wrong signs on LaLonde become fewer with epsilon.",
        "Table 3",
        ("table-3",),
        fewer_wrong("table-3", RELEASED),
    ),
    Claim(
        "The shares of wrong signs on LaLonde before the last noise are those printed.",
        "Table 3",
        ("table-3",),
        close_to_printed("table-3", PARTLY),
    ),
    Claim(
        "Means on LaLonde come closer to those without noise with epsilon.",
        "Table 3",
        ("table-3",),
        fidelity_grows("table-3"),
    ),
    Claim("On LaLonde the last noise hardly matters.", "Table 3", ("table-3",), last_noise_small("table-3")),
    Claim("Algorithm 1 is (epsilon, delta)-differentially private.", "Section 3", (), guarantee),
    Claim(
        "The chance of a wrong sign is at most exp(-2 (tau + g)^2 / eta^2).", "Theorem 4", (), sign_bound(2)
    ),
    Claim(
        "The forms of Appendix F estimate the effects on the treated and on the untreated.",
        "Appendix F",
        ("appendix-f",),
        treated_effect,
    ),
)
REMARKS = f"""## Assumptions

- The paper gives no bounds. Rows have length one at most, by public bounds in Tables 2 and 3, by the longest row in \
Figures 1 and 2. Propensities are between 0.1 and 0.9; outcomes are in [-10, 20] for IHDP and [0, 60] thousand dollars \
for LaLonde. In Figure 2 the largest outcome is read off the rows.
- "published, before the last noise" protects the rows of the propensity model alone. "published, released" is all of \
Algorithm 1, whose guarantee fails because nothing bounds the noisy scores.
- A wrong sign is one other than that of the published weighting without noise. {TRIALS} trials in Figures 1 and 2 \
(standard error of a share 0.05), {RUNS} runs in Tables 2 and 3 (0.03; the paper {PAPER_RUNS}). IHDP has 25 files here.
- A fall in wrong signs is reproduced if it exceeds two standard errors, not reproduced if a fall of {CLEAR:g} is \
ruled out, and cannot be checked in between.
- "ours, hajek" and "ours, ht" are the variants of `method="ipw"`; in Figure 2 "ours, ipw" chooses between them, and \
"ours, auto" compares the arms where the budget supports no adjustment."""
# Runs take the files of IHDP in turn.
FILES = {"ihdp": tuple(map(ihdp_file, range(1, IHDP_FILES + 1))), "lalonde": (NSW_FILE,)}
PAPER = Paper(
    "ipw",
    "Privacy-Preserving Causal Inference via Inverse Probability Weighting (Lee, Gresele, Park and Muandet)",
    (*FIGURES, *TABLES),
    CLAIMS,
    lambda _: REMARKS,
    FILES,
)

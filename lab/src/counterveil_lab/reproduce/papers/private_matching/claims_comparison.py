"""What the text says of Figures 2 and 7, judged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.papers.private_matching.methods import (
    CLEAR,
    COMPARISON,
    LABEL,
    OWN,
    SAMPLE,
    USELESS,
    at,
    falls,
    listed,
    rivals_in,
    wide,
)
from counterveil_lab.reproduce.protocol import Claim, Judge, Judged, Tables, Verdict
from counterveil_lab.reproduce.rivals.apart import MODEL_MB, STEPS


def _of(tables: Tables) -> pd.DataFrame:
    return wide(tables[COMPARISON])


def _absent(method: str) -> Judged:
    return Judged(
        Verdict.CANNOT_BE_CHECKED, "", f"{method} was not run: its packages are apart, or it takes too long"
    )


def all_fall(tables: Tables) -> Judged:
    """Judge whether every method's error falls with the budget."""
    found = _of(tables)
    by_method = {name: falls(found, name) for name in (*OWN, *rivals_in(found))}
    missed = [name for name, each in by_method.items() if not all(each)]
    fallen = sum(sum(each) for each in by_method.values())
    every = sum(len(each) for each in by_method.values())
    why = "errors at the largest budget beside the smallest" + (
        f"; not so: {', '.join(missed)}" if missed else ""
    )
    return Judged.of(not missed, f"{fallen} of {every} lines fall", why)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def beats_all(own: str) -> Judge:
    """Return what decides whether a level of PrivATE has the least error at every point."""

    def judge(tables: Tables) -> Judged:
        found = _of(tables)
        rivals = found[rivals_in(found)]
        best = rivals.min(axis=1)
        lost, clearly = found[own] > best, found[own] > CLEAR * best
        trivial = int((found["difference in means"] < found[own]).sum())
        why = (
            f"a private difference in means, not in the paper, is closer at {trivial} of {len(found)} points"
        )
        if clearly.any():
            who = rivals[clearly].idxmin(axis=1).value_counts()
            why = f"clearly better: {', '.join(f'{name} {_times(count)}' for name, count in who.items())}; {why}"
        number = f"least error at {int((~lost).sum())} of {len(found)} points"
        return Judged.of(False if clearly.any() else None if lost.any() else True, number, why)

    return judge


def label_before_sample(tables: Tables) -> Judged:
    """Judge whether label level is ahead of sample level everywhere."""
    found = _of(tables)
    better = int((found[LABEL] <= found[SAMPLE]).sum())
    return Judged.of(
        better == len(found), f"{better} of {len(found)} points", "error at label level is the smaller one"
    )


def lalonde_at_three(tables: Tables) -> Judged:
    """Judge the errors on LaLonde at epsilon 3."""
    part = at(_of(tables), 3.0)
    part = part[part["data"] == "LaLonde"].iloc[0]
    rivals = [name for name in rivals_in(_of(tables)) if part[name] == part[name]]
    large = sum(part[name] > USELESS for name in rivals)
    own = max(part[LABEL], part[SAMPLE])
    number = f"label {part[LABEL]:.2f}, sample {part[SAMPLE]:.2f}; {large} of {len(rivals)} baselines above 1"
    return Judged.of(bool(own < 0.2 and large > len(rivals) / 2), number, f"at epsilon {part['epsilon']:g}")


def low_at_half(tables: Tables) -> Judged:
    """Judge whether label level has an error below 0.2 on several studies at epsilon 0.5."""
    part = at(_of(tables), 0.5)
    low = int((part[LABEL] < 0.2).sum())
    return Judged.of(low >= 2, f"{low} of {len(part)} studies", listed(part, LABEL))


def alike_at_four(tables: Tables) -> Judged:
    """Judge whether the two levels are alike at epsilon 4."""
    part = at(_of(tables), 4.0)
    ratio = part[SAMPLE] / part[LABEL]
    number = f"sample over label: {ratio.min():.1f} to {ratio.max():.1f}"
    return Judged.of(bool(ratio.max() < 2), number, "alike means less than twice the error")


def neighbours_alike(tables: Tables) -> Judged:
    """Judge whether errors hardly depend on the number of neighbours."""
    found = pd.concat([wide(tables["figure-7"]), _of(tables)])
    spread = [
        float(own.max() / own.min())
        for name in OWN
        for own in (group[name] for _, group in found.groupby(["data", "epsilon"]) if len(group) > 1)
    ]
    within = int(np.sum(np.array(spread) < 2))
    number = f"{within} of {len(spread)} points within a factor of 2, median factor {np.median(spread):.2f}"
    return Judged.of(
        within > 0.8 * len(spread), number, "largest over least error for 1, 3, 5 and 7 neighbours"
    )


def weighting_poorest(tables: Tables) -> Judged:
    """Judge whether IPW-PP is the worst on most studies at small budgets."""
    part = at(_of(tables), 0.5)
    names = rivals_in(part)
    worst = part[names].idxmax(axis=1)
    count = int((worst == "IPW-PP").sum())
    why = "worst at the smallest budget: " + ", ".join(
        f"{d} {w}" for d, w in zip(part["data"], worst, strict=True)
    )
    return Judged.of(count > len(part) / 2, f"{count} of {len(part)} studies", why)


def large_up_to(method: str) -> Judge:
    """Return what decides whether a baseline has errors of about 1 and more up to epsilon 1.5 on most studies."""

    def judge(tables: Tables) -> Judged:
        found = _of(tables)
        part = found[found["epsilon"] <= 1.5].groupby("data", sort=False)[method].mean()
        large = int((part > 0.8).sum())
        number = ", ".join(f"{name} {value:.2g}" for name, value in part.items())
        return Judged.of(
            large > len(part) / 2, number, "mean error up to epsilon 1.5; close to 1 means above 0.8"
        )

    return judge


def privsyn_at_one(tables: Tables) -> Judged:
    """Judge whether PrivSyn errs by more than the effect everywhere at epsilon 1."""
    part = at(_of(tables), 1.0)
    number = listed(part, "PrivSyn")
    why = "our PrivSyn is a reduced implementation after its paper, with the bins of a public rule"
    return Judged.of(bool((part["PrivSyn"] > USELESS).all()), number, why)


def private_below_one(tables: Tables) -> Judged:
    """Judge whether PrivATE errs by less than the effect everywhere."""
    found = _of(tables)
    worst = float(found[list(OWN)].max().max())
    above = int((found[list(OWN)] >= USELESS).to_numpy().sum())
    where = (
        "at no point"
        if not above
        else f"at {above} of {2 * len(found)} points it is no better than answering zero"
    )
    return Judged.of(above == 0, f"largest error {worst:.2f}", where)


def privsyn_flat(tables: Tables) -> Judged:
    """Judge whether PrivSyn stays near 1 on ACIC at all budgets."""
    found = _of(tables)
    own = found[found["data"] == "ACIC"]["PrivSyn"]
    near = bool(((own > 0.7) & (own < 1.4)).all())
    return Judged.of(
        near, f"{own.min():.2f} to {own.max():.2f}", "errors over all budgets; near 1 means 0.7 to 1.4"
    )


def privsyn_spread(tables: Tables) -> Judged:
    """Judge whether PrivSyn's errors vary more than those of PrivATE."""
    found = wide(tables[COMPARISON], "spread")
    more = int((found["PrivSyn"] > found[list(OWN)].max(axis=1)).sum())
    why = "standard deviation of the errors beside the larger one of PrivATE's two levels"
    return Judged.of(more > 0.9 * len(found), f"{more} of {len(found)} points", why)


def aim_between(tables: Tables) -> Judged:
    """Return the errors of AIM, PrivATE and PrivSyn where AIM was run: one synthesis of each point decides nothing."""
    found = _of(tables)
    if "AIM" not in found.columns:
        return _absent("AIM")
    part = found.dropna(subset=["AIM"])
    number = "; ".join(
        f"{row['data']} at {row['epsilon']:g}: AIM {row['AIM']:.2f}, PrivSyn {row['PrivSyn']:.2f}, "
        f"{LABEL} {row[LABEL]:.2f}, {SAMPLE} {row[SAMPLE]:.2f}"
        for _, row in part.iterrows()
    )
    why = f"one synthesis on the smallest study, with {STEPS} steps of a fit and models of at most {MODEL_MB} MB"
    return Judged.of(None, number, why)


_SECTION = "Section IV-B, Figure 2"
CLAIMS = (
    Claim("Errors of all methods fall as epsilon grows.", _SECTION, (COMPARISON,), all_fall),
    Claim(
        "PrivATE at label level beats every baseline on all data sets and budgets.",
        "Abstract, Figure 2",
        (COMPARISON,),
        beats_all(LABEL),
    ),
    Claim(
        "PrivATE at sample level beats every baseline on all data sets and budgets.",
        "Abstract, Figure 2",
        (COMPARISON,),
        beats_all(SAMPLE),
    ),
    Claim("Label level is the best, sample level follows.", _SECTION, (COMPARISON,), label_before_sample),
    Claim(
        "On LaLonde at epsilon 3 most baselines err by more than 1, PrivATE by less than 0.2.",
        _SECTION,
        (COMPARISON,),
        lalonde_at_three,
    ),
    Claim(
        "Label level errs by less than 0.2 on several data sets at epsilon 0.5.",
        "Introduction, Figure 2",
        (COMPARISON,),
        low_at_half,
    ),
    Claim("At epsilon 4 both levels perform alike.", _SECTION, (COMPARISON,), alike_at_four),
    Claim("PrivATE errs by less than 1 in all cases.", _SECTION, (COMPARISON,), private_below_one),
    Claim(
        "The number of neighbours hardly matters.",
        "Appendix G, Figure 7",
        (COMPARISON, "figure-7"),
        neighbours_alike,
    ),
    Claim(
        "IPW-PP is the poorest on most data sets, at small budgets above all.",
        _SECTION,
        (COMPARISON,),
        weighting_poorest,
    ),
    Claim(
        "SmoothDPM errs by about 1 or more up to epsilon 1.5 on most data sets.",
        _SECTION,
        (COMPARISON,),
        large_up_to("SmoothDPM"),
    ),
    Claim(
        "DPCI errs by about 1 or more up to epsilon 1.5 on most data sets.",
        _SECTION,
        (COMPARISON,),
        large_up_to("DPCI"),
    ),
    Claim(
        "At epsilon 1 PrivSyn errs by more than 1 on all four data sets, by 4 on LaLonde.",
        _SECTION,
        (COMPARISON,),
        privsyn_at_one,
    ),
    Claim("On ACIC PrivSyn errs by about 1 at every budget.", _SECTION, (COMPARISON,), privsyn_flat),
    Claim("Errors of PrivSyn vary far more than those of PrivATE.", _SECTION, (COMPARISON,), privsyn_spread),
    Claim("AIM is worse than PrivATE and better than PrivSyn.", _SECTION, (COMPARISON,), aim_between),
)

"""What the paper says of matching over sites (Figures 8 to 11), judged."""

from __future__ import annotations

import numpy as np

from counterveil_lab.reproduce.papers.multi_site.errors import OUTSIDE, SD
from counterveil_lab.reproduce.papers.multi_site.judging import (
    EQUAL,
    HIGH,
    LOW,
    MATCHED,
    MATCHING,
    NO_WORSE,
    PRINTED,
    RULES,
    TRIALS,
    Lines,
    both,
    counted,
    in_general,
    leads,
    majority,
    of_all,
)
from counterveil_lab.reproduce.papers.multi_site.panels import Panel
from counterveil_lab.reproduce.protocol import Claim, Judged, Tables

_GLOBAL, _SMOOTH = PRINTED
# "Much better" is read as at least this many times.
_MUCH = 2.0
# Medians over thirty panels and methods are known better than one mean.
_MEDIAN = 1.1
_STUDIES = ("Synth", "IHDP", "LaLonde")


def _beat_rules(tables: Tables) -> Judged:
    ratios = {way: Lines(tables).ratio(MATCHED, way, RULES) for way in ("MVAgg", "IVW")}
    holds = both(*(leads(ratio, majority) for ratio in ratios.values()))
    number = "; ".join(f"{way}: {counted(ratio)}" for way, ratio in ratios.items())
    same = of_all(ratios["MVAgg"] == 1)
    why = (
        f"than the better rule, by {NO_WORSE} times or more; left out: MVAgg is the same as a rule in {same}"
    )
    return Judged.of(holds, number, why)


def _low_and_equal(tables: Tables) -> Judged:
    lines = Lines(tables)
    low, equal = [], []
    for panel in MATCHED:
        for method in PRINTED:
            ratio = lines.of(panel, method, "IVW") / lines.of(panel, method)
            low.append(float(ratio[LOW]))
            equal.append(float(ratio[EQUAL]))
    number = f"IVW / MVAgg, median: {np.median(low):.2f} at alpha 1/8, {np.median(equal):.2f} at alpha 1"
    holds = bool(np.median(low) > _MEDIAN and np.median(equal) < 1 / _MEDIAN)
    return Judged.of(
        holds, number, f"{len(low)} panels and methods; MVAgg is better where the ratio is above 1"
    )


def _least_spread(tables: Tables) -> Judged:
    lines = Lines(tables)
    held = lines.over(MATCHED, lines.no_worse("MVAgg", ("IVW",), SD))
    ratio = [
        min(float(lines.of(p, m, rule, SD)[HIGH]) for rule in RULES)
        / float(lines.of(p, m, "MVAgg", SD)[HIGH])
        for p in MATCHED
        for m in PRINTED
    ]
    number = f"at most {NO_WORSE} times IVW's in {of_all(held)}; at alpha 8 those of the better rule are "
    number += f"{np.median(ratio):.1f} times as large (median)"
    holds = in_general(held) and bool(np.median(ratio) >= _MUCH)
    return Judged.of(
        holds, number, "standard deviations of the absolute errors; three quarters are asked for"
    )


def _larger_errors(tables: Tables) -> Judged:
    lines = Lines(tables)
    trial = max(float(lines.of(panel, "published").max()) for panel in TRIALS)
    matched = min(float(lines.of(panel, method).min()) for panel in MATCHED for method in PRINTED)
    number = f"least error of matching {matched:.2g}, largest of the trials {trial:.2g}"
    return Judged.of(matched > trial, number, "MVAgg, all panels and alphas")


def _larger_gains(tables: Tables) -> Judged:
    lines = Lines(tables)

    def gain(panels: tuple[Panel, ...], methods: tuple[str, ...]) -> float:
        gains = [lines.of(p, m, rule) - lines.of(p, m) for p in panels for m in methods for rule in RULES]
        return float(np.mean(gains))

    matched, trial = gain(MATCHED, PRINTED), gain(TRIALS, ("published",))
    return Judged.of(
        matched > trial, f"{matched:.2g} against {trial:.2g}", "error less than a rule's, mean over panels"
    )


def _smooth_is_better(tables: Tables) -> Judged:
    lines = Lines(tables)
    times = {
        study: np.array([lines.of(p, _GLOBAL) / lines.of(p, _SMOOTH) for p in MATCHED if p.study == study])
        for study in _STUDIES
    }
    number = "global / smooth: " + ", ".join(
        f"{study} {np.median(one):.1f} (from {one.min():.2g} to {one.max():.2g})"
        for study, one in times.items()
    )
    holds = all(float(np.median(one)) >= _MUCH for one in times.values())
    why = "MVAgg, medians; strata with one treated in five (IHDP) make smooth noise as large as global noise"
    return Judged.of(holds, number, why)


def _global_near_one(tables: Tables) -> Judged:
    largest = max(float(Lines(tables).of(panel, _GLOBAL).max()) for panel in MATCHED)
    return Judged.of(largest >= 1, f"up to {largest:.2f}", "MVAgg, the worst panel and alpha")


def _smooth_below_one(tables: Tables) -> Judged:
    worst = [max(float(Lines(tables).of(p, _SMOOTH, way).max()) for p in MATCHED) for way in ("MVAgg", "IVW")]
    number = f"largest {worst[0]:.2f} (MVAgg), {worst[1]:.2f} (IVW)"
    return Judged.of(max(worst) < 1, number, "mean absolute errors, all panels and alphas")


def _smooth_at_high(tables: Tables) -> Judged:
    found = {panel.name: float(Lines(tables).of(panel, _SMOOTH)[HIGH]) for panel in MATCHED}
    worst = max(found, key=lambda name: found[name])
    held = np.array([error <= 0.1 * NO_WORSE for error in found.values()])
    why = f"MVAgg at alpha 8; the largest is {found[worst]:.2g} ({worst.split('-', 1)[1]})"
    return Judged.of(bool(held.all()), of_all(held, "panels"), why)


def _never_impossible(tables: Tables) -> Judged:
    lines = Lines(tables)
    shares = {
        (method, way): float(np.mean([lines.of(p, method, way, OUTSIDE) for p in MATCHED]))
        for method in PRINTED
        for way in ("MVAgg", "AggAll")
    }
    number = "outside [-1, 1]: " + "; ".join(
        f"{method}: {100 * shares[method, 'MVAgg']:.1f} % (AggAll {100 * shares[method, 'AggAll']:.1f} %)"
        for method in PRINTED
    )
    why = "single estimates of all panels and alphas; that their mean error is below 1 is another claim"
    return Judged.of(shares[_SMOOTH, "MVAgg"] == 0 and shares[_GLOBAL, "MVAgg"] == 0, number, why)


def _combine_or_not(tables: Tables) -> Judged:
    lines = Lines(tables)
    panels = [(p, m) for p in (*TRIALS, *MATCHED) for m in (PRINTED if p in MATCHED else ("published",))]
    ratio = np.array([lines.of(p, m, "AggLargest") / lines.of(p, m, "AggAll") for p, m in panels])
    combined, alone = 1 / ratio[:, EQUAL], ratio[:, LOW]
    number = f"AggAll at alpha 1: {counted(combined)}; AggLargest at 1/8: {counted(alone)}"
    holds = both(*(leads(one, majority) for one in (combined, alone)))
    return Judged.of(holds, number, "one site alone against all of them, by panel and method")


_TEXT = "Section IV-B2 (preprint 4.2.2), Figures 8-11"
_LATER = "Section IV-B2, Figures 8-11 (not in the preprint)"
_DISCUSSION = "Section IV-C (preprint 4.3)"
_ALL = ("figure-3", "figure-4", "figure-5", *MATCHING)
CLAIMS = (
    Claim("Matching: MVAgg and IVW beat AggAll and AggLargest in general.", _TEXT, MATCHING, _beat_rules),
    Claim(
        "Matching: MVAgg is the best for small alpha, IVW for alpha about 1.",
        _LATER,
        MATCHING,
        _low_and_equal,
    ),
    Claim(
        "Matching: MVAgg's standard deviations are as small as IVW's, and for large alpha far below the others'.",
        _TEXT,
        MATCHING,
        _least_spread,
    ),
    Claim("Matching has larger errors than the trials.", _TEXT, _ALL, _larger_errors),
    Claim(
        "What MVAgg gains over AggAll and AggLargest is larger in matching than in trials.",
        _TEXT,
        _ALL,
        _larger_gains,
    ),
    Claim("SmoothDPMatching is much better than GlobalDPMatching.", _TEXT, MATCHING, _smooth_is_better),
    Claim("Errors of GlobalDPMatching can be 1 or more.", _TEXT, MATCHING, _global_near_one),
    Claim(
        "SmoothDPMatching with MVAgg or IVW has errors below 1 in all cases.",
        _TEXT,
        MATCHING,
        _smooth_below_one,
    ),
    Claim(
        "SmoothDPMatching has errors of about 0.1 or less for large alpha.", _TEXT, MATCHING, _smooth_at_high
    ),
    Claim(
        "MVAgg never gives an impossible effect, whatever the budgets.",
        _DISCUSSION,
        MATCHING,
        _never_impossible,
    ),
    Claim(
        "With comparable budgets it is best to combine sites; a site with far less budget is better left out.",
        _DISCUSSION,
        _ALL,
        _combine_or_not,
    ),
)

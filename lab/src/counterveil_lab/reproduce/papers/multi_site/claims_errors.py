"""What the paper says, judged: randomised trials (Figures 3 to 5), and matching over sites (Figures 8 to 11)."""

from __future__ import annotations

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.papers.multi_site.errors import AGGREGATIONS, MEAN, OUTSIDE, SD
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
    every,
    in_general,
    leads,
    majority,
    most,
    of_all,
    of_figure,
)
from counterveil_lab.reproduce.papers.multi_site.panels import Panel
from counterveil_lab.reproduce.protocol import Claim, Judged, Tables

_TWO = of_figure(3)[0]
_STAR = of_figure(5)[0]
_FORM = "published"
_LEAD = f"a clear lead is one of {NO_WORSE} times or more"


def _never_worse(tables: Tables) -> Judged:
    lines = [Lines(tables).of(_TWO, _FORM, way) for way in AGGREGATIONS]
    step = max(float((line[1:] / line[:-1]).max()) for line in lines)
    return Judged.of(
        step <= NO_WORSE, f"largest step up: {step:.2f} times", "all ways of pooling, all alphas"
    )


def _matches_best(tables: Tables) -> Judged:
    held = Lines(tables).over((_TWO,), Lines(tables).no_worse("MVAgg", ("AggAll", "AggLargest", "IVW")))
    return Judged.of(
        most(held), of_all(held, "alphas"), f"no worse: at most {NO_WORSE} times the best of the others"
    )


def _over_different(tables: Tables, panel: Panel, measure: str = MEAN) -> Floats:
    """Return MVAgg over the least of the ways that answer differently: where it takes all sites it is AggAll."""
    own = Lines(tables).of(panel, _FORM, "MVAgg", measure)
    others = np.array([Lines(tables).of(panel, _FORM, way, measure) for way in (*RULES, "IVW")])
    found: Floats = own / np.where(others == own, np.inf, others).min(axis=0)
    return found


def _least_spread_of_trials(tables: Tables) -> Judged:
    ratio = _over_different(tables, _TWO, SD)
    holds = leads(ratio, majority)
    return Judged.of(
        holds, counted(ratio, "alphas"), f"than those of the ways that answer differently; {_LEAD}"
    )


def _all_is_worst(tables: Tables) -> Judged:
    errors = {way: float(Lines(tables).of(_TWO, _FORM, way)[LOW]) for way in AGGREGATIONS}
    others = max(error for way, error in errors.items() if way != "AggAll")
    ratio = others / errors["AggAll"]
    return Judged.of(
        leads(np.array([ratio]), every), f"{1 / ratio:.1f} times the error of the next at alpha 1/8", _LEAD
    )


def _largest_falls_behind(tables: Tables) -> Judged:
    ratio = Lines(tables).of(_TWO, _FORM, "AggLargest") / Lines(tables).of(_TWO, _FORM)
    number = f"{ratio[LOW]:.1f} times MVAgg's error at alpha 1/8, {ratio[HIGH]:.1f} at 8"
    return Judged.of(
        bool(ratio[HIGH] > NO_WORSE * ratio[LOW]), number, "the first site has the same budget throughout"
    )


def _inverse_variance(tables: Tables) -> Judged:
    ratio = Lines(tables).of(_TWO, _FORM, "IVW") / Lines(tables).of(_TWO, _FORM)
    number = f"IVW / MVAgg: {ratio[LOW]:.2f} at alpha 1/8, {ratio[EQUAL]:.2f} at 1, {ratio[HIGH]:.2f} at 8"
    # A ratio of ratios has four means, and twice the chance of a ratio of two.
    worse = leads(np.sqrt(ratio[[HIGH]] / ratio[LOW]), every)
    return Judged.of(worse, number, f"chance may change a ratio of ratios by {NO_WORSE**2:.1f} times")


def _trials_beat_rules(tables: Tables) -> Judged:
    ratios = {way: Lines(tables).ratio(of_figure(4), way, RULES) for way in ("MVAgg", "IVW")}
    holds = both(*(leads(ratio, majority) for ratio in ratios.values()))
    number = "; ".join(f"{way}: {counted(ratio)}" for way, ratio in ratios.items())
    same = of_all(ratios["MVAgg"] == 1)
    return Judged.of(holds, number, f"than the better rule; left out: MVAgg is the same as a rule in {same}")


def _largest_gap(tables: Tables, rule: str, named: str, places: slice, why: str) -> Judged:
    """Judge whether a rule's error exceeds MVAgg's the most in a proportion, by more than chance."""
    lines = Lines(tables)
    errors = {panel.cut: float(lines.of(panel, _FORM, rule)[places].mean()) for panel in of_figure(4)}
    gaps = {
        panel.cut: errors[panel.cut] - float(lines.of(panel, _FORM)[places].mean()) for panel in of_figure(4)
    }
    lead = gaps[named] - max(gap for cut, gap in gaps.items() if cut != named)
    chance = (NO_WORSE - 1) * max(errors.values())
    number = ", ".join(f"{cut} {gap:.2g}" for cut, gap in gaps.items())
    return Judged.of(None if abs(lead) < chance else lead > 0, number, f"{why}; chance may be {chance:.2g}")


def _uniform_gap(tables: Tables) -> Judged:
    return _largest_gap(tables, "AggLargest", "1:1:1", slice(None), "gap averaged over alphas")


def _unequal_gap(tables: Tables) -> Judged:
    why = "error of AggAll less that of MVAgg at alpha 1/8"
    return _largest_gap(tables, "AggAll", "18:1:1", slice(LOW, LOW + 1), why)


def _ivw_three(tables: Tables) -> Judged:
    ratio = Lines(tables).ratio(of_figure(4), "IVW", ("MVAgg",))
    smaller = ratio < 1
    number = f"smaller in {of_all(smaller)}; IVW / MVAgg {ratio.mean():.2f} on average"
    # Ways that are alike are ahead of each other in half of the cells, or by chance in a few more.
    holds = True if in_general(smaller) else None if most(smaller) else False
    return Judged.of(holds, number, "in general: in three quarters of the cells or more")


def _star_high(tables: Tables) -> Judged:
    lines = Lines(tables)
    ratio = _over_different(tables, _STAR)[HIGH - 1 :]
    errors = {way: lines.of(_STAR, _FORM, way)[HIGH - 1 :].mean() for way in AGGREGATIONS}
    number = ", ".join(f"{way} {error:.2g}" for way, error in errors.items())
    why = f"alpha 4 and 8, where MVAgg can be AggAll, against the ways that answer differently; {_LEAD}"
    return Judged.of(leads(ratio, every), number, why)


def _star_low(tables: Tables) -> Judged:
    ratio = (Lines(tables).of(_STAR, _FORM, "IVW") / Lines(tables).of(_STAR, _FORM))[:EQUAL]
    number = ", ".join(f"{one:.2f}" for one in ratio)
    return Judged.of(leads(ratio, every), number, f"IVW / MVAgg at alpha 1/8, 1/4, 1/2; {_LEAD}")


def _star_three(tables: Tables) -> Judged:
    ratio = Lines(tables).ratio((_STAR,), "MVAgg", RULES)
    same = of_all(ratio == 1, "alphas")
    why = f"than the better rule; left out: MVAgg is the same as a rule at {same}; {_LEAD}"
    return Judged.of(leads(ratio, every), counted(ratio, "alphas"), why)


_TRIALS_TEXT = "Section IV-B1 (preprint 4.2.1)"
_TRIALS = (
    Claim(
        "IST, two sites: no way of pooling gets worse as the second site's budget grows.",
        f"{_TRIALS_TEXT}, Figure 3",
        ("figure-3",),
        _never_worse,
    ),
    Claim(
        "IST, two sites: at most alphas MVAgg's error matches the best of the other ways.",
        f"{_TRIALS_TEXT}, Figure 3",
        ("figure-3",),
        _matches_best,
    ),
    Claim(
        "IST, two sites: MVAgg's standard deviations are mostly the smallest.",
        f"{_TRIALS_TEXT}, Figure 3",
        ("figure-3",),
        _least_spread_of_trials,
    ),
    Claim(
        "IST, two sites: AggAll is the worst if the second site has far less budget.",
        f"{_TRIALS_TEXT}, Figure 3",
        ("figure-3",),
        _all_is_worst,
    ),
    Claim(
        "IST, two sites: AggLargest falls behind as alpha grows.",
        f"{_TRIALS_TEXT}, Figure 3",
        ("figure-3",),
        _largest_falls_behind,
    ),
    Claim(
        "IST, two sites: IVW is about as good as MVAgg, but relatively worse at small alpha.",
        "Section IV-B1, Figure 3 (not in the preprint)",
        ("figure-3",),
        _inverse_variance,
    ),
    Claim(
        "IST, three sites: MVAgg and IVW beat AggAll and AggLargest in most cases.",
        f"{_TRIALS_TEXT}, Figure 4 (preprint Figure 5)",
        ("figure-4",),
        _trials_beat_rules,
    ),
    Claim(
        "IST: the gap between MVAgg and AggLargest is largest for sites of equal size.",
        f"{_TRIALS_TEXT}, Figure 4 (preprint Figure 5)",
        ("figure-4",),
        _uniform_gap,
    ),
    Claim(
        "IST: the gap between MVAgg and AggAll at small alpha is largest for 18:1:1.",
        f"{_TRIALS_TEXT}, Figure 4 (preprint Figure 5)",
        ("figure-4",),
        _unequal_gap,
    ),
    Claim(
        "IST, three sites: IVW is generally a little better than MVAgg.",
        "Section IV-B1, Figure 4 (not in the preprint)",
        ("figure-4",),
        _ivw_three,
    ),
    Claim("STAR: MVAgg is the best for large alpha.", "Section IV-B1, Figure 5", ("figure-5",), _star_high),
    Claim("STAR: IVW beats MVAgg for alpha below 1.", "Section IV-B1, Figure 5", ("figure-5",), _star_low),
    Claim(
        "STAR: MVAgg is better than AggAll and AggLargest at every alpha.",
        "preprint 4.2.1, Figure 4",
        ("figure-5",),
        _star_three,
    ),
)


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
        f"{method}: {100 * shares[method, 'MVAgg']:.1f}% (AggAll {100 * shares[method, 'AggAll']:.1f}%)"
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
_MATCHING_CLAIMS = (
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

CLAIMS = (*_TRIALS, *_MATCHING_CLAIMS)

"""What the paper says, judged: errors in trials and matching (Figures 3 to 5, 8 to 11), sensitivities, guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.published.strata import printed_log_sd, printed_smooth_change, printed_smoothness
from counterveil.published.strata_sensitivity import StratumCounts, local_change
from counterveil_lab.attacks.gallery import Claimed, papers
from counterveil_lab.reproduce.page import Claim, Judged, Tables
from counterveil_lab.reproduce.papers.multi_site.errors import (
    AGGREGATIONS,
    ALPHAS,
    MEAN,
    OUTSIDE,
    PANELS,
    SD,
    Matching,
    Panel,
    Rows,
    line,
)
from counterveil_lab.reproduce.papers.multi_site.sensitivities import BALANCED, DELTA

# The mean of 100 absolute errors has a standard error of about a twelfth of itself, a ratio of two such means of an
# eighth: less than two of these are no difference. Errors of one draw go together, so it is rather too much.
NO_WORSE = 1.25
# What holds in general holds in this part of the cells at least.
_GENERAL = 0.75
RULES = ("AggAll", "AggLargest")
LOW, EQUAL, HIGH = ALPHAS.index(0.125), ALPHAS.index(1.0), ALPHAS.index(8.0)
TRIALS = tuple(panel for panel in PANELS if panel.figure < 6)
MATCHED = tuple(panel for panel in PANELS if panel.figure > 7)
MATCHING = tuple(f"figure-{number}" for number in (8, 9, 10, 11))
PRINTED = ("published, global", "published, smooth")


def of_figure(number: int) -> tuple[Panel, ...]:
    """Return the panels of a figure."""
    return tuple(panel for panel in PANELS if panel.figure == number)


def printed_in(panel: Panel) -> tuple[str, ...]:
    """Return the published methods that a panel has."""
    return PRINTED if panel in MATCHED else ("published",)


@dataclass(frozen=True)
class Lines:
    """The lines of all tables, an array over alphas each."""

    tables: Tables

    def of(self, panel: Panel, method: str, pooled_by: str = "MVAgg", measure: str = MEAN) -> Floats:
        """Return one line."""
        found = self.tables[f"figure-{panel.figure}"]
        return line(found, panel.study, panel.cut, method, pooled_by, measure)

    def over(
        self,
        panels: tuple[Panel, ...],
        compare: Callable[[Panel, str], NDArray[np.bool_]],
        methods: tuple[str, ...] | None = None,
    ) -> NDArray[np.bool_]:
        """Return a comparison for every panel, published method and alpha, in one array."""
        return np.concatenate([compare(p, m) for p in panels for m in methods or printed_in(p)])

    def no_worse(
        self, own: str, others: tuple[str, ...], measure: str = MEAN
    ) -> Callable[[Panel, str], NDArray[np.bool_]]:
        """Return the comparison: `own` is no worse than the best of the others."""

        def compare(panel: Panel, method: str) -> NDArray[np.bool_]:
            best = np.min([self.of(panel, method, other, measure) for other in others], axis=0)
            held: NDArray[np.bool_] = self.of(panel, method, own, measure) <= NO_WORSE * best
            return held

        return compare

    def ratio(
        self, panels: tuple[Panel, ...], own: str, others: tuple[str, ...], measure: str = MEAN
    ) -> Floats:
        """Return `own` over the best of the others, for every panel, published method and alpha."""
        return np.concatenate(
            [
                self.of(p, m, own, measure)
                / np.min([self.of(p, m, other, measure) for other in others], axis=0)
                for p in panels
                for m in printed_in(p)
            ]
        )


def leads(ratio: Floats, need: Callable[[int], int]) -> bool | None:
    """Return whether an error is clearly below the others' in enough places; None where chance may decide.

    `ratio` is the error over the least of the others. Where it is one, both ways of pooling give the same answer: these
    places are left out. `need` says how many of the places that are left are enough.
    """
    left = ratio[ratio != 1]
    if not left.size:
        return None
    if (left <= 1 / NO_WORSE).sum() >= need(left.size):
        return True
    return False if (left < NO_WORSE).sum() < need(left.size) else None


def both(first: bool | None, second: bool | None) -> bool | None:
    """Return whether both hold: not if one does not, and None where it cannot be told."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def counted(ratio: Floats, what: str = "cells") -> str:
    """Return in how many places an error is clearly below the others', and above them, as text."""
    ahead, behind = int((ratio <= 1 / NO_WORSE).sum()), int((ratio >= NO_WORSE).sum())
    return f"clearly smaller in {ahead}, clearly larger in {behind} of {ratio.size} {what}"


def majority(size: int) -> int:
    """Return how many of so many are more than half."""
    return size // 2 + 1


def every(size: int) -> int:
    """Return how many of so many are all."""
    return size


def of_all(held: NDArray[np.bool_], what: str = "cells") -> str:
    """Return how many comparisons held, as text."""
    return f"{int(held.sum())} of {held.size} {what}"


def most(held: NDArray[np.bool_]) -> bool:
    """Return whether more than half of the comparisons held."""
    return bool(held.mean() > 0.5)


def in_general(held: NDArray[np.bool_]) -> bool:
    """Return whether three quarters of the comparisons held or more."""
    return bool(held.mean() >= _GENERAL)


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
# A power of N is close to -1 within this much.
_NEAR = 0.25
# So steep that no table farther away than 0 replacements counts: the smooth bound is the local one.
_STEEP = 50.0
_SMALL = 5


def _one_over_n(tables: Tables) -> Judged:
    own = tables["figure-6"]
    own = own[own["slope"] == BALANCED]
    size, bound = own["people"].to_numpy(float), own["printed S"].to_numpy(float)
    powers = np.diff(np.log(bound)) / np.diff(np.log(size))
    near = np.abs(powers + 1) <= _NEAR
    number = f"N S is {bound[0] * size[0]:.0f} at N = {size[0]:,.0f}, {(bound * size).max():.0f} at most, "
    number += f"{bound[-1] * size[-1]:.0f} at {size[-1]:,.0f}"
    why = f"the power of N is near -1 in {int(near.sum())} of {near.size} steps: from 500 people a stratum on"
    return Judged.of(bool(near.all()), number, why)


def _grows_with_imbalance(tables: Tables) -> Judged:
    own = tables["figure-7"]
    bound = own["printed S"].to_numpy(float)
    number = ", ".join(f"{value:.2g}" for value in bound)
    holds = bool((np.diff(bound) > 0).all())
    return Judged.of(holds, number, f"printed S at slopes {', '.join(map(str, own['slope']))}")


def _below_global(tables: Tables) -> Judged:
    largest = float(tables["figure-7"]["printed S"].max())
    return Judged.of(
        largest < 1, f"at most {largest:.2g}", "10,000 people, slopes up to 5; the global one is 1 + 1/N"
    )


def _advantage(tables: Tables) -> Judged:
    own = tables["figure-7"]
    ratio = (own["noise SD, printed global"] / own["noise SD, printed smooth"]).to_numpy(float)
    number = (
        f"global noise is {ratio[0]:.0f} times the smooth noise for balanced data, {ratio[-1]:.0f} at slope 5"
    )
    return Judged.of(bool(ratio[0] > ratio[-1]), number, "anticipated there, shown in no figure")


def _gallery(name: str) -> Judged:
    """Return what the auditor finds on the counterexample that the gallery keeps under this name."""
    entry = next(one for one in papers() if one.name == name)
    finding = entry.examine()
    return Judged.of(not finding.violated, Claimed(entry, finding).found, entry.fails)


def _unbiased(_: Tables) -> Judged:
    sd = printed_log_sd(printed_smoothness(1 / 3, DELTA / 3), 1 / 3, DELTA / 3)
    at, weight = np.polynomial.hermite_e.hermegauss(60)
    mean = float((weight * np.exp(sd * at - sd**2 / 2)).sum() / weight.sum())
    return Judged.of(
        abs(mean - 1) < 1e-9,
        f"mean of the factor on S: {mean:.6f}",
        "a log-normal of log SD s has the mean e^(s^2/2)",
    )


def _global_at_least(_: Tables) -> Judged:
    def moved(people: int) -> float:
        outcome = np.append(np.ones(people - 1), 0.0)
        place, alone = np.zeros(people, dtype=np.int64), np.append(np.zeros(people - 1, dtype=np.int64), 1)
        one, all_treated = np.arange(people) < people - 1, np.ones(people, dtype=bool)
        before = Matching(Rows({}, outcome, one, place), 2).effect
        return abs(before - Matching(Rows({}, outcome, all_treated, alone), 2).effect)

    found = min(moved(people) for people in (2, 3, 10))
    why = "the pair of the proof; from three people on the largest change is B (1 + 1/N), and noise for B too small"
    return Judged.of(found >= 1, f"{found:g} B", why)


def _local_bound(_: Tables) -> Judged:
    cells = [cell for cell in product(range(_SMALL + 1), repeat=2) if sum(cell)]
    worst = np.inf
    for pair in combinations_with_replacement(cells, 2):
        counts = StratumCounts.of(np.array([c[0] for c in pair]), np.array([c[1] for c in pair]), 2)
        proved = local_change(counts, "ATE", "single")
        if proved > 0:
            worst = min(worst, printed_smooth_change(counts, _STEEP) / proved)
    number = f"printed / proved bound at least {worst:.2f}"
    return Judged.of(worst >= 1, number, f"all tables of two strata with up to {_SMALL} people in each cell")


def _largest_loss(treatment_may_change: bool, people: int = 3) -> float:
    """Return the largest log ratio of the noisy sums by arm, in epsilons, over all neighbours of so many people."""
    values = tuple(product((0, 1), (0, 1)))  # treatment and outcome

    def sums(rows: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        return sum(y for t, y in rows if t), sum(y for t, y in rows if not t)

    losses = [0]
    for rows in product(values, repeat=people):
        for other in values:
            if treatment_may_change or other[0] == rows[0][0]:
                before, after = sums(rows), sums((other, *rows[1:]))
                losses.append(sum(abs(x - y) for x, y in zip(before, after, strict=True)))
    return float(max(losses))


def _same_arm(_: Tables) -> Judged:
    loss = _largest_loss(treatment_may_change=False)
    why = "one person's outcome enters the sum of one arm, which moves by B at most"
    return Judged.of(loss <= 1, f"log ratio at most {loss:g} epsilon", why)


def _other_arm(_: Tables) -> Judged:
    loss = _largest_loss(treatment_may_change=True)
    why = "there a neighbour may differ in treatment too: both sums move by B, so the parts are not disjoint"
    return Judged.of(loss <= 1, f"log ratio up to {loss:g} epsilon", why)


_FIGURES = "Section IV-B2 (preprint 4.2.2)"
PRIVACY_CLAIMS = (
    Claim(
        "Smooth sensitivity falls about as 1/N for balanced data.",
        f"{_FIGURES}, Figure 6",
        ("figure-6",),
        _one_over_n,
    ),
    Claim(
        "It grows with imbalance and is smallest for balanced data.",
        f"{_FIGURES}, Figure 7",
        ("figure-7",),
        _grows_with_imbalance,
    ),
    Claim(
        "It is below the global one, about 1, even for imbalanced data.",
        f"{_FIGURES}, Figure 7",
        ("figure-7",),
        _below_global,
    ),
    Claim(
        "The advantage of smooth over global noise is larger for balanced data.",
        "Section IV-C (preprint 4.3)",
        ("figure-7",),
        _advantage,
    ),
    Claim("The global sensitivity of matching is at least B.", "Proposition 1", (), _global_at_least),
    Claim("The printed bound on the local sensitivity holds.", "Theorem 1", (), _local_bound),
    Claim(
        "SmoothDPMatching keeps (epsilon, delta).",
        "Algorithm 2, Section II-A (preprint 2.1)",
        (),
        lambda _: _gallery("smooth sensitivity that is not smooth"),
    ),
    Claim(
        "The release of ln S keeps (epsilon, delta).",
        "Lemma 1",
        (),
        lambda _: _gallery("release of the smooth sensitivity"),
    ),
    Claim("The released smooth sensitivity is unbiased.", "Lemma 1", (), _unbiased),
    Claim(
        "The private difference in means keeps epsilon, by parallel composition.",
        "Section III-A1 of the published version, where neighbours keep their treatment",
        (),
        _same_arm,
    ),
    Claim(
        "The private difference in means keeps epsilon, by parallel composition.",
        "preprint 3.1.1, where neighbours may differ in treatment",
        (),
        _other_arm,
    ),
)

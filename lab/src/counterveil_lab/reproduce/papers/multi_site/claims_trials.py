"""What the paper says of randomised trials (Figures 3 to 5), judged."""

from __future__ import annotations

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.papers.multi_site.errors import AGGREGATIONS, MEAN, SD
from counterveil_lab.reproduce.papers.multi_site.judging import (
    EQUAL,
    HIGH,
    LOW,
    NO_WORSE,
    RULES,
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


def _least_spread(tables: Tables) -> Judged:
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


def _beat_rules(tables: Tables) -> Judged:
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


_TEXT = "Section IV-B1 (preprint 4.2.1)"
CLAIMS = (
    Claim(
        "IST, two sites: no way of pooling gets worse as the second site's budget grows.",
        f"{_TEXT}, Figure 3",
        ("figure-3",),
        _never_worse,
    ),
    Claim(
        "IST, two sites: at most alphas MVAgg's error matches the best of the other ways.",
        f"{_TEXT}, Figure 3",
        ("figure-3",),
        _matches_best,
    ),
    Claim(
        "IST, two sites: MVAgg's standard deviations are mostly the smallest.",
        f"{_TEXT}, Figure 3",
        ("figure-3",),
        _least_spread,
    ),
    Claim(
        "IST, two sites: AggAll is the worst if the second site has far less budget.",
        f"{_TEXT}, Figure 3",
        ("figure-3",),
        _all_is_worst,
    ),
    Claim(
        "IST, two sites: AggLargest falls behind as alpha grows.",
        f"{_TEXT}, Figure 3",
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
        f"{_TEXT}, Figure 4 (preprint Figure 5)",
        ("figure-4",),
        _beat_rules,
    ),
    Claim(
        "IST: the gap between MVAgg and AggLargest is largest for sites of equal size.",
        f"{_TEXT}, Figure 4 (preprint Figure 5)",
        ("figure-4",),
        _uniform_gap,
    ),
    Claim(
        "IST: the gap between MVAgg and AggAll at small alpha is largest for 18:1:1.",
        f"{_TEXT}, Figure 4 (preprint Figure 5)",
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

"""What the paper says of randomised trials (Figures 3 to 5), judged."""

from __future__ import annotations

import numpy as np

from counterveil.reproduce.papers.multi_site.errors import SD
from counterveil.reproduce.papers.multi_site.judging import (
    EQUAL,
    HIGH,
    LOW,
    NO_WORSE,
    RULES,
    Lines,
    Tables,
    judged,
    most,
    of_all,
    of_figure,
)
from counterveil.reproduce.papers.multi_site.repetition import AGGREGATIONS
from counterveil.reproduce.protocol import Claim, Judged

_TWO = of_figure(3)[0]
_STAR = of_figure(5)[0]
_FORM = "published"


def _never_worse(tables: Tables) -> Judged:
    lines = [Lines(tables).of(_TWO, _FORM, way) for way in AGGREGATIONS]
    step = max(float((line[1:] / line[:-1]).max()) for line in lines)
    return judged(step <= NO_WORSE, f"largest step up: {step:.2f} times", "all ways of pooling, all alphas")


def _matches_best(tables: Tables) -> Judged:
    held = Lines(tables).over((_TWO,), Lines(tables).no_worse("MVAgg", ("AggAll", "AggLargest", "IVW")))
    return judged(
        most(held), of_all(held, "alphas"), f"no worse: at most {NO_WORSE} times the best of the others"
    )


def _least_spread(tables: Tables) -> Judged:
    held = Lines(tables).over((_TWO,), Lines(tables).no_worse("MVAgg", ("AggAll", "AggLargest", "IVW"), SD))
    return judged(most(held), of_all(held, "alphas"), "no more than 1.1 times the smallest of the others")


def _all_is_worst(tables: Tables) -> Judged:
    errors = {way: Lines(tables).of(_TWO, _FORM, way)[LOW] for way in AGGREGATIONS}
    worst = max(errors, key=lambda way: errors[way])
    ratio = errors["AggAll"] / errors["MVAgg"]
    return judged(worst == "AggAll", f"{ratio:.1f} times MVAgg's error", "alpha 1/8: the worst is " + worst)


def _largest_falls_behind(tables: Tables) -> Judged:
    ratio = Lines(tables).of(_TWO, _FORM, "AggLargest") / Lines(tables).of(_TWO, _FORM)
    number = f"{ratio[LOW]:.1f} times MVAgg's error at alpha 1/8, {ratio[HIGH]:.1f} at 8"
    return judged(
        bool(ratio[HIGH] > NO_WORSE * ratio[LOW]), number, "the first site has the same budget throughout"
    )


def _inverse_variance(tables: Tables) -> Judged:
    ratio = Lines(tables).of(_TWO, _FORM, "IVW") / Lines(tables).of(_TWO, _FORM)
    number = f"IVW / MVAgg: {ratio[LOW]:.2f} at alpha 1/8, {ratio[EQUAL]:.2f} at 1, {ratio[HIGH]:.2f} at 8"
    why = "comparable, not worse at small alpha; a released variance counts as no less than that of the noise here"
    worse = bool(ratio[LOW] > NO_WORSE * ratio[HIGH])
    return judged(worse, number, "worse at small alpha" if worse else why)


def _beat_rules(tables: Tables) -> Judged:
    lines = Lines(tables)
    both = [lines.over(of_figure(4), lines.no_worse(way, RULES)) for way in ("MVAgg", "IVW")]
    strictly = [
        lines.over(of_figure(4), lines.no_worse(way, RULES, slack=1 / NO_WORSE)) for way in ("MVAgg", "IVW")
    ]
    held = both[0] & both[1]
    better = ", ".join(f"{name} {of_all(one)}" for name, one in zip(("MVAgg", "IVW"), strictly, strict=True))
    number = f"no worse in {of_all(held)}; better by a tenth: {better}"
    return judged(most(held), number, "from alpha 1 on MVAgg takes all sites and is AggAll")


def _uniform_gap(tables: Tables) -> Judged:
    lines = Lines(tables)
    gaps = {
        panel.cut: float((lines.of(panel, _FORM, "AggLargest") - lines.of(panel, _FORM)).mean())
        for panel in of_figure(4)
    }
    number = ", ".join(f"{cut} {gap:.2g}" for cut, gap in gaps.items())
    return judged(max(gaps, key=lambda cut: gaps[cut]) == "1:1:1", number, "gap averaged over alphas")


def _unequal_gap(tables: Tables) -> Judged:
    lines = Lines(tables)
    gaps = {
        panel.cut: float((lines.of(panel, _FORM, "AggAll") - lines.of(panel, _FORM))[LOW])
        for panel in of_figure(4)
    }
    number = ", ".join(f"{cut} {gap:.2g}" for cut, gap in gaps.items())
    why = "error of AggAll less that of MVAgg at alpha 1/8"
    return judged(max(gaps, key=lambda cut: gaps[cut]) == "18:1:1", number, why)


def _ivw_three(tables: Tables) -> Judged:
    held = Lines(tables).over(of_figure(4), Lines(tables).no_worse("IVW", ("MVAgg",), slack=1.0))
    ratio = np.mean([Lines(tables).of(p, _FORM, "IVW") / Lines(tables).of(p, _FORM) for p in of_figure(4)])
    return judged(
        most(held), f"{of_all(held)}; IVW / MVAgg {ratio:.2f} on average", "three sites, all proportions"
    )


def _star_high(tables: Tables) -> Judged:
    lines = Lines(tables)
    best = {way: lines.of(_STAR, _FORM, way)[HIGH - 1 :].mean() for way in AGGREGATIONS}
    number = ", ".join(f"{way} {error:.2g}" for way, error in best.items())
    held = best["MVAgg"] <= NO_WORSE * min(best.values())
    return judged(bool(held), number, "alpha 4 and 8; a tenth is no difference")


def _star_low(tables: Tables) -> Judged:
    ratio = Lines(tables).of(_STAR, _FORM, "IVW") / Lines(tables).of(_STAR, _FORM)
    held = bool((ratio[:EQUAL] < 1).all())
    return judged(
        held, ", ".join(f"{one:.2f}" for one in ratio[:EQUAL]), "IVW / MVAgg at alpha 1/8, 1/4, 1/2"
    )


def _star_three(tables: Tables) -> Judged:
    held = Lines(tables).over((_STAR,), Lines(tables).no_worse("MVAgg", RULES))
    return judged(
        bool(held.all()), of_all(held, "alphas"), "against AggAll and AggLargest; a tenth is no difference"
    )


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

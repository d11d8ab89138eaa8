"""Pictures of released results: an effect along a covariate, forests, targeting curves, balance, sensitivity.

In: released estimates and their intervals; axes are in the units of the result (outcome, ratio, share of
people, standardised difference). Out: matplotlib axes. Everything drawn was released before: plots spend
nothing. They need matplotlib, the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from counterveil.errors import refusal
from counterveil.privacy.caveats import Caveat
from counterveil.report.balance import THRESHOLD, balance_rows, overlap_rows, overlap_sentence
from counterveil.report.confounding import axis_reach, marked, named
from counterveil.report.measures import survival
from counterveil.report.pictures import (
    COLOURS,
    GREY,
    INK,
    PALE,
    PALER,
    WARNING,
    Scale,
    axis_label,
    canvas,
    comparable,
    finish,
    framed,
    legend,
    pyplot,
    zero_line,
)
from counterveil.report.text import percent

__all__ = [
    "balance",
    "confidence_curve",
    "effect_curve",
    "event_study",
    "forest",
    "overlap",
    "plan",
    "policy_curve",
    "sensitivity",
    "survival",
]


def effect_curve(
    model: Any,
    feature: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    points: int = 121,
    level: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw a model's effect along one numeric covariate, with its intervals and its band.

    Parameters
    ----------
    model : CateModel
        What `counterveil.cate` returned.
    feature : str, optional
        Covariate along the horizontal axis. Default: the first that holds numbers; a forest of reference
        points where there is none.
    at : mapping of str to value, optional
        Values of the other covariates; numbers left out are at the middle of their range, labels at the
        first.
    points : int, default 121
        Points that the curve is drawn through.
    level : float, optional
        Confidence level of intervals and band, in (0, 1). Default: that of the model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        A covariate that holds labels, or is not there: CV-P023. One effect for all: CV-P528. A level outside
        (0, 1): CV-P015. matplotlib, the extra ``plots``, is not installed: CV-E040.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> data = cv.datasets.dataset_1(800)
    >>> ask = {"protects": "outcome", "epsilon": 20, "delta": 1e-6, "noise": cv.SeededNoise(1)}
    >>> model = cv.cate(data.frame, data.study, method="series", **ask)
    >>> cv.plots.effect_curve(model, "x1").get_xlabel()
    'x1'
    """
    if feature is None:
        numeric = [name for name, one in model.study.covariates.items() if hasattr(one, "floats")]
        if not numeric or not model.heterogeneous:
            return forest(model, ax=ax)
        feature = numeric[0]
    columns, held = _along(model.study, feature, at or {}, points)
    x, effect = columns[feature], model.effect(columns)
    (low, high), (least, most) = model.interval(columns, level), model.band(columns, level)
    ax = canvas(ax)
    said = percent(model.level if level is None else level)
    _bands(ax, x, ((least, most), (low, high)), said, "point")
    ax.plot(x, effect, color=INK, lw=2, label="estimated effect")
    zero_line(ax, "y")
    ax.set_xlim(x[0], x[-1])
    ax.set_xlabel(feature)
    ax.set_ylabel(f"effect on {model.study.outcome_name}, in its units")
    legend(ax)
    note = f"Others held at {held}. " if held else ""
    finish(ax, f"Effect of {model.study.treatment} along {feature}", f"{note}{_noise(model)}", model)
    return ax


def _bands(ax: Any, x: Any, ends: Any, level: str, place: str) -> None:
    """Draw the band of a curve and its intervals at each place."""
    (least, most), (low, high) = ends
    ax.fill_between(x, least, most, color=PALER, lw=0, label=f"{level} band: holds for the whole curve")
    ax.fill_between(x, low, high, color=PALE, lw=0, label=f"{level} interval: holds at each {place} alone")


def forest(result: Any, *, ax: Any = None) -> Any:
    """Draw every effect or coefficient with its interval, and the one that holds for all.

    Means of moments are drawn around their estimates, in standard deviations of their columns.

    Parameters
    ----------
    result : any result of effects, Regression, Moments or ResultTable
        What a question, ``moments.regress(...)`` or `counterveil.etable` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        matplotlib, the extra ``plots``, is not installed: CV-E040.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> axes = cv.plots.forest(result)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['ATE']
    """
    facts = result.drawn_facts()
    effects = list(reversed(comparable(facts)))
    several = "simultaneous_interval" in effects[0]
    ax = canvas(ax, height=1.9 + 0.42 * len(effects))
    level = percent(facts["level"])
    scale = Scale.of(effects)
    for place, effect in enumerate(effects):
        if several:
            for ends in scale.pieces(effect["simultaneous_interval"]):
                ax.plot(ends, [place, place], "|-", color=PALE, lw=2.5, ms=9, mew=2)
        colour = PALE if effect.get("weight") == 0 else INK
        for ends in scale.pieces(effect["interval"]):
            ax.plot(ends, [place, place], color=colour, lw=4, solid_capstyle="butt")
        if effect.get("summary") and "prediction" in facts:
            for ends in scale.pieces(facts["prediction"]):
                ax.plot(ends, [place - 0.18] * 2, "|-", color=PALE, lw=2, ms=7, mew=2)
        mark = "D" if effect.get("summary") else "o"
        ax.plot(
            scale.held(effect["estimate"]), place, mark, color="white", ms=5, mec=colour, mew=1.5, zorder=5
        )
    scale.draw(ax)
    ax.set_yticks(range(len(effects)), [_with_size(effect) for effect in effects])
    ax.set_ylim(-0.6, len(effects) - 0.4)
    ax.set_xlabel(axis_label(facts))
    own = f"Strong: {level} interval of one effect. Faint: intervals that hold for all at once. "
    own += scale.note
    note = (
        own
        if several
        else scale.note + f"{level} intervals. " + "Faint: weight of zero. " * ("sites" in facts)
    )
    note += "Below the average: one more site. " * ("prediction" in facts)
    finish(ax, _title_of(facts) or result.view().title, note + _noise(result), result)
    return ax


def confidence_curve(
    result: Any, *, margin: float | tuple[float, float] | None = None, ax: Any = None
) -> Any:
    """Draw the two-sided p-value of every effect.

    Parameters
    ----------
    result : Result, Effect or Coefficient
        One number with its error.
    margin : float or pair of floats, optional
        Bounds to mark, in units of the effect.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        matplotlib, the extra ``plots``, is not installed: CV-E040.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> cv.plots.confidence_curve(result, margin=-2).get_ylabel()
    'two-sided p-value'
    """
    points = [one for one in result.confidence_curve() if np.isfinite(one["effect"])]
    ax = canvas(ax)
    ax.plot([one["effect"] for one in points], [one["p_value"] for one in points], color=INK, lw=2)
    (low, high), level = result.interval(), result.level
    ax.plot([low, high], [1 - level] * 2, "|-", color=PALE, lw=2.5, ms=9, mew=2, label=f"{percent(level)} CI")
    for bound in () if margin is None else np.atleast_1d(margin):
        ax.axvline(bound, color=WARNING, lw=1.2, ls="--")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("effect" if not hasattr(result, "report_facts") else axis_label(result.report_facts()))
    ax.set_ylabel("two-sided p-value")
    legend(ax)
    warning = result.guarantee.warning if hasattr(result, "guarantee") else None
    framed(
        ax,
        "Confidence curve",
        "P-values include the privacy noise." + " Dashed: margin." * (margin is not None),
        warning,
    )
    return ax


def event_study(result: Any, *, ax: Any = None) -> Any:
    """Draw the effect of every period with its interval, and the one that holds for all periods.

    Parameters
    ----------
    result : EventStudyResult
        What `counterveil.event_study` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        matplotlib, the extra ``plots``, is not installed: CV-E040.
    """
    facts = result.report_facts()
    effects, reference = facts["effects"], facts["reference_row"]
    places = [place for place in range(len(effects) + 1) if place != reference["place"]]
    ax = canvas(ax)
    for place, effect in zip(places, effects, strict=True):
        wide, own = effect.get("simultaneous_interval", effect["interval"]), effect["interval"]
        ax.plot([place, place], [wide["low"], wide["high"]], "_-", color=PALE, lw=2.5, ms=9, mew=2)
        ax.plot([place, place], [own["low"], own["high"]], color=INK, lw=4, solid_capstyle="butt")
        ax.plot(place, effect["estimate"], "o", color="white", ms=5, mec=INK, mew=1.5, zorder=5)
    ax.plot(reference["place"], 0.0, "D", color=GREY, ms=5, zorder=5)
    zero_line(ax, "y")
    ax.axvline(facts["earlier"] - 0.5, color=GREY, lw=1, zorder=1)
    names = [str(effect["name"]) for effect in effects]
    names.insert(reference["place"], reference["name"])
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel(f"effect on {facts['outcome']}, in its units")
    level = percent(facts["level"])
    note = (
        f"Strong: {level} interval of one period. Faint: intervals that hold for all at once. Diamond: reference. "
        "Vertical line: treatment starts. "
    )
    finish(ax, _title_of(facts), note + _noise(result), result)
    return ax


def balance(result: Any, *, ax: Any = None) -> Any:
    """Draw a love plot: absolute standardised differences of the covariates, before and after.

    Parameters
    ----------
    result : any result of effects, or Balance
        A result of public covariates and treatments, of matching or weighting.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        There is no balance of covariates: CV-P022. matplotlib, the extra ``plots``, is not installed:
        CV-E040.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> cv.plots.balance(result).get_xlabel()
    'absolute standardised difference'
    """
    source = result.balance().source
    rows = list(reversed(balance_rows(source.to_dict())))
    ax = canvas(ax, height=1.9 + 0.22 * len(rows))
    for label, inside, edge in (("before", "white", GREY), ("after", INK, INK)):
        sizes = [(row[f"difference_{label}"], place) for place, row in enumerate(rows)]
        known = [(abs(size), place) for size, place in sizes if size is not None]
        ax.plot(*np.array(known).reshape(-1, 2).T, "o", color=inside, mec=edge, ms=5, label=label)
    ax.axvline(THRESHOLD, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)
    ax.set_yticks(range(len(rows)), [row["covariate"] for row in rows])
    ax.set(xlim=(0, None), ylim=(-0.6, len(rows) - 0.4))
    ax.set_xlabel("absolute standardised difference")
    # Above the picture: points may lie anywhere in it.
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)
    finish(
        ax, "Balance of the covariates", f"Dashed at {THRESHOLD}. Covariates are public here: free.", source
    )
    return ax


def overlap(result: Any, *, ax: Any = None) -> Any:
    """Draw the propensity scores of both arms: the treated upwards, the controls downwards.

    Parameters
    ----------
    result : Result
        A result of public covariates and treatments, of matching or weighting.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        There are no propensity scores: CV-P026. matplotlib, the extra ``plots``, is not installed: CV-E040.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> cv.plots.overlap(result).get_xlabel()
    'propensity score'
    """
    found = overlap_rows(result.to_dict())
    if found is None:
        raise refusal("CV-P026", method=result.method, unit=result.guarantee.unit.value)
    edges = np.array(found["edges"])
    ax = canvas(ax)
    for arm, sign, colour in (("treated", 1, INK), ("control", -1, PALE)):
        counts = np.array(found[arm], np.float64)
        ax.bar(
            edges[:-1],
            sign * counts / max(counts.sum(), 1.0),
            np.diff(edges),
            align="edge",
            color=colour,
            ec="white",
            label=f"{arm} ({counts.sum():,.0f})",
        )
    ax.axhline(0.0, color=GREY, lw=1)
    for score in (THRESHOLD, 1 - THRESHOLD):
        ax.axvline(score, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)
    ax.set_xlim(edges[0], edges[-1])
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0%}")
    ax.set_xlabel("propensity score")
    ax.set_ylabel("part of the arm")
    legend(ax)
    said = f"{overlap_sentence(found)} (dashed). Covariates and treatment are public here: free."
    finish(ax, "Overlap of the arms", said, result)
    return ax


def sensitivity(analysis: Any, *, most: float | None = None, ax: Any = None) -> Any:
    """Draw the interval's end nearest to zero for omitted confounders of every strength.

    Of several effects each has a line, where its interval reaches zero.

    Parameters
    ----------
    analysis : any result of effects, or Sensitivity
        A result, or what its ``sensitivity()`` returned.
    most : float, optional
        Largest partial R squared with treatment and with outcome that is drawn, in (0, 1). By default it
        follows the figures.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        The interval is not for the effect: CV-P664. The number of rows is not known: CV-P667. matplotlib, the
        extra ``plots``, is not installed: CV-E040.

    Notes
    -----
    Contours are those of the end moved towards zero by S sqrt(R_y R_t / (1 - R_t)) (Cinelli and Hazlett
    2020).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> result = cv.ate(trial.frame, trial.study, protects="outcome", epsilon=1, noise=noise)
    >>> cv.plots.sensitivity(result, most=0.2).get_xlim() == (0.0, 0.2)
    True
    """
    facts = (analysis.sensitivity() if hasattr(analysis, "sensitivity") else analysis).to_dict()
    first = facts["effects"][0]
    if any(one["scale"] is None for one in facts["effects"]):
        raise refusal("CV-P667", got="no number of rows")
    reach = most or axis_reach(facts)
    shares = np.linspace(0.0, reach, 201)
    if len(facts["effects"]) > 1:
        return _thresholds(facts, shares, canvas(ax), analysis)
    bias = first["scale"] * np.sqrt(shares[:, None] * shares / np.maximum(1 - shares, 1e-9))
    sign = 1.0 if first["estimate"] >= 0 else -1.0
    end = (first["low"] if sign > 0 else first["high"]) - sign * bias
    ax = canvas(ax)
    lines = ax.contour(shares, shares, end, levels=8, colors=GREY, linewidths=0.8)
    ax.clabel(lines, fontsize=7.5, fmt="%.3g")
    if first["tipping_bias"] > 0:
        ax.contour(shares, shares, end, levels=[0.0], colors=WARNING, linewidths=2)
        ax.plot([], [], color=WARNING, lw=2, label="the interval reaches zero")
    for one in marked(facts, reach):
        ax.axvline(one["treatment_r2"], color=INK, lw=1, ls=(0, (4, 4)))
        ax.annotate(
            named(one), (one["treatment_r2"], reach), (3, -10), textcoords="offset points", fontsize=8
        )
    if facts["benchmarks"]:
        ax.plot([], [], color=INK, lw=1, ls=(0, (4, 4)), label="as strong with the treatment as a covariate")
    which, level = "lower" if sign > 0 else "upper", percent(facts["level"])
    note = (
        f"Lines: the {which} end of the {level} interval, privacy noise included, moved by the largest bias."
    )
    return _confounded(ax, facts, reach, note, analysis)


def _thresholds(facts: dict[str, Any], shares: Any, ax: Any, analysis: Any) -> Any:
    """Return the axes with a line for each effect: confounders that take its interval to zero."""
    for place, one in enumerate(facts["effects"]):
        needed = (one["tipping_bias"] / one["scale"]) ** 2 * (1 - shares[1:]) / shares[1:]
        style = ("-", "--", "-.", ":")[place // len(COLOURS) % 4]
        ax.plot(shares[1:], needed, style, color=COLOURS[place % len(COLOURS)], lw=2, label=one["name"])
    note = f"Right of and above a line, a confounder takes the effect's {percent(facts['level'])} interval to zero."
    return _confounded(ax, facts, shares[-1], note, analysis)


def _confounded(ax: Any, facts: dict[str, Any], reach: float, note: str, analysis: Any) -> Any:
    ax.set(xlim=(0, reach), ylim=(0, reach))
    ax.set_xlabel("share of what covariates leave of the treatment")
    ax.set_ylabel("share of what they leave of the outcome")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper right", fontsize=8, facecolor="white", edgecolor="none", framealpha=0.9)
    finish(ax, f"Unmeasured confounding: {facts['treatment']} on {facts['outcome']}", note, analysis)
    return ax


def plan(planned: Any, *, ax: Any = None) -> Any:
    """Draw a plan's half-widths against epsilon, a line for each number of people.

    Of a plan of all methods it shows one point a method, the shortest of each level first.

    Parameters
    ----------
    planned : Plan
        What `counterveil.plan` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        matplotlib, the extra ``plots``, is not installed: CV-E040.
    """
    facts = planned.to_dict()
    answers = [one for one in facts["answers"] if one["half_width"] is not None]
    if facts["public"]:
        return _methods(planned, answers, ax)
    ax = canvas(ax)
    sizes = sorted({one["rows"] for one in answers})
    for size, shade in zip(sizes, np.linspace(1.0, 0.35, len(sizes)), strict=True):
        points = sorted((one["epsilon"], one["half_width"]) for one in answers if one["rows"] == size)
        ax.plot(*np.array(points).T, "o-", color=INK, alpha=shade, lw=2, ms=5, label=f"{size:,} people")
    if facts["without_privacy"] is not None:
        ax.axhline(facts["without_privacy"], color=GREY, lw=1, ls=(0, (4, 4)), label=planned.beside)
    if facts["wanted"] is not None:
        ax.axhline(facts["wanted"], color=WARNING, lw=1.2, label="wanted")
    if facts["min_epsilon"] is not None:
        ax.plot(facts["min_epsilon"], facts["wanted"], "D", color=WARNING, ms=6)
    ax.set(xscale="log", yscale="log")
    ticks = sorted({one["epsilon"] for one in answers})
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.yaxis.set_major_locator(pyplot().matplotlib.ticker.LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("epsilon")
    ax.set_ylabel(f"half-width of the {percent(facts['level'])} interval")
    legend(ax)
    note = f"Medians of {facts['draws']} simulated studies. No private data were read and nothing was spent."
    framed(ax, f"Planned intervals: {facts['treatment']} on {facts['outcome']}", note, None)
    return ax


def _methods(found: Any, answers: list[dict[str, Any]], ax: Any) -> Any:
    """Return the axes with one point a method; what `auto` takes is filled."""
    ax = canvas(ax, height=1.9 + 0.34 * len(answers))
    said = [("epsilon", ", epsilon {:g}"), ("rows", ", {:,} people")]
    apart = [(field, words) for field, words in said if len({one[field] for one in answers}) > 1]
    names = []
    for place, one in enumerate(reversed(answers)):
        colour = GREY if Caveat.NOTHING_ADJUSTED in one["not_covered"] else INK
        ax.plot([0, one["half_width"]], [place, place], color=PALE, lw=1.5, zorder=1)
        fill = colour if one["chosen"] else "white"
        ax.plot(one["half_width"], place, "o", color=fill, mec=colour, mew=1.5, ms=7, zorder=5)
        at = "".join(words.format(one[field]) for field, words in apart)
        names.append(f"{one['protects']}: {one['method']}{at}")
    changes = [
        place
        for place in range(1, len(names))
        if names[place].split(":")[0] != names[place - 1].split(":")[0]
    ]
    for place in changes:
        ax.axhline(place - 0.5, color=PALER, lw=1)
    if found.without_privacy < np.inf:
        ax.axvline(found.without_privacy, color=GREY, lw=1, ls=(0, (4, 4)))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"half-width of the {percent(found.level)} interval")
    note = "Filled: what auto takes. Grey: not adjusted. Dashed: least squares without privacy."
    framed(ax, f"Methods and levels: {found.treatment} on {found.outcome}", note, None)
    return ax


def policy_curve(curve: Any, *, ax: Any = None) -> Any:
    """Draw what treating the highest ranked gains, share by share, with intervals and band.

    Parameters
    ----------
    curve : TargetingCurve
        What `counterveil.targeting_curve` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on; ``ax.figure.savefig("name.png")`` writes a file.

    Raises
    ------
    CounterveilError
        matplotlib, the extra ``plots``, is not installed: CV-E040.
    """
    facts = curve.to_dict()
    shares = np.concatenate([[0.0], facts["shares"]])
    gains = np.concatenate([[0.0], [one["estimate"] for one in facts["effects"]]])

    def ends(kind: str, end: str) -> Any:
        return np.concatenate([[0.0], [one[kind][end] for one in facts["effects"]]])

    ax = canvas(ax)
    level = percent(facts["level"])
    both = [[ends(kind, end) for end in ("low", "high")] for kind in ("simultaneous_interval", "interval")]
    _bands(ax, shares, both, level, "share")
    ax.plot(shares, gains, "o-", color=INK, lw=2, ms=4, label="treating the highest ranked")
    ax.plot([0, 1], [0, gains[-1]], "--", color=GREY, lw=1.2, label="treating the same share at random")
    zero_line(ax, "y")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_xlabel("share of people treated (as released)")
    cost = f" after a cost of {facts['cost']:g}" if facts["cost"] else ""
    ax.set_ylabel(f"gain in {facts['outcome']} per person{cost}")
    legend(ax)
    finish(ax, f"Targeting {facts['treatment']}: gain over treating nobody", _noise(curve), curve)
    return ax


def _along(study: Any, feature: str, at: Mapping[str, Any], points: int) -> tuple[dict[str, Any], str]:
    """Return columns along one covariate with the others held, and in words where they are."""
    domain = study.covariates.get(feature)
    if not hasattr(domain, "floats"):
        numeric = [name for name, one in study.covariates.items() if hasattr(one, "floats")]
        raise refusal(
            "CV-P023",
            feature=feature,
            numeric=", ".join(map(repr, numeric)) or "there is none",
            got="which holds labels" if domain is not None else "which the model does not have",
        )
    for name in at:
        if name not in study.covariates:
            raise refusal("CV-P023b", name=name, covariates=", ".join(map(repr, study.covariates)))
    columns: dict[str, Any] = {}
    held = []
    for name, domain in study.covariates.items():
        if name == feature:
            low, high = domain.floats()
            columns[name] = np.linspace(low, high, points)
            continue
        labels = getattr(domain, "labels", None)
        value = at.get(name, sum(domain.floats()) / 2 if labels is None else labels[0])
        column = np.empty(points, dtype=object if labels is not None else np.float64)
        column[:] = value
        columns[name] = column
        held.append(f"{name} = {value:g}" if isinstance(value, int | float) else f"{name} = {value}")
    return columns, ", ".join(held)


def _noise(result: Any) -> str:
    return f"Intervals include the privacy noise; spent: {result.spent}."


def _with_size(effect: dict[str, Any]) -> str:
    size = effect.get("size")
    name = str(effect["name"])
    if not size or " - " in name:
        return name
    about = "about " if effect.get("size_sd") else ""
    return f"{name}\n({about}{max(round(size), 0):,} people)"


def _title_of(facts: dict[str, Any]) -> str:
    if "by" in facts:
        return f"Effect of {facts['treatment']} on {facts['outcome']} by {', '.join(facts['by'])}"
    if "policy" in facts:
        return f"Value per person: {facts['policy']}"
    return str(facts.get("title", ""))

"""Measures, several results side by side, and survival in words, from the facts of a result.

In: facts: released estimates with their intervals, in units of the outcome, as ratios, or as people (numbers
needed to treat). Out: sentences, table rows and pictures of them. Numbers are rounded for reading, not
recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from counterveil.privacy import Adjacency, Budget, Guarantee, Protected, show
from counterveil.report.page import table
from counterveil.report.pictures import INK, Chart, axis, canvas, figure, finish, labels, pyplot, shape, ticks
from counterveil.report.text import (
    Cells,
    Facts,
    Item,
    View,
    few_words,
    from_to,
    percent,
    probability,
    rounded,
    span,
)
from counterveil.report.view import first_lines, guarantee_line

_DIFFERENCE, _NEEDED = "difference", "nnt"


def measured(facts: Facts) -> bool:
    """Return whether effects are on another scale than that of differences."""
    return str(facts.get("measure", _DIFFERENCE)) != _DIFFERENCE


def effect_noun(facts: Facts) -> str:
    """Return what the numbers of a result are called: "effect", or the name of the measure."""
    return str(facts["called"]) if measured(facts) else "effect"


def plural(noun: str) -> str:
    """Return the noun of several numbers: "risk ratios", "ratios of means", "numbers needed to treat"."""
    first, _, rest = noun.partition(" ")
    return f"{first}s {rest}" if rest.startswith(("of", "needed")) else f"{noun}s"


def estimated(facts: Facts) -> str:
    """Return the first words of a sentence that says what one estimate is."""
    if not measured(facts):
        return "The estimated effect is"
    between = "" if facts["measure"] in (_NEEDED, "lift") else " (treated over control)"
    return f"The {effect_noun(facts)}{between} is"


def value_words(facts: Facts, effect: Facts) -> tuple[str, str]:
    """Return an estimate and the ends of its interval as words of a sentence."""
    total = effect["std_error"]["total"]
    if facts.get("measure") == _NEEDED:
        return f"{_amount(effect)} for one outcome {_way(effect['estimate'])}", _ends(effect)
    return rounded(effect["estimate"], total), from_to(effect["interval"], total)


def direction_words(facts: Facts, effect: Facts) -> str:
    """Return what treatment does to the outcome, on the scale of the measure."""
    treatment, outcome = f"“{facts['treatment']}”", f"“{facts['outcome']}”"
    estimate, error = effect["estimate"], effect["std_error"]["total"]
    amount, measure = rounded(estimate, error), facts["measure"]
    mean = f"With {treatment}, the mean of {outcome} is estimated to be"
    if measure == _NEEDED:
        return f"For one outcome {_way(estimate)}, an estimated {_amount(effect)} people have to be treated"
    if measure == "odds_ratio":
        return f"With {treatment}, the odds of {outcome} are estimated to be {amount} times those without"
    if measure == "lift" and estimate is not None:
        size = rounded(100 * abs(estimate), None if error is None else 100 * error)
        way = "higher" if estimate >= 0 else "lower"
        return f"{mean} {size}% {way} than without, a lift of {amount}"
    return f"{mean} {amount} times that without"


def needed_sentence(effect: Facts) -> str:
    """Return a number needed to treat and its interval without signs: for one outcome more or fewer."""
    level = f"{percent(effect['interval']['level'])} interval {_ends(effect)}"
    amount, way = _amount(effect), f"treated for one outcome {_way(effect['estimate'])}"
    return f"{amount} {way} ({level})" if effect["interval"].get("gap") else f"{amount} ({level}) {way}"


def _amount(effect: Facts) -> str:
    estimate = effect["estimate"]
    return "infinitely many" if estimate is None else rounded(abs(estimate), effect["std_error"]["total"])


def _ends(effect: Facts) -> str:
    """Return the ends of an interval, or its two parts with what each is for (Altman 1998)."""
    ends, error, estimate = effect["interval"], effect["std_error"]["total"], effect["estimate"]
    if not ends.get("gap"):
        low, high = sorted(abs(ends[end]) for end in ("low", "high"))
        return f"{rounded(low, error)} to {rounded(high, error)}"
    parts = [f"at least {_end(end)} for one {_way(end)}" for end in ends["gap"] if end is not None]
    # The direction of the estimate comes first.
    return " or ".join(parts if estimate is not None and estimate < 0 else parts[::-1]) or "every number"


def _end(value: float) -> str:
    """Return the end of a part, whose standard error says nothing, with three digits."""
    return rounded(abs(value), abs(value) / 10)


def _way(value: float | None) -> str:
    return "fewer" if value is not None and value < 0 else "more"


_SHOWN_BY = {"superiority": "superior", "noninferiority": "non-inferior", "equivalence": "equivalent"}
_CONTRADICTED = {"superiority": "Not superior", "noninferiority": "Inferior", "equivalence": "Not equivalent"}


def margin_sentence(facts: dict[str, Any]) -> str:
    """Return a test against a margin in words: its verdict, the bounds, the interval and p."""
    low, high = facts["bounds"]
    inside = f"between {low:.4g} and {high:.4g}" if None not in (low, high) else ""
    inside = inside or (f"above {low:.4g}" if high is None else f"below {high:.4g}")
    shown = _SHOWN_BY[facts["kind"]]
    verdict = {
        "met": f"{shown.capitalize()}: the effect is {inside}",
        "contradicted": f"{_CONTRADICTED[facts['kind']]}: the effect is not {inside}",
        "inconclusive": f"Inconclusive: not shown to be {shown}, with an effect {inside}",
    }[facts["verdict"]]
    ends = dict(zip(("low", "high"), facts["interval"], strict=True))
    estimate = "unbounded" if facts["estimate"] is None else f"{facts['estimate']:.4g}"
    return (
        f"{verdict}; estimate {estimate}, {percent(facts['level'])} interval {span(ends, None)}, "
        f"one-sided p {probability(facts['p_value'])}"
    )


_WORDS = 4  # of a method in a cell


def effects_of(facts: Facts) -> dict[str, Facts]:
    """Return the effects or coefficients of a result by the names of their rows; one effect is its treatment's."""
    found: list[Facts] = facts.get("coefficients") or facts["effects"]
    if len(found) != 1 or "estimand" not in facts:
        return {str(one["name"]): one for one in found}
    measure = facts.get("measure", "difference")
    own = "" if measure == "difference" else f", {measure.replace('_', ' ')}"
    return {f"{facts['treatment']}{own}": found[0]}


def side_by_side(results: Sequence[Facts], names: Sequence[str], full: bool = False) -> View:
    """Return the table, with the warnings of every column above it."""
    columns = [effects_of(facts) for facts in results]
    rows = []
    for name in dict.fromkeys(name for column in columns for name in column):
        held = [column.get(name) for column in columns]
        rows += [[name, *map(_estimate, held)], ["", *map(_interval, held)]]
    below: list[tuple[str, list[Any]]] = [
        ("outcome", [facts.get("response") or facts["outcome"] for facts in results]),
        ("estimand", [facts.get("estimand", "") for facts in results]),
        ("n", [_count(facts) for facts in results]),
        ("epsilon", [show(_spent(facts).epsilon) for facts in results]),
        ("delta", [show(_spent(facts).delta) for facts in results]),
        ("protects", [_protected(facts) for facts in results]),
        ("method", [few_words(str(facts.get("method", "")), _WORDS) for facts in results]),
        ("interval", [percent(facts["level"]) for facts in results]),
    ]
    effects = len(rows)
    rows += [[name, *cells] for name, cells in below if any(cells)]
    items: list[Item] = [("Cells", _READING)]
    if full:
        items += [(name, _source(facts)) for name, facts in zip(names, results, strict=True)]
    cells = Cells(["effect", *names], rows, "", effects)
    return View(_warnings(results, names), _TITLE, "", [cells], items, note=_READING)


def _source(facts: Facts) -> str:
    """Return what a column is of, by which method, and its guarantee."""
    cause = facts.get("received") or facts.get("treatment")
    what = facts.get("formula") or facts.get("title") or f"effect of {cause} on {facts['outcome']}"
    return "; ".join(filter(None, (what, facts.get("method"), guarantee_line(facts))))


def drawn_side_by_side(results: Sequence[Facts], names: Sequence[str]) -> Facts:
    """Return all effects for one forest; in their standard errors where outcomes or measures differ."""
    kinds = {
        (facts.get("response") or facts["outcome"], facts.get("measure", "difference")) for facts in results
    }
    apart = len(kinds) > 1 or any("coefficients" in facts for facts in results)
    effects = []
    for facts, column in zip(results, names, strict=True):
        for name, one in effects_of(facts).items():
            null, error = one.get("null") or 0.0, one["std_error"]["total"]
            said = f"{column} {name}" + f": {_estimate(one)}" * apart
            ends = {end: one["interval"][end] for end in ("low", "high")}
            scaled = {
                key: _scaled(value, null, error)
                for key, value in (ends | {"estimate": one["estimate"]}).items()
            }
            own = {"estimate": scaled.pop("estimate"), "interval": scaled, "null": 0.0}
            effects.append((own if apart else one | {"interval": ends}) | {"name": said})
    kept = [{key: value for key, value in one.items() if key != "simultaneous_interval"} for one in effects]
    axis = {"axis": "distance from no effect, in standard errors"} if apart else {}
    return results[0] | axis | {"title": _TITLE, "kind": "", "effects": kept}


def _scaled(value: float | None, null: float, error: float | None) -> float | None:
    found = None if value is None or not error else (value - null) / error
    return found if found is not None and isfinite(found) else None


_TITLE = "Results side by side"
_READING = (
    "Estimate (standard error), and below it the interval; both cover sampling error and privacy noise. What columns "
    "cost together is in their ledger."
)


def _warnings(results: Sequence[Facts], names: Sequence[str]) -> list[str]:
    said: dict[str, list[str]] = {}
    for facts, name in zip(results, names, strict=True):
        for text in first_lines(facts):
            said.setdefault(text, []).append(name)
    return [
        text if len(whose) == len(names) else f"{', '.join(whose)}: {text}" for text, whose in said.items()
    ]


def _estimate(effect: Facts | None) -> str:
    if effect is None:
        return ""
    error = effect["std_error"]["total"]
    return f"{rounded(effect['estimate'], error)} ({rounded(error, error)})"


def _interval(effect: Facts | None) -> str:
    return "" if effect is None else span(effect["interval"], effect["std_error"]["total"])


def _count(facts: Facts) -> str:
    rows = facts.get("rows") or facts.get("details", {}).get("rows")
    return f"{rows:,}" if isinstance(rows, int) else ""


def _protected(facts: Facts) -> str:
    adjacency = Adjacency(facts["guarantee"]["adjacency"])
    whose = "" if adjacency.whose is Protected.ROW else f", whole {adjacency.whose.value}"
    return f"{Guarantee.from_dict(facts['guarantee']).unit.value}{whose}"


def _spent(facts: Facts) -> Budget:
    return Budget.from_dict(facts["spent"])


_COLOURS = {"control": "#b3541e", "treated": INK}
_PALE = {"control": "#ecc9b2", "treated": "#9fc1d8"}
_PALER = {"control": "#f7e8de", "treated": "#d6e5ef"}
ARMS = ("treated", "control")
_CLASSES = {"control": "c1", "treated": "c0"}  # on a page
_SHOWN = 7  # columns of numbers at risk
_SENTENCE = "strong band: interval at each time alone; faint band: holds at all times at once"


def arm_rows(facts: Facts, arm: str) -> list[dict[str, Any]]:
    """Return the rows of one arm's curve, in the order of time."""
    found: list[dict[str, Any]] = []
    for row in facts["curves"]:
        if row["arm"] != arm:
            continue
        if found and facts["steps"]:
            # A step: level until the end of the cell.
            found.append(found[-1] | {"time": row["time"]})
        found.append(row)
    return found


def risk_columns(facts: Facts) -> list[tuple[float, dict[str, str]]]:
    """Return some times at which cells begin, and how many people of each arm were then at risk, as released."""
    times = [row["time"] for row in facts["curves"] if row["arm"] == ARMS[0]][:-1]
    step = max(1, -(-len(times) // _SHOWN))
    return [
        (times[place], {arm: f"{max(round(facts['at_risk'][arm][place]), 0):,}" for arm in ARMS})
        for place in range(0, len(times), step)
    ]


def curve_plot(facts: Facts) -> str:
    """Return a picture of both curves with their intervals and bands, and the numbers at risk below."""
    horizon = arm_rows(facts, ARMS[0])[-1]["time"]
    x, y = axis(0.0, horizon), axis(1.0, 0.0)

    def points(arm: str, key: str) -> list[tuple[float, float]]:
        return [(x(row["time"]), y(min(max(row[key], 0.0), 1.0))) for row in arm_rows(facts, arm)]

    inside = ""
    for kind in ("band_", ""):
        for arm in ARMS:
            ends = points(arm, f"{kind}high"), points(arm, f"{kind}low")
            inside += shape([*ends[0], *reversed(ends[1])], f"{_CLASSES[arm]}-band", closed=True)
    for arm in ARMS:
        inside += shape(points(arm, "estimate"), f"line {_CLASSES[arm]}{' dashed' * (arm == 'control')}")
    times = ticks(0.0, horizon, 6)
    chart = Chart(
        inside,
        "survival curves of both arms with intervals",
        [(x(time), text) for time, text in zip(times, labels(times), strict=True)],
        [(y(share), f"{share:g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)],
        across="time",
        up="probability of being free of the event",
    )
    caption = f"Line: treated. Dashed: control. {_SENTENCE[:1].upper()}{_SENTENCE[1:]}."
    columns = risk_columns(facts)
    risk = Cells(
        ["people at risk (released)", *(f"{time:.4g}" for time, _ in columns)],
        [[arm, *(counts[arm] for _, counts in columns)] for arm in ARMS],
        "People at risk when a cell begins, with noise",
    )
    drawn = figure(chart.html(), caption, "survival curves")
    return f"{drawn}{table(risk)}"


def survival(result: Any, *, ax: Any = None) -> Any:
    """Draw both arms' survival curves, their intervals and bands, and numbers at risk below.

    Parameters
    ----------
    result : SurvivalResult
        What `counterveil.survival` returned.
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
    >>> people = {
    ...     "arm": [row % 2 for row in range(600)],
    ...     "days": [10 + 7919 * row % 350 for row in range(600)],
    ...     "died": [int(row % 5 != 0) for row in range(600)],
    ... }
    >>> study = cv.Study.from_formula("Surv(days, died) ~ arm", {"days": (0, 360)}, assignment=cv.Trial())
    >>> result = cv.survival(people, study, protects="record", epsilon=2, noise=cv.SeededNoise(1))
    >>> cv.plots.survival(result).get_xlim() == (0.0, 360.0)
    True
    """
    facts = result.report_facts()
    own = ax is None
    if own:
        _, ax = pyplot().subplots(figsize=(7.2, 5.2), layout="constrained")
    ax = canvas(ax)
    level = percent(facts["level"])
    for kind, shades, alpha in (("band_", _PALER, 0.7), ("", _PALE, 0.6)):
        for arm in ARMS:
            rows = arm_rows(facts, arm)
            ends = ([row[f"{kind}low"] for row in rows], [row[f"{kind}high"] for row in rows])
            ax.fill_between([row["time"] for row in rows], *ends, color=shades[arm], alpha=alpha, lw=0)
    for arm in ARMS:
        rows = arm_rows(facts, arm)
        shares = [min(max(row["estimate"], 0.0), 1.0) for row in rows]
        style = "-" if arm == "treated" else (0, (6, 3))
        ax.plot([row["time"] for row in rows], shares, color=_COLOURS[arm], lw=2, ls=style, label=arm)
    horizon = arm_rows(facts, ARMS[0])[-1]["time"]
    ax.set(xlim=(0, horizon), ylim=(0, 1))
    ticks = [*risk_columns(facts), (horizon, dict.fromkeys(ARMS, ""))]
    ax.set_xticks([time for time, _ in ticks], [_under(time, counts) for time, counts in ticks])
    for arm, down in zip(ARMS, (-25, -37), strict=True):
        place = {
            "xy": (0, 0),
            "xytext": (-26, down),
            "xycoords": "axes fraction",
            "textcoords": "offset points",
        }
        ax.annotate(arm, **place, fontsize=9, color=_COLOURS[arm], ha="right", annotation_clip=False)
    ax.set_ylabel("probability of being free of the event")
    ax.set_xlabel("time, and people at risk when a cell begins (released, with noise)")
    ax.legend(loc="best", fontsize=9, facecolor="white", edgecolor="none", framealpha=0.9)
    note = f"{level}, {_SENTENCE}. Intervals include the privacy noise; spent: {result.spent}."
    finish(ax, f"Survival by {facts['treatment']}", note, result)
    ax.texts[-1].set_position((0, -66))
    return ax


def _under(time: float, counts: dict[str, str]) -> str:
    return "\n".join([f"{time:g}", *(counts[arm] for arm in ARMS)])

"""Sensitivity to omitted confounders in words, as tables and as a picture, from the facts of `Sensitivity.to_dict`."""

from __future__ import annotations

from math import ceil

from counterveil.report.pictures import Chart, axis, figure, line, shape, ticks, word
from counterveil.report.text import Block, Cells, Facts, Item, Named, Picture, Section, View, percent, rounded

_BENCHMARKS = 9  # rows of a short table: three covariates at three strengths
_NOTE = (
    "Computed from released numbers alone; nothing was spent. Intervals include the privacy noise. No figure here "
    "says whether there is such a confounder."
)


def sensitivity_view(facts: Facts, full: bool = False) -> View:
    """Return what is shown of a sensitivity analysis: warnings, a row for every effect, benchmarks, and the meaning."""
    benchmarks = benchmark_cells(facts, None if full else _BENCHMARKS)
    tables = [effect_cells(facts), *([benchmarks] if benchmarks else [])]
    title = f"Unmeasured confounding: effect of {facts['treatment']} on {facts['outcome']}"
    items = [*sensitivity_items(facts), ("Note", _NOTE)]
    lead = "how strong an omitted confounder would have to be"
    drawn = [Section("", [Picture(tipping_plot(facts))])]
    return View(list(facts["warnings"]), title, lead, tables, items, sections=drawn, note=_NOTE)


def effect_cells(facts: Facts) -> Cells:
    """Return the table of effects: the bias that takes the interval to zero, E-values and robustness values."""
    headings = ["", "estimate", f"{percent(facts['level'])} interval", "tipping"]
    headings += ["E-value", "E limit", "RV", "RV limit"]
    return Cells(headings, [_row(one) for one in facts["effects"]], "What each effect withstands")


def _row(one: Facts) -> list[str]:
    digits = max(one["high"] - one["low"], 1e-300) / 4
    return [
        one["name"],
        rounded(one["estimate"], digits),
        f"[{rounded(one['low'], digits)}, {rounded(one['high'], digits)}]",
        rounded(one["tipping_bias"], digits),
        _number(one["e_value"]),
        _number(one["e_value_limit"]),
        _share(one["robustness"]),
        _share(one["robustness_limit"]),
    ]


def benchmark_cells(facts: Facts, most: int | None = None) -> Cells | None:
    """Return the table of confounders as strong as covariates; None where there are none."""
    rows = facts["benchmarks"][:most]
    if not rows:
        return None
    headings = ["confounder like", "explains of treatment", "needs of outcome"]
    cells = [[named(one), _share(one["treatment_r2"]), _needed(one["outcome_r2"])] for one in rows]
    return Cells(headings, cells, "Confounders as strong as a covariate")


def named(one: Facts) -> str:
    """Return a benchmark in words: the covariate, and how many times as strong."""
    return str(one["covariate"]) if one["times"] == 1 else f"{one['times']:g} x {one['covariate']}"


def sensitivity_items(facts: Facts) -> list[Item]:
    """Return what the figures mean, in sentences; of several effects in general."""
    effects = facts["effects"]
    if len(effects) == 1:
        return _single(facts, effects[0])
    return [
        (
            "Tipping",
            "tipping bias: the least that takes an effect's interval to zero; 0 where it already includes zero, and no "
            "confounding is needed to explain the effect",
        ),
        (
            "E-value",
            "a confounder with smaller risk ratios, both with treatment and with outcome, cannot explain the effect "
            f"away; {_how(facts, {})}",
        ),
        (
            "RV",
            "robustness value: no confounder that explains less of both treatment and outcome reaches zero",
        ),
        *_asked(facts),
    ]


def _single(facts: Facts, one: Facts) -> list[Item]:
    digits = max(one["high"] - one["low"], 1e-300) / 4
    nothing = "the interval already includes no effect; no confounding is needed to explain it"
    if one["tipping_bias"] == 0 and one["e_value_limit"] == 1:
        return [("Tipping", nothing), *_asked(facts)]
    if one["tipping_bias"] == 0:
        tipping = "the interval of the difference includes zero"
    else:
        part = one["tipping_bias"] / abs(one["estimate"])
        bias = rounded(one["tipping_bias"], digits)
        # E-values are those of a ratio; bias is one of the difference, whatever the measure.
        whose, its = ("estimate", "the") if facts["measure"] == "difference" else ("difference", "its")
        tipping = f"a bias of {bias}, {percent(part, '.0f')} of the {whose}, takes {its} interval to zero"
    items = [
        ("Tipping", tipping),
        (
            "E-value",
            f"{_number(one['e_value'])}, of the interval's limit {_number(one['e_value_limit'])}: a confounder with "
            "smaller risk ratios, both with treatment and with outcome, cannot explain it away; "
            f"{_how(facts, one)}",
        ),
    ]
    if one["robustness"] is not None:
        items.append(
            (
                "RV",
                f"robustness value {_share(one['robustness'])}, of the interval {_share(one['robustness_limit'])}: no "
                "confounder that explains less of both, what covariates leave of treatment and of outcome, takes it "
                "to zero",
            )
        )
    return items + _asked(facts)


def _how(facts: Facts, one: Facts) -> str:
    if facts["how"] == "standardised":
        known = (
            "" if one.get("sd") is None else f" with an outcome SD of {rounded(one['sd'], one['sd'] / 10)}"
        )
        # Risk ratios of rare events are far from 1 where differences are small.
        rare = (
            "; the means of both arms were not released, and where events are rare this is far too small: "
            'ask for measure="ratio", or give baseline='
        )
        return f"approximate, from the standardised difference{known}{rare if facts['risks'] else ''}"
    return {"means": "from the released means", "baseline": "from the declared baseline"}[facts["how"]]


def _asked(facts: Facts) -> list[Item]:
    asked = facts["asked"]
    if asked is None:
        return []
    known = [one for one in facts["effects"] if one["bias"] is not None]
    said = "; ".join(
        f"{one['name']}: bias at most {rounded(one['bias'], one['high'] - one['low'])}, interval "
        f"[{rounded(one['adjusted_low'], one['high'] - one['low'])}, "
        f"{rounded(one['adjusted_high'], one['high'] - one['low'])}]"
        for one in known
    )
    shares = f"explaining {_share(asked['treatment_r2'])} of treatment and {_share(asked['outcome_r2'])} of outcome"
    return [("Asked", f"a confounder {shares}: {said or 'not known, as the number of rows is not'}")]


def confounding_blocks(facts: Facts) -> list[Block]:
    """Return what a report of a result says of omitted confounders; nothing where there is nothing to say."""
    found = facts.get("confounding")
    if not found:
        return []
    like = benchmark_cells(found)
    said: list[Block] = [effect_cells(found), Named(sensitivity_items(found)), Picture(tipping_plot(found))]
    return [*said, *([like] if like else []), _NOTE]


_POINTS = 60
_PARTS = (0.75, 0.5, 0.25)  # of the interval's nearer end that a contour leaves


def tipping_plot(facts: Facts) -> str:
    """Return contours: the confounders, by their shares of treatment and outcome, that move the interval's end so far.

    Those beyond the last take it to zero. Empty for several effects, and where the interval covers zero or no bound is
    known.
    """
    (first, *others) = facts["effects"]
    if others or not first["scale"] or not first["tipping_bias"]:
        return ""
    most = axis_reach(facts)
    place = axis(0.0, most)

    def contour(bias: float) -> list[tuple[float, float]]:
        squared = (bias / first["scale"]) ** 2
        start = squared / (squared + most)
        shares = [start + (most - start) * k / _POINTS for k in range(_POINTS + 1)]
        return [(place(one), 100 - min(place(squared * (1 - one) / one), 100.0)) for one in shares]

    last = contour(first["tipping_bias"])
    inside = shape([*last, (100.0, 0.0), (last[0][0], 0.0)], "warn-fill", closed=True)
    for part in _PARTS:
        inside += shape(contour((1 - part) * first["tipping_bias"]), "thin")
    inside += shape(last, "line warn")
    for row, one in enumerate(marked(facts, most)):
        across = place(one["treatment_r2"])
        # Names stand below one another, so that they do not run into each other.
        name = word(across, 14 + 16 * row, _short(named(one)), "said")
        inside += line((across, 0), (across, 100), "zero") + name
    marks = [(place(share), _share(share)) for share in ticks(0.0, most, 6)]
    chart = Chart(
        inside,
        f"confounders that take the interval to zero; robustness value {_share(first['robustness_limit'])}",
        marks,
        [(100 - at, text) for at, text in marks],
        across="share of the treatment that a confounder explains",
        up="share of the outcome that it explains",
    )
    caption = (
        "Shaded: confounders that take the interval to zero. Thin lines: those that leave 75, 50 and 25% of its "
        "nearer end. Dashed: as strong with the treatment as a covariate."
    )
    return figure(chart.html(), caption, "contours of omitted confounding")


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"


def axis_reach(facts: Facts) -> float:
    """Return how far both axes go: beyond the robustness value and the strongest covariate, at most to 1."""
    strengths = [one["treatment_r2"] for one in facts["benchmarks"] if one["times"] == 1]
    value = float(facts["effects"][0]["robustness"])
    most = max(1.6 * value, 1.15 * max(strengths, default=0.0), 0.02)
    step = 0.02 if most <= 0.1 else 0.1
    return min(1.0, step * ceil(most / step))


def marked(facts: Facts, most: float) -> list[Facts]:
    """Return the benchmarks of the strongest covariates at their own strength, those apart from each other."""
    found: list[Facts] = []
    for one in facts["benchmarks"]:
        near = any(abs(one["treatment_r2"] - other["treatment_r2"]) < most / 12 for other in found)
        if one["times"] == 1 and not near and len(found) < 4:
            found.append(one)
    return found


def _number(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    if value is None:
        return "not known"
    return percent(value, ".1f" if 0 < value < 0.0995 else ".0f")


def _needed(value: float | None) -> str:
    if value is None:
        return "not known"
    return "cannot" if value > 1 else _share(value)

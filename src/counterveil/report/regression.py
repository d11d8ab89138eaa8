"""Released moments and regressions from them as text.

In: the facts of `to_dict` of moments or of a regression: coefficients with standard errors in units of the outcome per
unit of the covariate, which hold sampling and privacy noise already. Out: tables and lines of text, rounded to the
errors. Only released and public numbers are read, so that nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.caveats import caveat_words
from counterveil.report.text import (
    Cells,
    Facts,
    Item,
    View,
    percent,
    probability,
    rounded,
    with_interval,
    wrapped,
)
from counterveil.report.view import (
    details_sentence,
    effect_cells,
    first_lines,
    guarantee_line,
    provenance_items,
    short_caveats,
    table_note,
    unit_word,
)

# Names of the numbers of a trial with non-compliance.
INTENTION_TO_TREAT, TAKE_UP = "intention to treat", "take-up"
_WIDTH = 78
_ROUNDED = 5e-4  # what is printed as zero
_ROWS = 40  # columns of a short table
_LEAST = "regression from released moments; standard errors include the privacy noise"

_ERRORS = "{}; they include the noise"


def _kind(facts: Facts) -> str:
    return "HC1" if facts.get("cov_type") == "HC1" else "classical"


def moments_view(facts: Facts, full: bool = False) -> View:
    """Return the released columns, how regressions are asked, and the guarantee."""
    rows = facts["means"] if full else facts["means"][:_ROWS]
    left = len(facts["means"]) - len(rows)
    cells = Cells(
        ["column", "mean", "noise of it", "std. dev."],
        [
            [
                one["column"],
                rounded(one["mean"], one["se_noise"]),
                f"{one['se_noise']:.2g}",
                f"{one['sd']:.3g}",
            ]
            for one in rows
        ],
    )
    outcome, treatment = facts["outcome"], facts["treatment"]
    items: list[Item] = [
        ("Regress", f'free, as often as you like: moments.regress("{outcome} ~ {treatment} + ...")'),
        ("Guarantee", guarantee_line(facts)),
        ("Not covered", "; ".join(caveat_words(facts)) if full else short_caveats(facts)),
    ]
    if full:
        details = details_sentence(facts["details"], unit_word(facts))
        items += [("Details", details), *provenance_items(facts)]
    title = f"Second moments of {len(facts['columns'])} columns"
    lead = f"{facts['rows']:,} {unit_word(facts)}; means and standard deviations as released"
    more = [f"... and {left} more in moments.effects"] if left > 0 else []
    return View(first_lines(facts), title, lead, [cells], items, more, note=f"{guarantee_line(facts)}.")


def mean_facts(rows: list[dict[str, Any]], ends: Sequence[tuple[float, float]], level: float) -> Facts:
    """Return the means of columns as effects of a forest, around their estimates and in standard deviations."""
    effects = []
    for one, (low, high) in zip(rows, ends, strict=True):
        mean, sd, error = one["mean"], one["sd"], (high - low) / 4
        known = isfinite(high - low) and 0 < sd < inf
        around = {
            end: (value - mean) / sd if known else None for end, value in (("low", low), ("high", high))
        }
        name = f"{one['column']}: {with_interval(rounded(mean, error), {'low': low, 'high': high}, error)}"
        effects.append({"name": name, "estimate": 0.0, "interval": around})
    return {
        "level": level,
        "effects": effects,
        "axis": "distance from the released mean, in standard deviations",
    }


def regression_view(facts: Facts, full: bool = False) -> View:
    """Return the table of coefficients and what is to be said of them."""
    cells = effect_cells({"effects": facts["coefficients"], "level": facts["level"]})
    lead = (
        f"{facts['formula']}; {facts['method']} from released moments, {facts['rows']:,} {unit_word(facts)}"
    )
    title, note = f"Regression of {facts['response']}", table_note(facts)
    return View(first_lines(facts), title, lead, [cells], _notes(facts, full), note=note)


def compliance_view(facts: Facts, full: bool = False) -> View:
    """Return the three effects of a trial with non-compliance and what they assume."""
    cells = effect_cells(facts)
    assumed = (
        f"{facts['assigned']} is randomised, moves the outcome through {facts['received']} alone, and makes nobody "
        "refuse who would otherwise take it"
    )
    lead = f"{facts['rows']:,} {unit_word(facts)}; from one release of moments"
    title = f"Effects of {facts['assigned']} and of {facts['received']} on {facts['outcome']}"
    items = [("Compliers", assumed), *_notes(facts, full)]
    return View(first_lines(facts), title, lead, [cells], items, note=table_note(facts))


def _notes(facts: Facts, full: bool) -> list[Item]:
    first = [
        *_instruments(facts),
        *([("Absorbed", ", ".join(facts["absorbed"]))] if facts.get("absorbed") else []),
        *([] if facts.get("identified", True) else [("Interval", _UNKNOWN)]),
    ]
    if not full:
        # What the moments say of themselves is not repeated under every regression.
        errors = ("Std. errors", _ERRORS.format(_kind(facts)))
        return [*first, errors, ("Guarantee", guarantee_line(facts)), ("In full", ".full() or --json")]
    return [
        *first,
        ("Guarantee", guarantee_line(facts)),
        ("Errors", _LEAST + ("" if _kind(facts) == "HC1" else "; they need errors of equal variance")),
        ("Not covered", "; ".join(caveat_words(facts))),
    ]


_UNKNOWN = (
    "UNBOUNDED: the noise hides whether these columns determine the coefficients; take fewer columns, or release "
    "moments with a larger budget"
)


def _instruments(facts: Facts) -> list[Item]:
    """Return what is said of instruments: how strong they are, and which values they do not rule out."""
    kept, strength = facts.get("anderson_rubin"), facts.get("first_stage")
    if kept is None or strength is None:
        return []
    weak = ", WEAK: the standard error and t of 2SLS are not reliable" if facts["weak"] else ""
    found = [("First stage", f"F {strength:.1f}, noise included{weak}")]
    if not kept:
        said = "EMPTY: no value agrees with all instruments: one of them is not valid; interval and p are of 2SLS"
    else:
        said = " and ".join(f"[{ends[0]:.4g}, {ends[1]:.4g}]" for ends in kept)
        if not all(isfinite(end) for ends in kept for end in ends):
            said += ": UNBOUNDED, as the instruments are too weak to rule large values out"
        said += "; the p-value is of this test too"
    return [*found, ("AR interval", f"{percent(facts['level'])} {said}")]


def regression_text(facts: Facts) -> str:
    """Return a regression as statsmodels prints one."""
    double, single = "=" * _WIDTH, "-" * _WIDTH
    lines = [line for text in first_lines(facts) for line in wrapped(f"*** {text} ***")]
    name = "OLS" if facts["method"] == "OLS" else "IV-2SLS"
    lines += [f"{name} Regression Results".center(_WIDTH).rstrip(), double]
    lines += [_pair(*pair) for pair in _head(facts)] + [double]
    low, high = (1 - facts["level"]) / 2, (1 + facts["level"]) / 2
    wide = _WIDTH - sum(_WIDTHS)
    headings = ["coef", "std err", "noise", "t", "P>|t|", f"[{low:.3g}", f"{high:.3g}]"]
    lines += [
        " " * wide + _cells(headings),
        single,
    ]
    for one in facts["coefficients"]:
        lines += _row(one, wide)
    lines.append(double)
    for item, text in _notes(facts, full=False):
        lines += wrapped(text, f"{item}:".ljust(12) + " ")
    return "\n".join(lines)


# A space and a number; names have what is left of a line.
_WIDTHS = (10, 9, 9, 9, 7, 10, 10)


def _head(facts: Facts) -> list[tuple[str, str, str, str]]:
    plain, adjusted = _shares(facts)
    kind = "" if facts["centred"] else " (uncentered)"
    return [
        ("Dep. Variable:", facts["response"], f"R-squared{kind}:", plain),
        (
            "Model:",
            "OLS" if facts["method"] == "OLS" else "IV2SLS",
            f"Adj. R-squared{kind}:",
            adjusted,
        ),
        ("Method:", "released moments", "Residual Variance:", f"{facts['residual_variance']:.4g}"),
        ("No. Observations:", f"{facts['rows']}", "Df Residuals:", f"{facts['freedom']}"),
        (
            "Covariance Type:",
            f"{facts['cov_type']} + noise",
            "Budget:",
            str(Budget.from_dict(facts["spent"])),
        ),
    ]


def _shares(facts: Facts) -> tuple[str, str]:
    """Return R-squared and the adjusted one as text."""
    plain = facts["r_squared"]
    # Least squares explains no less than nothing; two-stage least squares may.
    if not isfinite(plain) or (facts["method"] == "OLS" and plain < -_ROUNDED):
        return "not determined (noise)", "not determined"
    adjusted = 1 - (1 - plain) * (facts["rows"] - facts["centred"]) / max(facts["freedom"], 1)
    return f"{plain:z.3f}", f"{adjusted:z.3f}"


def _pair(one: str, first: str, two: str, second: str) -> str:
    left = one + first[: 37 - len(one)].rjust(37 - len(one))
    return f"{left}   {two}{second.rjust(38 - len(two))}"


def _row(one: dict[str, Any], wide: int) -> list[str]:
    ends, error = one["interval"], one["std_error"]
    statistic = f"{one['statistic']:.3f}"
    cells = [
        *map(_number, (one["estimate"], error["total"], error["noise"])),
        statistic if len(statistic) < _WIDTHS[3] else _number(one["statistic"]),
        probability(one["p_value"]),
        _number(ends["low"]),
        _number(ends["high"]),
    ]
    name = one["name"]
    return [name.ljust(wide) + _cells(cells)] if len(name) <= wide else [name, " " * wide + _cells(cells)]


def _cells(texts: list[str]) -> str:
    return "".join(f" {text.rjust(width - 1)}" for text, width in zip(texts, _WIDTHS, strict=True))


def _number(value: float) -> str:
    """Return a number in eight signs and a minus, or the fewest that show three digits of it."""
    if not isfinite(value):
        return "open"
    if value == 0 or abs(value) >= 0.001:
        for decimals in (4, 3, 2, 1, 0):
            plain = f"{value:.{decimals}f}"
            if len(plain.lstrip("-")) <= _WIDTHS[1] - 1:
                return plain
    return f"{value:.3g}"

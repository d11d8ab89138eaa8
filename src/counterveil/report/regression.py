"""Released moments and regressions from them as text, from the facts of their `to_dict`."""

from __future__ import annotations

from math import isfinite
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.figures import details_sentence
from counterveil.report.text import wrapped
from counterveil.report.view import (
    Cells,
    Facts,
    Item,
    View,
    effect_cells,
    guarantee_line,
    percent,
    probability,
    rounded,
    short_caveats,
)

_WIDTH = 78
_ROWS = 40  # columns of a short table
_LEAST = "regression from released moments; standard errors include the privacy noise and need errors of equal variance"


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
        ("Not covered", "; ".join(facts["not_covered"]) if full else short_caveats(facts["not_covered"])),
    ]
    if full:
        items += _provenance(facts)
    title = f"Second moments of {len(facts['moments_of'])} columns"
    lead = f"{facts['rows']:,} rows; means and standard deviations as released"
    more = [f"... and {left} more in moments.effects"] if left > 0 else []
    return View(_first(facts), title, lead, [cells], items, more)


def _provenance(facts: Facts) -> list[Item]:
    spent = f"{Budget.from_dict(facts['spent'])} ({'; '.join(name for name, _ in facts['releases'])})"
    return [
        ("Details", details_sentence(facts["details"])),
        ("Public", "; ".join(facts["guarantee"]["public"])),
        ("Spent", spent),
        ("Proofs", ", ".join(facts["guarantee"]["pages"])),
    ]


def _first(facts: Facts) -> list[str]:
    return [facts["warning"]] if facts.get("warning") else []


def regression_view(facts: Facts, full: bool = False) -> View:
    """Return the table of coefficients and what is to be said of them."""
    cells = effect_cells({"effects": facts["coefficients"], "level": facts["level"]})
    lead = f"{facts['formula']}; {facts['method']} from released moments, {facts['rows']:,} rows"
    return View(_first(facts), f"Regression of {facts['response']}", lead, [cells], _notes(facts, full))


def compliance_view(facts: Facts, full: bool = False) -> View:
    """Return the three effects of a trial with non-compliance and what they assume."""
    cells = effect_cells(facts)
    assumed = (
        f"{facts['assigned']} is randomised, moves the outcome through {facts['received']} alone, and makes nobody "
        "refuse who would otherwise take it"
    )
    lead = f"{facts['rows']:,} rows; from one release of moments"
    title = f"Effects of {facts['assigned']} and of {facts['received']} on {facts['outcome']}"
    return View(_first(facts), title, lead, [cells], [("Compliers", assumed), *_notes(facts, full)])


def _notes(facts: Facts, full: bool) -> list[Item]:
    caveats = "; ".join(facts["not_covered"]) if full else short_caveats(facts["not_covered"])
    return [
        *_instruments(facts),
        *([] if facts.get("identified", True) else [("Interval", _UNKNOWN)]),
        ("Guarantee", guarantee_line(facts)),
        ("Errors", _LEAST),
        ("Not covered", caveats),
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
        said = " and ".join(_region(ends) for ends in kept)
        if not all(isfinite(end) for ends in kept for end in ends):
            said += ": UNBOUNDED, as the instruments are too weak to rule large values out"
        said += "; the p-value is of this test too"
    return [*found, ("AR interval", f"{percent(facts['level'])} {said}")]


def _region(ends: list[float]) -> str:
    return f"[{ends[0]:.4g}, {ends[1]:.4g}]"


def regression_text(facts: Facts) -> str:
    """Return a regression as statsmodels prints one."""
    double, single = "=" * _WIDTH, "-" * _WIDTH
    lines = [line for text in _first(facts) for line in wrapped(f"*** {text} ***")]
    name = "OLS" if facts["method"] == "OLS" else "IV-2SLS"
    lines += [f"{name} Regression Results".center(_WIDTH).rstrip(), double]
    lines += [_pair(*pair) for pair in _head(facts)] + [double]
    low, high = (1 - facts["level"]) / 2, (1 + facts["level"]) / 2
    wide = max([len(one["name"]) for one in facts["coefficients"]] + [8])
    wide = min(wide, 24)
    headings = ["coef", "std err", "noise", "t", "P>|t|", f"[{low:.3g}", f"{high:.3g}]"]
    lines += [
        " " * wide + "".join(text.rjust(width) for text, width in zip(headings, _WIDTHS, strict=True)),
        single,
    ]
    for one in facts["coefficients"]:
        lines += _row(one, wide)
    lines.append(double)
    for item, text in _notes(facts, full=False):
        lines += wrapped(text, f"{item}:".ljust(12) + " ")
    return "\n".join(lines)


_WIDTHS = (10, 9, 8, 8, 8, 10, 10)


def _head(facts: Facts) -> list[tuple[str, str, str, str]]:
    adjusted = 1 - (1 - facts["r_squared"]) * (facts["rows"] - 1) / max(facts["freedom"], 1)
    return [
        ("Dep. Variable:", facts["response"], "R-squared:", f"{facts['r_squared']:.3f}"),
        ("Model:", "OLS" if facts["method"] == "OLS" else "IV2SLS", "Adj. R-squared:", f"{adjusted:.3f}"),
        ("Method:", "released moments", "Residual Variance:", f"{facts['residual_variance']:.4g}"),
        ("No. Observations:", f"{facts['rows']}", "Df Residuals:", f"{facts['freedom']}"),
        ("Covariance Type:", "nonrobust + noise", "Budget:", str(Budget.from_dict(facts["spent"]))),
    ]


def _pair(one: str, first: str, two: str, second: str) -> str:
    left = one + first[: 37 - len(one)].rjust(37 - len(one))
    return f"{left}   {two}{second.rjust(38 - len(two))}"


def _row(one: dict[str, Any], wide: int) -> list[str]:
    ends, error = one["interval"], one["std_error"]
    figures = (one["estimate"], error["total"], error["noise"], one["statistic"])
    cells = [
        *(_number(value) for value in figures[:3]),
        f"{figures[3]:.3f}" if isfinite(figures[3]) else "inf",
    ]
    cells += [probability(one["p_value"]), _number(ends["low"]), _number(ends["high"])]
    line = "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    name = one["name"]
    return [name.ljust(wide) + line] if len(name) <= wide else [name, " " * wide + line]


def _number(value: float) -> str:
    """Return a number in at most nine signs."""
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    plain = f"{value:.4f}"
    return plain if len(plain) <= 9 and (abs(value) >= 0.001 or value == 0) else f"{value:.3g}"

"""Table 1: the covariates of both arms; exact where these are public, as bought where treatments are private."""

from __future__ import annotations

from counterveil.report.document import Block, Cells, Code
from counterveil.report.numbers import Facts
from counterveil.report.overlap import summary_blocks

_EXACT = (
    "Covariates and treatment are public here, so that these figures are exact and cost nothing: means (standard "
    "deviations) of numbers, percentages of labels."
)
_BOUGHT = (
    "Who was treated is private here. What follows was bought as a release of its own, with noise; its price is added "
    "to that of the effect."
)
_FOR_SALE = (
    "Who was treated is private here, and a table of covariates by arm would be a release of its own. It costs the "
    "epsilon that you choose for it, on top of what this result spent; the smaller, the wider the intervals of its "
    "figures. Ask as below; result.to_html(path, overlap=summary) then shows it in this place."
)
_ASK = """summary = cv.overlap(data, study, epsilon=0.5)
result.to_html("report.html", overlap=summary)

counterveil overlap DATA --study study.toml --epsilon 0.5"""


def table_one_cells(facts: Facts) -> Cells | None:
    """Return the table of the arms' covariates, None where the result has none."""
    found = facts.get("table_one")
    if not found:
        return None
    arms = [f"{arm['name']} (n = {arm['rows']:,})" for arm in found["arms"]]
    rows = [_row(row) for row in found["covariates"]]
    return Cells(["covariate", *arms, "std. difference"], rows, "Covariates by arm, before adjustment")


def _row(row: Facts) -> list[str]:
    if row["sds"] is None:
        cells = [f"{100 * mean:.1f} %" for mean in row["means"]]
    else:
        cells = [f"{mean:,.4g} ({sd:,.3g})" for mean, sd in zip(row["means"], row["sds"], strict=True)]
    known = row["difference"]
    return [row["covariate"], *cells, "none" if known is None else f"{known:+.2f}"]


def table_one_words(facts: Facts) -> str:
    """Return what the table is, or what it would cost; empty where there is nothing to say."""
    found = facts.get("table_one")
    if found is None:
        return ""
    if found:
        return _EXACT
    return _BOUGHT if facts.get("overlap_summary") else _FOR_SALE


def table_one_blocks(facts: Facts) -> list[Block]:
    """Return what is said of the arms' covariates, and their table; nothing where there is nothing to say."""
    said, cells, bought = table_one_words(facts), table_one_cells(facts), facts.get("overlap_summary")
    if not said:
        return []
    if cells is not None:
        return [said, cells]
    return [said, *(summary_blocks(bought) if bought else [Code(_ASK, "How to ask")])]

"""Balance tables and love plots."""

from counterveil.report import balance_view, text_of
from counterveil.report.balance import balance_blocks
from counterveil.report.page import section_html
from counterveil.report.text import Section


def drawn(blocks, facts):
    return section_html(Section("", blocks(facts)))


def row(name, before, after, ratio=1.0):
    return {
        "covariate": name, "difference_before": before, "difference_after": after, "variance_ratio_before": ratio,
        "variance_ratio_after": ratio,
    }  # fmt: skip


def facts(rows):
    sizes = [
        {"arm": "treated", "rows": 10, "effective": 7.4},
        {"arm": "control", "rows": 20, "effective": 3.2},
    ]
    return {"estimand": "ATT", "diagnostics": {"balance": rows, "effective_size": sizes}}


ROWS = [row("age", 0.02, -0.01), row("<b>", -0.4, 0.05, 1.25), row("site=a", None, None, None)]


def test_the_table_lists_the_largest_differences_first():
    text = text_of(balance_view(facts(ROWS)))
    lines = text.splitlines()[2:]
    assert [line.split()[0] for line in lines[3:6]] == ["site=a", "<b>", "age"]
    assert lines[4].split()[1:] == ["-0.400", "+0.050", "1.25", "1.25"]
    assert lines[3].split()[1:] == ["none"] * 4
    assert "2 before, 1 after, of 3" in text
    assert "Effective size, control: 3 of 20 rows" in text


def test_the_section_has_a_plot_and_escapes_names():
    page = drawn(balance_blocks, facts(ROWS))
    assert page.count("<circle") == 4
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "love plot" in page


def test_nothing_is_shown_where_covariates_are_private():
    for bare in ({"estimand": "ATE", "diagnostics": {}}, {"estimand": "ATE"}):
        assert drawn(balance_blocks, bare) == ""

"""Balance tables and love plots."""

from counterveil.report import balance_table
from counterveil.report.balance import balance_blocks, overlap_blocks
from counterveil.report.document import Section
from counterveil.report.page import section_html


def drawn(blocks, facts):
    return section_html(Section("", blocks(facts)))


def row(name, before, after, ratio=1.0):
    return {
        "covariate": name,
        "difference_before": before,
        "difference_after": after,
        "variance_ratio_before": ratio,
        "variance_ratio_after": ratio,
    }


def facts(rows):
    sizes = [
        {"arm": "treated", "rows": 10, "effective": 7.4},
        {"arm": "control", "rows": 20, "effective": 3.2},
    ]
    return {"estimand": "ATT", "diagnostics": {"balance": rows, "effective_size": sizes}}


ROWS = [row("age", 0.02, -0.01), row("<b>", -0.4, 0.05, 1.25), row("site=a", None, None, None)]


def test_the_table_lists_the_largest_differences_first():
    text = balance_table(facts(ROWS))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["site=a", "<b>", "age"]
    assert lines[4].split()[1:] == ["-0.400", "+0.050", "1.25", "1.25"]
    assert lines[3].split()[1:] == ["none"] * 4
    assert "2 before, 1 after, of 3" in text
    assert "Effective size, control: 3 of 20 rows" in text


def test_long_tables_are_cut_and_say_so():
    text = balance_table(facts([row(f"x{k}", k / 100, 0.0) for k in range(60)]))
    assert "and 20 more" in text
    assert "x59" in text
    assert "x10 " not in text


def test_the_section_has_a_plot_and_escapes_names():
    page = drawn(balance_blocks, facts(ROWS))
    assert page.count("<circle") == 4
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "love plot" in page


def test_nothing_is_shown_where_covariates_are_private():
    for bare in ({"estimand": "ATE", "diagnostics": {}}, {"estimand": "ATE"}):
        assert drawn(balance_blocks, bare) == ""
        assert "private" in balance_table(bare)


def test_long_names_are_whole_in_the_plot():
    long = "a name of forty letters or even some more"
    page = drawn(balance_blocks, facts([row(long, 0.3, 0.1)]))
    # In the plot, read out beside it, and in the table.
    assert page.count(long) == 3


def test_overlap_has_a_bar_for_each_arm_and_says_how_many_are_beyond():
    found = {"edges": [0.0, 0.1, 0.5, 0.9, 1.0], "treated": [0, 3, 5, 2], "control": [4, 5, 1, 0]}
    page = drawn(overlap_blocks, {"diagnostics": {"overlap": found}})
    assert page.count("<rect") == 8
    assert "6 of 20 people have a propensity score below 0.1 or above 0.9" in page
    assert drawn(overlap_blocks, {}) == ""


def test_the_scores_of_several_arms_are_a_table():
    arms = [{"arm": "low <b>", "smallest_score": 0.125, "share_below_0.05": 0.0}]
    page = drawn(overlap_blocks, {"diagnostics": {"overlap": arms}})
    for part in ("low &lt;b&gt;", "smallest score", "0.125"):
        assert part in page

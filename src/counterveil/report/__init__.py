"""Tables, pages and pictures: data in, text or picture out; never spends.

In: the facts of an answer (its `to_dict`), which are released or public. Out: text, Markdown, HTML or
pictures. No module here reads rows or a budget, so that privacy does not depend on any of them.
"""

from counterveil.report import plots
from counterveil.report.balance import balance_view, overlap_view
from counterveil.report.confounding import sensitivity_view
from counterveil.report.page import fragment, markdown, page
from counterveil.report.pictures import plan_plot
from counterveil.report.regression import compliance_view, moments_view, regression_text, regression_view
from counterveil.report.sections import report_view
from counterveil.report.text import Cells, Picture, Section, View, latex, text_of
from counterveil.report.view import full_view, one_line, short_view
from counterveil.report.words import Repeat, write_up

__all__ = [
    "Cells",
    "Picture",
    "Repeat",
    "Section",
    "View",
    "balance_view",
    "compliance_view",
    "fragment",
    "full_view",
    "latex",
    "markdown",
    "moments_view",
    "one_line",
    "overlap_view",
    "page",
    "plan_plot",
    "plots",
    "regression_text",
    "regression_view",
    "report_view",
    "sensitivity_view",
    "short_view",
    "text_of",
    "write_up",
]

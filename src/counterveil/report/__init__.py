"""Tables, pages and pictures: data in, text or picture out; never spends."""

from counterveil.report import plots
from counterveil.report.balance import balance_table
from counterveil.report.confounding import sensitivity_view
from counterveil.report.document import Cells, View
from counterveil.report.html import fragment, html_page, sensitivity_page
from counterveil.report.markdown import markdown_page, markdown_view
from counterveil.report.overlap import overlap_page, overlap_view
from counterveil.report.page import page
from counterveil.report.pictures import plan_plot
from counterveil.report.regression import compliance_view, moments_view, regression_text, regression_view
from counterveil.report.repeat import Repeat
from counterveil.report.text import latex, latex_table, text_of
from counterveil.report.view import full_view, one_line, short_view
from counterveil.report.words import write_up

__all__ = [
    "Cells",
    "Repeat",
    "View",
    "balance_table",
    "compliance_view",
    "fragment",
    "full_view",
    "html_page",
    "latex",
    "latex_table",
    "markdown_page",
    "markdown_view",
    "moments_view",
    "one_line",
    "overlap_page",
    "overlap_view",
    "page",
    "plan_plot",
    "plots",
    "regression_text",
    "regression_view",
    "sensitivity_page",
    "sensitivity_view",
    "short_view",
    "text_of",
    "write_up",
]

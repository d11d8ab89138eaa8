"""Tables and pages: data in, text out; never spends."""

from counterveil.report.balance import balance_table
from counterveil.report.html import html_page
from counterveil.report.latex import latex_table
from counterveil.report.text import text_summary

__all__ = ["balance_table", "html_page", "latex_table", "text_summary"]

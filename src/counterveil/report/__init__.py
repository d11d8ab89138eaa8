"""Tables, pages and pictures: data in, text or picture out; never spends."""

from counterveil.report import plots
from counterveil.report.balance import balance_table
from counterveil.report.html import html_page
from counterveil.report.latex import latex_table, write_up
from counterveil.report.text import text_summary

__all__ = ["balance_table", "html_page", "latex_table", "plots", "text_summary", "write_up"]

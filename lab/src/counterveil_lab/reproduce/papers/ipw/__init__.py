"""PP-IPW (Lee et al. 2019): Figures 1 and 2, Tables 2 and 3, and what the text says of them."""

from counterveil_lab.reproduce.papers.ipw.paper import PAPER

__all__ = ["PAPER"]

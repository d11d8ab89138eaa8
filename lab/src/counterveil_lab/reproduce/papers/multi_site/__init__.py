"""Differentially Private Multi-Site Treatment Effect Estimation, preprint and published version."""

from counterveil_lab.reproduce.papers.multi_site.paper import PAPER

__all__ = ["PAPER"]

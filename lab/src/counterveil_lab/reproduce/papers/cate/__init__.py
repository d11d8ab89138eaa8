"""DP-CATE, heterogeneous effects at finitely many queries and as functions: its figures and claims."""

from counterveil_lab.reproduce.papers.cate.paper import PAPER

__all__ = ["PAPER"]

"""Designs A to D of Nie and Wager as Niu et al. use them for private meta-learners: errors of ours beside theirs."""

from counterveil_lab.reproduce.papers.cate_designs.paper import PAPER

__all__ = ["PAPER"]

"""PrivATE (Yuan et al., NDSS 2026): Figures 2 to 12, Tables IV and V, and what the text says of them."""

from counterveil_lab.reproduce.papers.private_matching.paper import PAPER

__all__ = ["PAPER"]

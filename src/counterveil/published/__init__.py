"""The papers' forms as printed: claims refuted or asymptotic, run with accept="unproved" only."""

from counterveil.published.cate_settings import InfluenceSettings, KernelSettings

__all__ = ["InfluenceSettings", "KernelSettings"]

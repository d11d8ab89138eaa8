"""The papers' forms as printed, apart from the core: their claims are refuted, asymptotic, or true for some studies.

Each form is called with data and a study, or with an open curator, whose ledger is then charged. Where a claim is not
proved in finite samples, the form runs with `accept="unproved"` only, and its result says so in the first line.
"""

from counterveil.published.cate import InfluenceSettings, KernelSettings
from counterveil.published.doubly_robust import cross_fit
from counterveil.published.finite_queries import cate_finite
from counterveil.published.gaussian_process import cate_functional
from counterveil.published.matching import outcome_matching, record_matching
from counterveil.published.smooth_sensitivity import smooth_matching
from counterveil.published.weighting import IPWSettings, ipw

__all__ = [
    "IPWSettings",
    "InfluenceSettings",
    "KernelSettings",
    "cate_finite",
    "cate_functional",
    "cross_fit",
    "ipw",
    "outcome_matching",
    "record_matching",
    "smooth_matching",
]

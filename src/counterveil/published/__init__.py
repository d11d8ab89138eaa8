"""The papers' forms, apart from the core.

They stand here as printed, and under names that end in `_proved` as they can be proved.

Printed claims are refuted, asymptotic, or true for some studies. Each form takes data and a study, or an open
session. Where a claim is not proved in finite samples, the form runs with `accept="unproved"` only, and its
result says so first.
"""

from counterveil.published.cate import InfluenceSettings, KernelSettings, cate_finite, cate_functional
from counterveil.published.doubly_robust import cross_fit, cross_fit_proved
from counterveil.published.matching import outcome_matching, record_matching, record_matching_proved
from counterveil.published.strata import smooth_matching, smooth_matching_proved
from counterveil.published.weighting import ipw, ipw_proved

__all__ = [
    "InfluenceSettings",
    "KernelSettings",
    "cate_finite",
    "cate_functional",
    "cross_fit",
    "cross_fit_proved",
    "ipw",
    "ipw_proved",
    "outcome_matching",
    "record_matching",
    "record_matching_proved",
    "smooth_matching",
    "smooth_matching_proved",
]

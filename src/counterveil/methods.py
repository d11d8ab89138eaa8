"""What a method of one's own is written with: `Method`, `Statistic`, `Estimate`, and what they are given.

`OUTCOME_STEPS` is the number of whole steps that an outcome's range has. `docs/how-to/write-a-method.md` has
a whole method.
"""

from counterveil.data import OUTCOME_STEPS as OUTCOME_STEPS
from counterveil.estimators.method import AdaptiveMethod, Estimate, Method, Prepared
from counterveil.privacy.caveats import Target
from counterveil.rows.public import PublicData, PublicRows
from counterveil.rows.statistic import Statistic
from counterveil.session import Released, ReleasedVector

__all__ = [
    "AdaptiveMethod",
    "Estimate",
    "Method",
    "Prepared",
    "PublicData",
    "PublicRows",
    "Released",
    "ReleasedVector",
    "Statistic",
    "Target",
]

"""What a method of one's own is written with: `Method`, `Statistic`, `Estimate`, and what they are given.

`docs/how-to/write-a-method.md` has a whole one.
"""

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.method import Estimate, Method, Prepared
from counterveil.privacy.caveats import Caveat, Target
from counterveil.rows.public import PublicData, PublicRows
from counterveil.rows.statistic import Statistic
from counterveil.session import Released, ReleasedVector

__all__ = [
    "OUTCOME_STEPS",
    "Caveat",
    "Estimate",
    "Method",
    "Prepared",
    "PublicData",
    "PublicRows",
    "Released",
    "ReleasedVector",
    "Statistic",
    "Table",
    "Target",
]

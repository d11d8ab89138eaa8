"""Studies and tables: roles, public bounds, fixed-point values."""

from counterveil.data.domains import Binary, Categories, Range
from counterveil.data.fixed_point import OUTCOME_STEPS
from counterveil.data.missing import Drop, Fill
from counterveil.data.study import Study
from counterveil.data.table import Table

__all__ = ["OUTCOME_STEPS", "Binary", "Categories", "Drop", "Fill", "Range", "Study", "Table"]

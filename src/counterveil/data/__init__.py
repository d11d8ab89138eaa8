"""Studies and tables: roles, public bounds, fixed-point values."""

from counterveil.data.assignment import Observational, Propensity, Trial
from counterveil.data.batches import StreamedRows, check_columns, rows_of_source, table_of_source
from counterveil.data.domains import OUTCOME_STEPS, Binary, Categories, Drop, Fill, Range
from counterveil.data.follow_up import TimeToEvent
from counterveil.data.layout import Layout
from counterveil.data.outcomes import Change, Outcome, Outcomes, Ratio
from counterveil.data.passes import Sums, cores
from counterveil.data.row_units import Clusters, People
from counterveil.data.silencing import silence
from counterveil.data.sources import (
    named_table,
    open_table,
    source_elsewhere,
    source_in_database,
    without_positions,
)
from counterveil.data.spool import SpooledRows
from counterveil.data.strata import (
    histogram_of_rows,
    histogram_of_source,
    rows_are_made,
    strata_codes,
    strata_of_rows,
    strata_of_source,
    strata_of_table,
)
from counterveil.data.study import Study
from counterveil.data.table import (
    Backend,
    Pass,
    Table,
    check_study,
    columns_as_written,
    covariate_columns,
    public_points,
)
from counterveil.data.treatment import Treatment

__all__ = [
    "OUTCOME_STEPS",
    "Backend",
    "Binary",
    "Categories",
    "Change",
    "Clusters",
    "Drop",
    "Fill",
    "Layout",
    "Observational",
    "Outcome",
    "Outcomes",
    "Pass",
    "People",
    "Propensity",
    "Range",
    "Ratio",
    "SpooledRows",
    "StreamedRows",
    "Study",
    "Sums",
    "Table",
    "TimeToEvent",
    "Treatment",
    "Trial",
    "check_columns",
    "check_study",
    "columns_as_written",
    "cores",
    "covariate_columns",
    "histogram_of_rows",
    "histogram_of_source",
    "named_table",
    "open_table",
    "public_points",
    "rows_are_made",
    "rows_of_source",
    "silence",
    "source_elsewhere",
    "source_in_database",
    "strata_codes",
    "strata_of_rows",
    "strata_of_source",
    "strata_of_table",
    "table_of_source",
    "without_positions",
]

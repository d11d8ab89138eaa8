"""Gates that know the rows of a table, as those of sessions do."""

from types import SimpleNamespace

from tests.unit.estimators.moments.small_records import NotingGate


def rows_of(table):
    """Return what a gate knows as its rows, of a table."""
    return SimpleNamespace(table=table, batches=table, rows=table.rows, study=table.study)


def noting(table):
    """Return a gate that notes what it is asked to release of a table."""
    gate = NotingGate()
    gate.rows = rows_of(table)
    return gate

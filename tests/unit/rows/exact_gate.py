"""A gate that notes what it is given and lets it through without noise, and the public views of a table."""

from types import SimpleNamespace

from counterveil.privacy import Unit
from counterveil.rows.public import PublicData, PublicRows


class ExactGate:
    """Releases exact numbers of a table; `values` and `sensitivities` hold what was given, by name."""

    def __init__(self, table=None):
        self.rows = SimpleNamespace(batches=table, table=table)
        self.values, self.sensitivities = {}, {}

    def release(self, name, value, sensitivity):
        self.values[name], self.sensitivities[name] = value, sensitivity
        return value

    def release_several(self, name, values, sensitivities, weights):
        assert len(values) == len(sensitivities) == len(weights)
        return self.release(name, values, sensitivities)


def public_rows(table):
    """Return the view of a table whose outcomes alone are private."""
    return PublicRows(table, Unit.OUTCOME)


def public_data(table):
    """Return what a method may know of a table whose outcomes alone are private."""
    return PublicData(SimpleNamespace(study=table.study, batches=table, table=table), Unit.OUTCOME)

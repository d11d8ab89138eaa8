"""Tables of a few records, and a gate that notes what it is asked to release and adds no noise."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.rows.records import Records
from counterveil.session import ReleasedVector


class NotingGate:
    """Notes values and sensitivities by name; `table` holds the rows that it lets sums of through."""

    def __init__(self, table=None):
        self.values, self.sensitivity = {}, {}
        self.rows = SimpleNamespace(batches=table)

    def release_vector(self, name, values, sensitivity):
        values = values() if callable(values) else values
        self.values[name], self.sensitivity[name] = [Fraction(v) for v in values], sensitivity
        return ReleasedVector(tuple(self.values[name]), 1e-12)

    release_cells = release_vector


COVARIATES = {"x": cv.Range(-1, 1), "b": cv.Binary(), "c": cv.Categories(["u", "v", "w", "z"])}
STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), COVARIATES)
REST = [(0.1, 0, "u", 0, 0.0), (0.2, 1, "v", 1, 0.5), (-0.3, 0, "w", 0, 0.1), (0.4, 1, "z", 1, -0.2)]


def records(first, study=STUDY, degree=1, rest=REST):
    """Return the rows (x, b, c, t, y) of one changing record and fixed ones."""
    x, b, c, t, y = zip(first, *rest, strict=True)
    columns = {"x": list(x), "b": list(b), "c": list(c), "t": list(t), "y": list(y)}
    return Records(Table.attach(columns, study), feature_map(study, degree))


def largest_change(values):
    """Return the largest Euclidean distance between two of the vectors."""
    found = np.array([[float(entry) for entry in value] for value in values])
    return max(float(np.linalg.norm(found - one, axis=1).max()) for one in found)

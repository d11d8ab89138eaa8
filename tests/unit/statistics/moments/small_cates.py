"""Tables of one changing record and a few fixed ones, as the rows behind a released function."""

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.numerics.bases import Axis, make_basis
from counterveil.statistics.moments.functions import ArmForm, InteractedForm, LinearPropensity, UnitRows

STUDY = cv.Study(
    "t",
    "y",
    (-1, 1),
    {"x": cv.Range(-1, 1), "c": cv.Categories(["u", "v", "w"])},
    treated=1,
    control=0,
)
BASIS = make_basis((Axis("x", "legendre", 2, -1.0, 2.0), Axis("c", "labels", 3)), 3, True)
# Two functions, for runs of many samples.
TINY = make_basis((Axis("x", "legendre", 1, -1.0, 2.0),), 1, False)
REST = [(0.1, "u", 0, 0.0), (0.2, "v", 1, 0.5), (-0.3, "w", 0, 0.1), (0.4, "u", 1, -0.2)]


def table(first):
    """Return the rows (x, c, t, y) of one changing record and the fixed ones."""
    x, c, t, y = zip(first, *REST, strict=True)
    return Table.attach({"x": list(x), "c": list(c), "t": list(t), "y": list(y)}, STUDY)


def arm_rows(first, length=0.5, basis=BASIS):
    """Return the rows by arm."""
    return UnitRows(table(first), ArmForm(basis, length))


def interacted_rows(first, clip=np.inf, length=0.7, basis=BASIS, size=1.0):
    """Return the interacted rows at released weights of no importance but their size."""
    weights = np.linspace(-0.5, 0.7, basis.size) * size
    start = np.linspace(0.2, -0.3, 2 * basis.size) * size
    propensity = LinearPropensity(np.linspace(0.6, -1.0, basis.size) * size, 0.1)
    return UnitRows(table(first), InteractedForm(basis, length, propensity, weights, start, clip))

"""A replaced record changes two counts by one."""

from counterveil.audit import largest_change
from counterveil.audit.brute_force import Universe, l1
from counterveil.statistics.strata.sensitivity import HISTOGRAM


def test_all_small_data_sets():
    universe = Universe((tuple(range(4)),) * 3)
    change = largest_change(
        lambda rows: tuple(rows.count(cell) for cell in range(4)), universe, claimed=HISTOGRAM, distance=l1
    )
    assert not change.violated
    assert change.attained == 1

"""A replaced record changes two counts by one."""

import pytest
from tests.unit.statistics.moments.small_records import NotingGate

from counterveil.audit import Universe, l1, l2, largest_change
from counterveil.statistics.histogram import COUNTS_L1, COUNTS_L2, release_counts


@pytest.mark.parametrize(("pure", "claimed", "distance"), [(True, COUNTS_L1, l1), (False, COUNTS_L2, l2)])
def test_all_small_data_sets(pure, claimed, distance):
    def counts(rows):
        gate = NotingGate()
        release_counts(gate, "counts", [rows.count(cell) for cell in range(4)], pure)
        assert gate.sensitivity["counts"] == claimed
        return tuple(gate.values["counts"])

    universe = Universe((tuple(range(4)),) * 3)
    change = largest_change(counts, universe, claimed=claimed, distance=distance)
    assert not change.violated
    assert change.attained == pytest.approx(1)

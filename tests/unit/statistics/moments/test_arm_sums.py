"""Brute force over all small tables of private records."""

from fractions import Fraction
from itertools import product

from counterveil.statistics.moments.sensitivity import both_sums

RECORDS = tuple(product((0, 1), (0, 1, 2)))
WIDTH = Fraction(2)


def sums(records):
    return tuple(sum((y - WIDTH / 2 for t, y in records if t == arm), Fraction(0)) for arm in (1, 0))


def test_no_replacement_exceeds_the_claim_and_it_is_reached_within_and_across_arms():
    n = 3
    within = across = Fraction(0)
    for records in product(RECORDS, repeat=n):
        for place, record in product(range(n), RECORDS):
            other = (*records[:place], record, *records[place + 1 :])
            change = sum(abs(a - b) for a, b in zip(sums(records), sums(other), strict=True))
            if record[0] == records[place][0]:
                within = max(within, change)
            else:
                across = max(across, change)
    assert within == across == both_sums(WIDTH)

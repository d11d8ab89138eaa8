"""Texts compared as words and numbers: what differs is noticed, and how a machine rounds is not."""

import pytest
from tests.figures import assert_same

KEPT = "Audit of n2\n-----  ---\nfound >= 4.09, claimed 1e-05\n"


@pytest.mark.parametrize(
    "made",
    [
        KEPT.replace("4.09", "4.2"), KEPT.replace("1e-05", "1e-06"), KEPT.replace("n2", "n3"),
        KEPT.replace("claimed", "said"), KEPT.replace(", claimed 1e-05", ""),
    ],
)  # fmt: skip
def test_other_words_and_figures_are_not(made):
    with pytest.raises(AssertionError):
        assert_same(made, KEPT)

"""The root of running sums: its square adds up, and counts come back."""

import numpy as np
import pytest

from counterveil.numerics.running_sums import FLAT, SUMS, Form, root_coefficients


def test_the_root_times_itself_adds_up():
    root = np.array([float(one) for one in root_coefficients(9)])
    assert np.convolve(root, root)[:9] == pytest.approx(np.ones(9))


@pytest.mark.parametrize("kind", [FLAT, SUMS])
def test_counts_come_back(kind):
    form, counts = Form(kind, 4), [3, 0, 5, 1, 2, 2, 0, 7, 4]
    numbers = np.array([[float(one) for one in form.numbers(counts)]])
    assert form.counts(numbers)[0] == pytest.approx(counts)


def test_running_sums_have_less_noise_than_those_of_counts():
    cells = 50
    form = Form(SUMS, cells)
    covariance = float(form.l2) ** 2 * form.inverse @ form.inverse.T
    sums = np.tril(np.ones((cells, cells)))
    spread = np.diag(sums @ covariance[:cells, :cells] @ sums.T)
    plain = float(Form(FLAT, cells).l2) ** 2 * np.arange(1, cells + 1)
    assert spread.max() < plain.max() / 4

"""Exact matching with smooth sensitivity as published: what it says, what it refuses."""

import pytest

import counterveil as cv
from counterveil.datasets import synth_strata
from counterveil.errors import ClaimError, ParameterError
from counterveil.privacy import Proof


def ask(**words):
    data = synth_strata(4, n=3000, levels=10)
    given = {"epsilon": 30, "delta": "1e-5", "accept": "unproved", "noise": cv.SeededNoise(1)} | words
    return cv.published.smooth_matching(data.frame, data.study, **given)


def test_it_is_marked():
    result = ask()
    assert "claim is false" in " ".join(result.guarantee.remarks)
    assert "NO VALID INTERVAL" in str(result)
    assert result.estimate == pytest.approx(0.5, abs=0.05)
    real = ask(noise=None)
    assert real.guarantee.proof is Proof.REFUTED


@pytest.mark.parametrize("words", [{"delta": 0}, {"estimand": "ATT"}])
def test_it_has_its_limits(words):
    with pytest.raises(ParameterError, match="CV-P366"):
        ask(**words)


def test_it_has_to_be_accepted():
    with pytest.raises(ClaimError, match="CV-C001"):
        ask(accept=None)

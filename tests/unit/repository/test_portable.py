"""Forms of other machines: what a CPU can run, and a libm whose last bits differ."""

import os
import subprocess
import sys

import pytest
from tools.portable import forms, other_libm

OLDER = {"SSE42": True, "AVX": True, "AVX2": True, "FMA3": True}


def test_a_cpu_gets_the_kernels_that_it_can_run_and_plain_code():
    found = dict(forms("x86_64", OLDER, ["AVX2", "FMA3", "AVX512F"]))
    assert list(found) == ["Nehalem, threads 1", "Sandybridge, threads 2", "Haswell, threads 1", "plain code"]
    assert found["Sandybridge, threads 2"] == {
        "OPENBLAS_CORETYPE": "Sandybridge",
        "OPENBLAS_NUM_THREADS": "2",
    }
    assert found["plain code"]["NPY_DISABLE_CPU_FEATURES"] == "AVX2 FMA3"
    assert list(dict(forms("riscv64", {}, []))) == ["plain code"]


def test_the_other_libm_moves_last_bits_and_leaves_what_is_exact(tmp_path):
    form = other_libm(str(tmp_path))
    if not form:
        pytest.skip("there is no C compiler")
    program = (
        "from math import *\n"
        "print(*(exp(x / 7).hex() for x in range(40)), *(log(x).hex() for x in range(2, 40)))\n"
        "print(exp(0), log(1), 2**10, pow(9.0, 0.5), erf(0))\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | more, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for more in ({}, form, form)
    ]
    inexact, exact = zip(*said, strict=True)
    assert len(set(exact)) == 1
    assert inexact[1] == inexact[2]
    here, there = ([float.fromhex(one) for one in line.split()] for line in inexact[:2])
    moved = [abs(one / other - 1) for one, other in zip(here, there, strict=True)]
    assert max(moved) <= 2**-52
    assert sum(move > 0 for move in moved) > len(moved) / 3

"""Run the tests that compute with floats as other machines would round: `python -m tools.portable [PYTEST OPTIONS]`.

Each form is one run of the tests: a kind of OpenBLAS's kernels that this CPU has, with one thread or two, and last
plain code everywhere: numpy without vector instructions, and a libm whose last bit differs.
Paths among the options replace the usual tests; `--form WORD` runs the forms whose names hold the word.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Rooms of the library that compute; others read, write, count and show. Long tests draw more of the same.
ROOMS = "estimators rows inference numerics results questions session mechanisms published report"
PAGES = ("unit/repository/test_checks.py", "unit/repository/test_docstrings.py")
TESTS = ("contract", "property", "reference", "lab", *(f"unit/{room}" for room in ROOMS.split()), *PAGES)
USUAL = ("-m", "not slow and not long", *(f"tests/{name}" for name in TESTS))
# Kinds of kernels, and the feature that a CPU needs for each.
KERNELS = {
    "x86_64": {"Nehalem": "SSE42", "Sandybridge": "AVX", "Haswell": "AVX2", "SkylakeX": "AVX512_SKX"},
    "aarch64": {"ARMV8": "ASIMD", "CORTEXA57": "ASIMD", "NEOVERSEN1": "ASIMDHP", "NEOVERSEV1": "SVE"},
}
PLAIN = "plain code"

Form = dict[str, str]


def forms(machine: str, features: Mapping[str, bool], dispatched: list[str]) -> Iterator[tuple[str, Form]]:
    """Yield the forms of a CPU as variables of the environment, by name."""
    kinds = [kind for kind, needed in KERNELS.get(machine, {}).items() if features.get(needed)]
    for place, kind in enumerate(kinds):
        threads = 1 + place % 2
        yield f"{kind}, threads {threads}", {"OPENBLAS_CORETYPE": kind, "OPENBLAS_NUM_THREADS": str(threads)}
    plain = " ".join(name for name in dispatched if features.get(name))
    yield PLAIN, {"NPY_DISABLE_CPU_FEATURES": plain}


def forms_here() -> Iterator[tuple[str, Form]]:
    """Yield the forms of this machine; before numpy 2 its features stand in another module."""
    try:
        from numpy._core import _multiarray_umath as numpy
    except ImportError:
        from numpy.core import _multiarray_umath as numpy
    yield from forms(platform.machine(), numpy.__cpu_features__, numpy.__cpu_dispatch__)


def other_libm(folder: str) -> Form:
    """Return the variable that loads a libm with other last bits, none where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: the libm is that of this machine")
        return {}
    made = Path(folder) / "other_libm.so"
    source = ROOT / "tools" / "other_libm.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-fno-builtin", "-o", made, source, "-ldl"], check=True
    )
    return {"LD_PRELOAD": str(made)}


def kernels(environment: Mapping[str, str]) -> str:
    """Return the kinds of kernels that numpy and scipy take in an environment."""
    program = (
        "import numpy, scipy.linalg, threadpoolctl\n"
        "print(*sorted({one.get('architecture', '') for one in threadpoolctl.threadpool_info()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Run the tests in every form and return 1 if one of them fails."""
    parser = argparse.ArgumentParser("python -m tools.portable", allow_abbrev=False)
    parser.add_argument("--form", default="", metavar="WORD", help="forms whose names hold this")
    chosen, options = parser.parse_known_args(arguments)
    if not any(Path(option.partition("::")[0]).exists() for option in options):
        options += USUAL
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, form in forms_here():
            if chosen.form not in name:
                continue
            environment = os.environ | form | (other_libm(folder) if name == PLAIN else {})
            used = kernels(environment)
            print(f"\n{name}: {form}, kernels {used}", flush=True)
            if form.get("OPENBLAS_CORETYPE", used) != used:
                print("left out: this BLAS has no such kernels")
                continue
            tests = [sys.executable, "-m", "pytest", *options]
            if subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode:
                failed.append(name)
    print("\nfailed: " + "; ".join(failed) if failed else "\nevery form passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

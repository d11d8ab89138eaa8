"""The list of tests that `make check` leaves out: it names tests that there are."""

import re


def test_every_long_test_exists(root):
    functions = {
        f"{path.name}::{name}"
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    listed = (root / "tests" / "long.txt").read_text(encoding="utf-8").split()
    assert listed == sorted(set(listed))
    assert set(listed) - functions == set()

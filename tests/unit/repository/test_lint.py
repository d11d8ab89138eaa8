"""Style, types and the direction of imports are tests like any other."""

import subprocess
import sys
from pathlib import Path


def run(root, *command):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_ruff_finds_nothing(root):
    code, output = run(root, sys.executable, "-m", "ruff", "check", ".")
    assert code == 0, output


def test_the_code_is_formatted(root):
    code, output = run(root, sys.executable, "-m", "ruff", "format", "--check", ".")
    assert code == 0, output


def test_types_are_strict_and_hold(root):
    code, output = run(root, sys.executable, "-m", "mypy")
    assert code == 0, output


def test_imports_point_one_way(root):
    code, output = run(root, str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert code == 0, output


def test_ruff_would_have_found_something(root, write):
    path = write("bad.py", "import os\n")
    code, output = run(root, sys.executable, "-m", "ruff", "check", "--no-cache", str(path))
    assert code != 0
    assert "F401" in output

"""The kept list of faults: every one has its place, and what has none is named."""

from dataclasses import replace
from functools import cache

import pytest
from tools.mutants import __main__ as command
from tools.mutants.__main__ import summary, unplantable
from tools.mutants.finding import NotPlantableError, Sources
from tools.mutants.kept import MUTANTS
from tools.mutants.mutant import ESTIMATES, HALVES, Mutant
from tools.mutants.running import Verdict


@pytest.fixture(scope="module", autouse=True)
def _read_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "Sources", cache(Sources))
        yield


def test_every_kept_fault_has_one_place():
    assert unplantable(MUTANTS) == []


def test_half_of_at_least_eighty_faults_are_in_estimates(root):
    assert len(MUTANTS) >= 80
    for half in HALVES:
        assert sum(one.half == half for one in MUTANTS) >= 40
    assert sum(one.half == ESTIMATES for one in MUTANTS) >= len(MUTANTS) / 2
    for one in MUTANTS:
        assert one.tests
        assert all((root / path).exists() for path in (*one.tests, *one.wider))


SOURCE = """
class First:
    def value(self):
        return 1 + 2

class Second:
    def value(self):
        return 1 + 2

def scale(x):
    return 3 * x  # 3 * x
"""


def fault(function, old, new="0"):
    return Mutant(ESTIMATES, function, old, new, ("tests",))


@pytest.fixture
def sources(write, tmp_path):
    write("package/shapes.py", SOURCE)
    return Sources(tmp_path / "package")


def test_a_fault_goes_into_the_function_it_names(sources):
    path, text = sources.planted(fault("Second.value", "1 + 2"))
    assert path.name == "shapes.py"
    assert text == SOURCE.replace("1 + 2", "0").replace("return 0", "return 1 + 2", 1)


@pytest.mark.parametrize(
    ("function", "old", "new", "complaint"),
    [
        ("value", "1 + 2", "0", "put a class or module before the name"),
        ("scale", "3 * x", "0", "occurs 2 times"),
        ("scale", "4 * x", "0", "holds this text"),
        ("scales", "3 * x", "0", "has no function"),
        ("scale", "return 3 * x", "return 3 *", "no Python"),
        ("scale", "  # 3 * x", "", "stays the same"),
    ],
)
def test_what_cannot_be_planted_is_named(sources, function, old, new, complaint):
    with pytest.raises(NotPlantableError, match=complaint):
        sources.planted(fault(function, old, new))


def test_too_many_survivors_in_one_half_are_a_failure(capsys):
    ours = [one for one in MUTANTS if one.half == ESTIMATES][:20]
    killed = [Verdict(one, "tests/test_it.py::test_it", 1.0) for one in ours]
    assert summary(killed, 1.0) == 0
    one_lives = [replace_killer(killed[0]), *killed[1:]]
    assert summary(one_lives, 1.0) == 0  # 95 % are enough
    assert summary([replace_killer(killed[1]), *one_lives[:1], *killed[2:]], 1.0) == 1
    assert f"SURVIVED: {ours[0].name}" in capsys.readouterr().out


def replace_killer(verdict):
    return replace(verdict, killer=None)

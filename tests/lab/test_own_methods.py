"""`counterveil audit module:MyMethod`: sound bounds pass, and a bound that is half of the true one is caught."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from counterveil.errors import CounterveilError
from counterveil_lab.attacks.command import chosen, examine
from counterveil_lab.attacks.own_methods import is_own
from counterveil_lab.audit import Verdict

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/write-a-method.md"
TOO_SMALL = """

class TooSmall(TrimmedDifference):
    name = "too small"

    def statistics(self, public):
        effect, variance = super().statistics(public).values()
        return {"effect": TrimmedContrast(self.trimmed, bound=effect.bound / 2), "variance": variance}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "own_trimmed.py").write_text(f"{blocks[0]}\n\n{blocks[1]}{TOO_SMALL}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "own_trimmed"


def test_the_method_of_the_page_passes_with_power(module):
    reports = {
        name: examine(one).report for name, one in chosen([f"{module}:TrimmedDifference"], False).items()
    }
    assert list(reports) == [
        f"bounds/outcome/{module}:TrimmedDifference",
        f"ate/outcome/{module}:TrimmedDifference",
    ]
    assert {report.verdict for report in reports.values()} == {Verdict.PASSED}
    (bounds,) = reports[f"bounds/outcome/{module}:TrimmedDifference"].rows
    assert bounds.ours.found == pytest.approx(1)


def test_a_bound_that_is_too_small_is_refuted_by_search_and_replay(module):
    reports = [examine(one).report for one in chosen([f"{module}:TooSmall"], False).values()]
    assert {report.verdict for report in reports} == {Verdict.VIOLATED}
    assert "'effect'" in reports[0].rows[0].ours.witness


@pytest.mark.parametrize("word", ["own_trimmed:Absent", "absent_module:Method", "own_trimmed:Fraction"])
def test_what_is_no_method_is_refused(module, word):
    del module
    with pytest.raises(CounterveilError, match="CV-A010"):
        chosen([word], False)


def test_names_of_audits_are_no_methods():
    assert is_own("package.module:MyMethod")
    assert not any(map(is_own, ("ate/trial/record", "module:", ":Method", "postgres://x:y", "a b:C")))

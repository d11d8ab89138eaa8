"""The verdicts on the kept pages of papers are those that the kept tables give."""

from pathlib import Path

import pandas as pd
import pytest

from counterveil_lab.reproduce.command import judge
from counterveil_lab.reproduce.papers.catalogue import MODULES, load
from counterveil_lab.reproduce.protocol import Verdict

FOLDER = Path(__file__).parents[3] / "experiments" / "papers"


def tables_of(name):
    """Return the kept tables of a paper."""
    return {path.stem: pd.read_csv(path) for path in (FOLDER / name).glob("*.csv")}


@pytest.mark.parametrize("name", MODULES)
def test_the_verdicts_of_the_page_are_those_of_its_tables(name):
    paper, tables = load(name), tables_of(name)
    lines = (FOLDER / name / "page.md").read_text(encoding="utf-8").splitlines()
    for claim in paper.claims:
        found = judge(claim, tables)
        (line,) = [line for line in lines if line.startswith(f"| {claim.says} | {claim.where} |")]
        assert f"| {found.verdict.value} |" in line, (claim.says, found)
        assert judge(claim, {}).verdict is Verdict.CANNOT_BE_CHECKED or not claim.figures

"""The verdicts on the kept pages of papers are those that the kept tables give."""

from pathlib import Path

import pandas as pd
import pytest

from counterveil_lab.reproduce.command import judge
from counterveil_lab.reproduce.page import CLAIMS
from counterveil_lab.reproduce.papers.catalogue import MODULES, load
from counterveil_lab.reproduce.protocol import Verdict

FOLDER = Path(__file__).parents[3] / "experiments" / "papers"


def tables_of(name):
    """Return the kept tables of a paper."""
    return {path.stem: pd.read_csv(path) for path in (FOLDER / name).glob("*.csv") if path.name != CLAIMS}


@pytest.mark.parametrize("name", MODULES)
def test_the_verdicts_of_the_page_are_those_of_its_tables(name):
    paper, tables = load(name), tables_of(name)
    lines = (FOLDER / name / "page.md").read_text(encoding="utf-8").splitlines()
    kept = pd.read_csv(FOLDER / name / CLAIMS) if paper.claims else pd.DataFrame()
    for number, claim in enumerate(paper.claims):
        found, row = judge(claim, tables), kept.iloc[number]
        assert (row["Claim"], row["Where"], row["Verdict"]) == (claim.says, claim.where, found.verdict.value)
        listed = any(line.startswith(f"| {claim.says} | {claim.where} |") for line in lines)
        assert listed is (found.verdict is Verdict.NOT_REPRODUCED), (claim.says, found)
        assert judge(claim, {}).verdict is Verdict.CANNOT_BE_CHECKED or not claim.figures

"""The verdicts on the kept pages of papers are those that the kept tables give."""

from pathlib import Path

import pandas as pd
import pytest

from counterveil_lab.reproduce.command import judge
from counterveil_lab.reproduce.page import CLAIMS, Verdict
from counterveil_lab.reproduce.papers.catalogue import MODULES, load

FOLDER = Path(__file__).parents[3] / "experiments" / "papers"


@pytest.mark.parametrize("name", MODULES)
def test_the_verdicts_of_the_page_are_those_of_its_tables(name):
    paper, kept = load(name), {path.stem: pd.read_csv(path) for path in (FOLDER / name).glob("*.csv")}
    page = (FOLDER / name / "page.md").read_text(encoding="utf-8")
    claims = kept.pop(Path(CLAIMS).stem, pd.DataFrame())
    for claim, row in zip(paper.claims, claims.itertuples(), strict=True):
        found = judge(claim, kept).verdict
        assert (row.Claim, row.Where, row.Verdict) == (claim.says, claim.where, found.value)
        assert (f"\n| {claim.says} | {claim.where} |" in page) is (found is Verdict.NOT_REPRODUCED), claim
        assert judge(claim, {}).verdict is Verdict.CANNOT_BE_CHECKED or not claim.figures

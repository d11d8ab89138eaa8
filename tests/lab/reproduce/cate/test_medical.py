"""Figures of data that need credentials, where the data are not there."""

import pytest

from counterveil.errors import DataError
from counterveil_lab.reproduce.page import Verdict
from counterveil_lab.reproduce.papers.cate.claims import CLAIMS
from counterveil_lab.reproduce.papers.cate.figures import FIGURES
from counterveil_lab.reproduce.papers.cate.studies import MIMIC_FILES, is_there, mimic


def test_figures_of_data_that_are_not_there_have_no_cells_and_their_claims_cannot_be_checked(monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_DATA", raising=False)
    assert not is_there(MIMIC_FILES)
    own = {figure.name: figure for figure in FIGURES}
    assert own["figure6"].cells(False) == own["figure7"].cells(False) == []
    judged = [claim.judge({}) for claim in CLAIMS if claim.figures == ()]
    assert [one.verdict for one in judged] == [Verdict.CANNOT_BE_CHECKED] * 2
    assert all("credentials" in one.why for one in judged)
    with pytest.raises(DataError, match="CV-D040"):
        mimic(1)

"""OMOP tables at three hospitals, one question over TLS, the pooled hazard ratio, and what leaves each hospital."""

import json

import pytest

from counterveil.federation.coordinator import pooled
from counterveil.federation.study_files import StudyFolder


@pytest.mark.slow
@pytest.mark.federation
def test_from_omop_tables_to_an_output_check(tmp_path):
    pytest.importorskip("flwr", reason="needs the extra [federation]")
    from counterveil_lab import end_to_end, omop

    folder = tmp_path / "all"
    end_to_end.run(folder)
    answer = pooled(StudyFolder(folder / "study"))
    ratio = answer.average(lambda site: site.hazard_ratio())
    # So wide that it misses once in a million runs; the usual interval ends six standard errors below one.
    low, high = ratio.interval(1 - 1e-6)
    assert low < omop.RATIO < high
    assert ratio.interval()[1] < 1
    assert "Hazard ratio" in str(answer)
    assert (folder / "pooled.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    for name in end_to_end.HOSPITALS:
        out = folder / "out" / name
        described = json.loads((out / "sacro" / "outputs.json").read_text(encoding="utf-8"))
        assert described["results"]
        assert list((out / "registry").iterdir())

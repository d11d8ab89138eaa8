"""Sites over TLS: OMOP tables and a pooled hazard ratio; parts that are summed although one site is killed."""

import json

import pytest

pytest.importorskip("flwr", reason="needs the extra [federation]")

from tests.system.federation.federation import Federation, wait_until

from counterveil.federation.coordinator import pooled
from counterveil.federation.study_files import StudyFolder


@pytest.mark.slow
@pytest.mark.federation
def test_from_omop_tables_to_an_output_check(tmp_path):
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


NAMES = ("North", "South", "West")
RECORDS = {"method": "trial", "protects": "record", "settings": {"adjustment": "none"}}
OUTCOMES = {"method": "difference_in_means", "protects": "outcome"}


@pytest.mark.slow
@pytest.mark.federation
@pytest.mark.parametrize("asked", [RECORDS, OUTCOMES], ids=["records", "outcomes"])
def test_parts_are_summed_over_tls(tmp_path, asked):
    made = Federation(tmp_path, NAMES, aggregation="secure", **asked)
    for name in NAMES:
        (tmp_path / name / "peers").mkdir()
        for other in NAMES:
            key = (tmp_path / other / "keys" / "node.pub").read_bytes()
            (tmp_path / name / "peers" / f"{other}.pub").write_bytes(key)
    try:
        coordinator = made.start_coordinator("coordinator", deadline=280)
        for name in NAMES:
            made.start_site(name)
        wait_until("the list was fixed", (made.study / "sum.json").exists)
        made.kill("West")
        made.start_site("West")
        wait_until("the end", lambda: coordinator.poll() is not None)
        assert coordinator.returncode == 0
        result = json.loads("{" + made.said("coordinator").split("\n{", 1)[1])
        assert result["details"]["rows"] == 300 + 350 + 400
        assert all(len(made.entries(name)["settle"]) == 1 for name in NAMES)
    finally:
        made.close()

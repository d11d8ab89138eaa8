"""Three sites over TLS whose parts are summed; one of them is killed in the middle and comes back."""

import json

import pytest
from tests.system.federation.federation import Federation, wait_until

NAMES = ("North", "South", "West")
RECORDS = {"method": "trial", "protects": "record", "settings": {"adjustment": "none"}}
OUTCOMES = {"method": "difference_in_means", "protects": "outcome"}


@pytest.mark.slow
@pytest.mark.federation
@pytest.mark.parametrize("asked", [RECORDS, OUTCOMES], ids=["records", "outcomes"])
def test_parts_are_summed_over_tls(tmp_path, asked):
    pytest.importorskip("flwr", reason="needs the extra [federation]")
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

import pytest
from tests.contract.recording import record


@pytest.fixture
def passed(monkeypatch):
    return record(monkeypatch)

"""Places for ledgers: a fresh file, and the private PostgreSQL cluster."""

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The address of a ledger that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("cluster").emptied()

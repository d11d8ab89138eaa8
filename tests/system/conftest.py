"""A private PostgreSQL cluster that lives as long as the tests."""

import shutil
import tempfile
from pathlib import Path

import pytest
from tools.postgres import Cluster, reason_to_skip


@pytest.fixture(scope="session")
def cluster():
    """A running private cluster; skips with a reason where none can be started."""
    reason = reason_to_skip()
    if reason is not None:
        pytest.skip(reason)
    # Not under pytest's folder, which other accounts may not enter.
    folder = Path(tempfile.mkdtemp(prefix="counterveil-pg-"))
    folder.chmod(0o755)
    started = None
    try:
        started = Cluster(folder)
        yield started
    finally:
        if started is not None and started.server.poll() is None:
            started.crash()
        shutil.rmtree(folder, ignore_errors=True)

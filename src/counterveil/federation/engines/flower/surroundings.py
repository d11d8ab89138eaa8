"""The surroundings in which Flower's processes run: no telemetry, no update check, no installs, no way out."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

from counterveil.federation.files import not_installed, open_private, private_folder

_CHILD = "counterveil.federation.engines.flower.child"
_LOCAL = "localhost,127.0.0.1"


def settings(home: Path) -> dict[str, str]:
    """Return the environment variables that keep Flower quiet, offline and inside one folder."""
    unproxied = [os.environ[name] for name in ("no_proxy", "NO_PROXY") if os.environ.get(name)]
    return {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "UV_OFFLINE": "1",
        # Calls between processes of one machine never go through a proxy.
        "NO_PROXY": ",".join([*unproxied[:1], _LOCAL]),
        "no_proxy": ",".join([*unproxied[:1], _LOCAL]),
    }


def prepare(home: Path) -> None:
    """Set these variables in this process, before Flower is imported; raise CV-E060 where it is not installed."""
    if importlib.util.find_spec("flwr") is None:
        raise not_installed("flwr")
    private_folder(home)
    os.environ.update(settings(home))


def start(kind: str, arguments: list[str], home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Return a running process of Flower that ends when this one does; what it says goes to a file."""
    command = [sys.executable, "-m", _CHILD, kind, str(os.getpid()), *arguments]
    with open_private(log) as output:
        return subprocess.Popen(
            command,
            env=os.environ | settings(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Flower's database holds the tokens of tasks.
            umask=0o077,
        )


def stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End a process that `start` returned, in order if so many seconds suffice."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

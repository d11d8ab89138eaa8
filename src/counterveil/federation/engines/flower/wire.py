"""How our texts lie in Flower's messages, and the clients that both sides make alike."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.cli.build import build_fab_from_files
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from counterveil.errors import refusal
from counterveil.federation.files import open_private, private_folder

_RECORD, _TEXT = "counterveil", "text"
_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


def wrapped(text: str) -> RecordDict:
    """Return the content of a message that carries a text."""
    return RecordDict({_RECORD: ConfigRecord({_TEXT: text})})


def unwrapped(message: Message) -> str | None:
    """Return the text that a message carries; None for an error, whose own text is not looked at."""
    if message.has_error():
        return None
    record = message.content.get(_RECORD)
    text = record.get(_TEXT) if isinstance(record, ConfigRecord) else None
    return text if isinstance(text, str) else None


def runtime_client(address: str, authority: bytes, proof: ProtobufClientInterceptor) -> RuntimeHttpClient:
    """Return a client of a Runtime API over TLS that shows `proof` with its calls."""
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=authority,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="counterveil"), proof],
    )


def executor_proof(secret: Path) -> ProtobufClientInterceptor:
    """Return the proof of being the one process that may take tasks."""
    return SuperExecAuthHttpInterceptor(master_secret=secret.read_bytes(), protected_methods=[_ACQUIRE])


def task_proof(token: str) -> ProtobufClientInterceptor:
    """Return the proof of having taken a task."""
    return RuntimeTokenHttpInterceptor(token)


def take_task(client: RuntimeHttpClient, kind: TaskType) -> str | None:
    """Return the token of the oldest task of this kind, None where there is none; no other kind is ever taken."""
    found = client.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
    return found.token if found.HasField("task") and found.token else None


def heartbeat(client: RuntimeHttpClient) -> HeartbeatSender:
    """Return a sender of signs of life for a task, not started yet."""
    return HeartbeatSender(_beat(client))


def _beat(client: RuntimeHttpClient) -> Callable[[], bool]:
    def beat() -> bool:
        try:
            client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
        except httpx.TransportError:
            return False
        except httpx.HTTPStatusError:
            # The task is over; whoever works on it will be told when it hands in its output.
            return True
        return True

    return beat


# The coordinator is its own server app, and sites run what is installed there, so both names are never loaded.
_PROJECT = b"""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "counterveil"
version = "1.0.0"
description = "Carries requests and replies; holds no code."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "counterveil"

[tool.flwr.app.components]
serverapp = "none:none"
clientapp = "none:none"

[tool.flwr.app.config]
"""


def empty_bundle() -> bytes:
    """Return the bundle of an app without code."""
    bundle: bytes = build_fab_from_files({"pyproject.toml": _PROJECT})[0]
    return bundle


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
        raise refusal("CV-E060", package="flwr")
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

"""The coordinator's end: a SuperLink over TLS, and the run through which requests and replies pass."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from flwr.app import Message, MessageType
from flwr.common.constant import SubStatus
from flwr.common.serde import fab_to_proto, run_from_proto
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    RegisterNodeRequest,
    StartRunRequest,
    UnregisterNodeRequest,
)
from flwr.proto.runtime_pb2 import PullTaskInputRequest, PushTaskOutputRequest
from flwr.supercore.constant import NodeStatus, TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supercore.protobuf.client import ProtobufCall, ProtobufRequestContext
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from counterveil.errors import refusal
from counterveil.federation import keys
from counterveil.federation.engines.flower import wire
from counterveil.federation.files import port_of, private_folder
from counterveil.federation.study_files import StudyFolder

_POLL = 0.25
_STARTING_SECONDS = 180.0
_CALLING_SECONDS = 60.0
_PORT_SECONDS = 15.0
# What it knows is on the disk; it would only wait for sites to hang up.
_STOPPING_SECONDS = 0.5


class _Token:
    """Shows the coordinator's token to the Control API."""

    def __init__(self, token: str) -> None:
        self._token = token

    def intercept(self, context: ProtobufRequestContext, call_next: ProtobufCall) -> httpx.Response:
        """Add the token to a call."""
        context.request.headers["authorization"] = f"Bearer {self._token}"
        return call_next(context)


class FlowerLink:
    """An `Engine` on Flower: starts the SuperLink, admits the nodes of the study, and is their server app."""

    def __init__(self, folder: StudyFolder, listen: str) -> None:
        self._folder = folder
        self._listen = listen
        self._keys = folder.keys
        self._authority = (self._keys / keys.AUTHORITY).read_bytes()
        self._address = f"127.0.0.1:{port_of(folder.study.address)}"
        self._names = {
            public_key_to_bytes(keys.read_public_key(folder.public_key(site))): site
            for site in folder.study.asks
        }
        self._nodes: dict[str, int] = {}
        self._sent: dict[str, str] = {}

    def __enter__(self) -> Self:
        _wait_for_port(self._listen, port_of(self._folder.study.address))
        home = self._folder.path / "flower"
        private_folder(home)
        log = self._folder.path / "link.log"
        self._process = wire.start("link", self._arguments(home), home, log)
        try:
            self._control = self._waited()
            self._admit()
            self._begin()
        except httpx.HTTPError as error:
            wire.stop(self._process, _STOPPING_SECONDS)
            raise refusal("CV-F021", got=f"a call failed: {type(error).__name__}") from None
        except BaseException:
            wire.stop(self._process, _STOPPING_SECONDS)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._heartbeat.stop()
            done = PushTaskOutputRequest(sub_status=SubStatus.COMPLETED, details="")
            self._client.PushTaskOutput(done)
            self._client.close()
            self._grid.close()
            self._control.close()
        except (httpx.HTTPError, RuntimeError):
            pass  # the link is gone already; what arrived is on the disk
        finally:
            wire.stop(self._process, _STOPPING_SECONDS)

    def connected(self) -> set[str]:
        """Return the names of the sites whose nodes are online."""
        with _calling(self._process):
            online = {self._names.get(node.public_key): node.node_id for node in self._grid.get_nodes()}
        self._nodes |= {site: node for site, node in online.items() if site is not None}
        return {site for site in online if site is not None}

    def send(self, site: str, text: str, seconds: float) -> None:
        """Queue a request for a site's node; Flower drops it after so many seconds."""
        message = Message(
            wire.wrapped(text), dst_node_id=self._nodes[site], message_type=MessageType.QUERY, ttl=seconds
        )
        with _calling(self._process):
            found = [each for each in self._grid.push_messages([message]) if each]
        self._sent |= dict.fromkeys(found, site)

    def received(self) -> list[tuple[str, str | None]]:
        """Return the replies that arrived since the last call."""
        if not self._sent:
            return []
        with _calling(self._process):
            messages = list(self._grid.pull_messages(list(self._sent)))
        pairs = [(self._sent.pop(each.metadata.reply_to_message_id, None), each) for each in messages]
        return [(site, wire.unwrapped(message)) for site, message in pairs if site is not None]

    def _arguments(self, home: Path) -> list[str]:
        arguments = [str(self._keys / keys.TOKEN)]
        arguments += ["--host", self._listen, "--port", str(port_of(self._folder.study.address))]
        arguments += ["--ssl-certfile", str(self._keys / keys.CERTIFICATE)]
        arguments += ["--ssl-keyfile", str(self._keys / keys.KEY)]
        arguments += ["--ssl-ca-certfile", str(self._keys / keys.AUTHORITY)]
        # The coordinator takes the server app's task itself; nobody without the secret can.
        arguments += [
            "--isolation",
            "process",
            "--superexec-auth-secret-file",
            str(self._keys / keys.SECRET),
        ]
        arguments += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
        return [*arguments, "--database", str(home / "link.db")]

    def _waited(self) -> ControlHttpClient:
        """Return a client of the Control API as soon as the link answers, or raise CV-F021."""
        token = (self._keys / keys.TOKEN).read_text(encoding="utf-8")
        control = ControlHttpClient.from_server_address(
            server_address=self._address,
            insecure=False,
            root_certificates=self._authority,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="counterveil"), _Token(token)],
        )
        ends = time.monotonic() + _STARTING_SECONDS
        while time.monotonic() < ends:
            _check_alive(self._process)
            try:
                control.ListNodes(ListNodesRequest())
                return control
            except httpx.TransportError:
                time.sleep(_POLL)
        raise refusal("CV-F021", got="it did not answer in time")

    def _admit(self) -> None:
        """Register the key of every site of the study, and shut out keys that are no longer among them."""
        found = self._control.ListNodes(ListNodesRequest()).nodes_info
        known = {node.public_key: node for node in found}
        for key, node in known.items():
            out = node.status == NodeStatus.UNREGISTERED
            if out and key in self._names:
                raise refusal("CV-P608", site=self._names[key])
            if not out and key not in self._names:
                self._control.UnregisterNode(UnregisterNodeRequest(node_id=node.node_id))
        for key, site in self._names.items():
            if key not in known:
                self._control.RegisterNode(RegisterNodeRequest(public_key=key, name=site))

    def _begin(self) -> None:
        """Start a run and take its only task: this process is the server app."""
        bundle = wire.empty_bundle()
        fab = Fab(hashlib.sha256(bundle).hexdigest(), bundle, {})
        self._control.StartRun(StartRunRequest(fab=fab_to_proto(fab)))
        token = self._taken()
        self._client = wire.runtime_client(self._address, self._authority, wire.task_proof(token))
        task = self._client.PullTaskInput(PullTaskInputRequest())
        # Messages are stamped with these.
        TaskIdentity.task_id = task.task_id
        TaskIdentity.run_id = task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        self._heartbeat = wire.heartbeat(self._client)
        self._heartbeat.start()
        self._grid = HttpGrid(self._address, insecure=False, root_certificates=self._authority, token=token)
        # By itself it would wait forever for a link that is gone.
        self._grid._retry_invoker.max_time = _CALLING_SECONDS
        self._grid.set_run(run_from_proto(task.run))

    def _taken(self) -> str:
        proof = wire.executor_proof(self._keys / keys.SECRET)
        executor = wire.runtime_client(self._address, self._authority, proof)
        try:
            ends = time.monotonic() + _STARTING_SECONDS
            while time.monotonic() < ends:
                token = wire.take_task(executor, TaskType.SERVER_APP)
                if token is not None:
                    return token
                time.sleep(_POLL)
        finally:
            executor.close()
        raise refusal("CV-F021", got="no run could be started")


@contextmanager
def _calling(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Turn the failure of a call into CV-F021; Flower has retried it by then."""
    _check_alive(process)
    try:
        yield
    except httpx.HTTPError as error:
        raise refusal("CV-F021", got=f"a call failed: {type(error).__name__}") from None


def _check_alive(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        raise refusal("CV-F021", got=f"its process ended with code {process.returncode}")


def _wait_for_port(host: str, port: int) -> None:
    """Return when the port is free, as it is soon after a run that was killed, or raise CV-F021.

    Another program that listens there would otherwise be talked to.
    """
    ends = time.monotonic() + _PORT_SECONDS
    while time.monotonic() < ends:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return
            except OSError:
                time.sleep(_POLL)
    raise refusal("CV-F021", got=f"port {port} cannot be listened on")

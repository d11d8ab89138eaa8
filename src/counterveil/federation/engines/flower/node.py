"""A site's end: a SuperNode over TLS, and the loop that takes its tasks.

Flower's own executor would run whatever code the coordinator sends with a run. Here nobody does: tasks are
taken by this process, which reads the message, puts it to the site that is installed here, and sends the reply.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from flwr.app import Message
from flwr.common.constant import SubStatus
from flwr.supercore.constant import TaskType
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from counterveil.federation import keys
from counterveil.federation.engines.flower import wire
from counterveil.federation.site_files import SiteFile

_LOG = logging.getLogger(__name__)
_POLL = 0.5
# A node that was not admitted, or fell over, starts again after this many seconds, then twice as many.
_FIRST_PAUSE, _LONGEST_PAUSE = 4.0, 64.0
# A node that lived for so long was admitted.
_ADMITTED_SECONDS = 60.0
# So long a node may take to tell the coordinator that it leaves.
_LEAVING_SECONDS = 10.0

Answerer = Callable[[str], str]


def serve(file: SiteFile, answer: Answerer, stopping: threading.Event) -> None:
    """Answer requests until told to stop, starting the node again whenever it ends."""
    pause = _FIRST_PAUSE
    while not stopping.is_set():
        start = time.monotonic()
        _serve_once(file, answer, stopping)
        if stopping.is_set():
            return
        if time.monotonic() - start > _ADMITTED_SECONDS:
            pause = _FIRST_PAUSE
        _LOG.info("not connected: the coordinator does not admit this node now; again in %.0f s", pause)
        stopping.wait(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _serve_once(file: SiteFile, answer: Answerer, stopping: threading.Event) -> None:
    """Start a node and work for it; return when it ended or lost a task."""
    home = file.folder / "flower"
    port = wire.free_port()
    process = wire.start("node", _arguments(file, port), home, file.folder / "node.log")
    authority = (file.keys / keys.AUTHORITY_OF_NODE).read_bytes()
    address = f"127.0.0.1:{port}"
    executor = wire.runtime_client(address, authority, wire.executor_proof(file.keys / keys.SECRET))
    try:
        while process.poll() is None and not stopping.is_set():
            token = _token(executor)
            if token is None:
                stopping.wait(_POLL)
            elif not _work(wire.runtime_client(address, authority, wire.task_proof(token)), answer):
                return
    finally:
        executor.close()
        wire.stop(process, _LEAVING_SECONDS)


def _token(executor: RuntimeHttpClient) -> str | None:
    """Return the token of a waiting task; a node that is still starting has none."""
    try:
        return wire.take_task(executor, TaskType.CLIENT_APP)
    except Exception as error:
        _LOG.debug("the node does not answer yet: %s", type(error).__name__)
        return None


def _work(client: RuntimeHttpClient, answer: Answerer) -> bool:
    """Return whether a task was answered; after a failure the coordinator asks again."""
    signs = wire.heartbeat(client)
    signs.start()
    try:
        message, context, _, _ = pull_task_input(client)
        text = wire.unwrapped(message)
        reply = Message(wire.wrapped(answer("" if text is None else text)), reply_to=message)
        push_message(client, reply, context)
        push_task_output(client, context, SubStatus.COMPLETED, "")
    except Exception as error:
        # The text of an error may quote anything, so its kind alone is written down, and only here.
        _LOG.warning("a task failed in transit: %s", type(error).__name__)
        return False
    finally:
        signs.stop()
        client.close()
    return True


def _arguments(file: SiteFile, port: int) -> list[str]:
    arguments = ["--superlink", file.coordinator]
    arguments += ["--root-certificates", str(file.keys / keys.AUTHORITY)]
    arguments += ["--auth-supernode-private-key", str(file.keys / keys.NODE_KEY)]
    arguments += ["--isolation", "process", "--superexec-auth-secret-file", str(file.keys / keys.SECRET)]
    arguments += ["--host", "127.0.0.1", "--port", str(port)]
    arguments += ["--ssl-certfile", str(file.keys / keys.CERTIFICATE)]
    arguments += ["--ssl-keyfile", str(file.keys / keys.KEY)]
    return [*arguments, "--ssl-ca-certfile", str(file.keys / keys.AUTHORITY_OF_NODE)]

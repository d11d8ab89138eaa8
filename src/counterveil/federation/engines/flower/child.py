"""`python -m counterveil.federation.engines.flower.child`: Flower's own servers, tied to their parent.

`link` is the SuperLink. Its Control API, which starts runs and registers nodes, is open to everyone in
Flower's free edition; here it asks for a token that only the coordinator can read.
Neither shows the pages that describe its API.
`node` is the SuperNode, as Flower has it.
"""

from __future__ import annotations

import hmac
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

_WATCH_SECONDS = 0.5
_LEAVING_SECONDS = 5.0


def main(arguments: list[str]) -> None:
    """Run the server that the first argument names; the second is the process to live and die with."""
    kind, parent, *rest = arguments
    # A node tells the coordinator that it leaves; what a link knows is on the disk.
    patience = _LEAVING_SECONDS if kind == "node" else 0.0
    _hide_pages("flwr.superlink.main" if kind == "link" else "flwr.supernode.main")
    threading.Thread(target=_watch, args=(int(parent), patience), daemon=True).start()
    if kind == "link":
        token_file, *rest = rest
        sys.argv = ["flower-superlink", *rest]
        _link(Path(token_file).read_text(encoding="utf-8"))
    else:
        sys.argv = ["flower-supernode", *rest]
        from flwr.supernode.cli.flower_supernode import flower_supernode

        flower_supernode()


def _hide_pages(name: str) -> None:
    """Leave out the pages that describe the API to everyone: /docs and /openapi.json answer 404."""
    module = import_module(name)
    vars(module)["FastAPI"] = partial(_without_pages, module.FastAPI)


def _without_pages(make: Callable[..., Any], **arguments: Any) -> Any:
    return make(**arguments | {"docs_url": None, "redoc_url": None, "openapi_url": None})


def _watch(parent: int, patience: float) -> None:
    """End this process when its parent is gone, whichever way it went; in order, if so many seconds suffice."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    if patience:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(patience)
    os._exit(1)


def _link(token: str) -> None:
    from flwr.common.constant import ACCESS_TOKEN_KEY
    from flwr.supercore.auth.typing import AccountInfo
    from flwr.superlink.auth_plugin import NoOpControlAuthnPlugin

    command = import_module("flwr.superlink.cli.flower_superlink")

    class TokenPlugin(NoOpControlAuthnPlugin):  # type: ignore[misc]
        """Lets those in who know the coordinator's token."""

        def validate_tokens_in_metadata(
            self, metadata: Sequence[tuple[str, str | bytes]]
        ) -> tuple[bool, AccountInfo | None]:
            given = dict(metadata).get(ACCESS_TOKEN_KEY, "")
            if not isinstance(given, str) or not hmac.compare_digest(given, token):
                return False, None
            account: AccountInfo = super().validate_tokens_in_metadata(metadata)[1]
            return True, account

    vars(command)["load_control_authn_plugin"] = TokenPlugin
    command.flower_superlink()


if __name__ == "__main__":
    main(sys.argv[1:])

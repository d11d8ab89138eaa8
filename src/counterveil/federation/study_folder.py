"""The coordinator's memory: request ids before they are sent, and every reply as soon as it arrives."""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterveil.errors import FederationError
from counterveil.federation.messages import Reply, Request
from counterveil.federation.study_file import StudyFile
from counterveil.federation.toml_files import wrong_setting
from counterveil.federation.writing import read_json, write_json


class StudyFolder:
    """A folder with a study; what it holds outlives any process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study = StudyFile.read(path)

    @property
    def keys(self) -> Path:
        """Where the coordinator's certificates and its token are kept."""
        return self.path / "keys"

    def public_key(self, site: str) -> Path:
        """Return where the public key of a site's node belongs."""
        return self.path / "sites" / f"{site}.pub"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the only run of this study, or raise CV-F023."""
        with (self.path / "lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FederationError(
                    "CV-F023",
                    "this study is running already",
                    expected="one run of a study at a time",
                    got="another process that holds the folder",
                    fix="wait for it, or look at its progress with `counterveil study status`",
                ) from None
            yield

    def request(self, site: str, deadline: float = 0.0) -> Request:
        """Return the request for a site, under the id it had before; a new id is kept before it is used."""
        path = self.path / "requests" / f"{site}.json"
        kept = read_json(path, "request_id", "fingerprint")
        study = self.study
        request_id = uuid.uuid4().hex if kept is None else kept["request_id"]
        request = Request(study.study_id, request_id, study.declaration, study.asks[site], deadline)
        if kept is None:
            write_json(path, {"request_id": request_id, "fingerprint": request.fingerprint()})
        elif kept["fingerprint"] != request.fingerprint():
            raise _changed(site)
        return request

    def renew(self, site: str) -> None:
        """Forget the id of a site's request and its reply, so that it is asked, and pays, anew."""
        if site not in self.study.asks:
            raise wrong_setting("the name of a site", f"one of {', '.join(self.study.asks)}", repr(site))
        (self.path / "requests" / f"{site}.json").unlink(missing_ok=True)
        (self.path / "replies" / f"{site}.json").unlink(missing_ok=True)

    def keep(self, site: str, reply: Reply) -> None:
        """Keep a reply; a result is never replaced by a refusal. None is returned."""
        before = self.reply(site)
        if before is None or not before.ok:
            write_json(
                self.path / "replies" / f"{site}.json",
                {"request_id": reply.request_id, "result": reply.result, "refusal": reply.refusal},
            )

    def reply(self, site: str) -> Reply | None:
        """Return the reply of a site to the request it has now, None where there is none yet."""
        kept = read_json(self.path / "replies" / f"{site}.json", "request_id", "result", "refusal")
        asked = read_json(self.path / "requests" / f"{site}.json", "request_id")
        if kept is None or asked is None or kept["request_id"] != asked["request_id"]:
            return None
        return Reply(self.study.study_id, kept["request_id"], kept["result"], kept["refusal"])

    def replies(self) -> dict[str, Reply]:
        """Return the replies that arrived, in the order of the study file."""
        found = {site: self.reply(site) for site in self.study.asks}
        return {site: reply for site, reply in found.items() if reply is not None}

    def note(self, facts: dict[str, Any]) -> None:
        """Keep what is known of the last run: its times, and which sites were seen; None is returned."""
        write_json(self.path / "run.json", facts)

    def last_run(self) -> dict[str, Any]:
        """Return what was noted of the last run."""
        facts: dict[str, Any] = read_json(self.path / "run.json") or {}
        return facts


def _changed(site: str) -> FederationError:
    return FederationError(
        "CV-F024",
        "the question was changed after sites were asked",
        expected="the question, declaration and epsilon that the sites were asked before",
        got=f"another one for {site}",
        fix="undo the change, or make a new study: another question is another release, and is paid for",
    )

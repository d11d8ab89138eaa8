"""The coordinator's memory: request ids before they are sent, and every reply as soon as it arrives."""

from __future__ import annotations

import fcntl
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from counterveil.errors import CounterveilError, FederationError, ParameterError
from counterveil.federation.messages import Head, Reply, Request
from counterveil.federation.study_file import StudyFile
from counterveil.federation.toml_files import wrong_setting
from counterveil.federation.writing import (
    check_private,
    damaged,
    open_private,
    read_json,
    write_json,
)
from counterveil.untrusted import UntrustedError

# What would let others speak for the coordinator.
_SECRETS = ("token", "secret", "server.key")


class StudyFolder:
    """A folder with a study; what it holds outlives any process."""

    def __init__(self, path: Path) -> None:
        check_private(path, path / "keys", *(path / "keys" / name for name in _SECRETS))
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
        with open_private(self.path / "lock") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FederationError(
                    "CV-F023",
                    "this study is running already",
                    expected="one run of a study at a time",
                    got="another process that holds the folder",
                    fix="wait for it, or look at its progress with `counterveil federation coordinator status`",
                ) from None
            yield

    def request(self, site: str, deadline: float = 0.0) -> Request:
        """Return the request for a site, under the id it had before; a new id is kept before it is used."""
        path = self.path / "requests" / f"{site}.json"
        kept = read_json(path, "request_id", "fingerprint")
        study = self.study
        request_id = uuid.uuid4().hex if kept is None else kept["request_id"]
        question = (study.study_id, request_id, site, study.declaration, study.asks[site])
        request = Request(*question, deadline, self.head(site))
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
            facts = reply.to_document() | {"arrived": time.time_ns()}
            write_json(self.path / "replies" / f"{site}.json", facts)

    def reply(self, site: str) -> Reply | None:
        """Return the reply of a site to the request it has now, None where there is none yet; CV-P660 if damaged."""
        path = self.path / "replies" / f"{site}.json"
        kept = read_json(path, "request_id", "arrived")
        asked = read_json(self.path / "requests" / f"{site}.json", "request_id")
        if kept is None or asked is None:
            return None
        try:
            reply = Reply.from_document({name: value for name, value in kept.items() if name != "arrived"})
        except CounterveilError:
            raise damaged(path, "something that is no reply") from None
        return reply if reply.request_id in (asked["request_id"], "") else None

    def arrived(self, site: str) -> int:
        """Return when the reply of a site arrived, in billionths of a second; the earlier of two alike is believed."""
        kept = read_json(self.path / "replies" / f"{site}.json", "arrived") or {}
        found = kept.get("arrived")
        return found if isinstance(found, int) else 0

    def keep_head(self, site: str, head: Head) -> None:
        """Keep where a site's ledger ended; None is returned."""
        write_json(self.path / "heads" / f"{site}.json", asdict(head))

    def head(self, site: str) -> Head | None:
        """Return the last end of a site's ledger that it told of, None before its first answer."""
        path = self.path / "heads" / f"{site}.json"
        try:
            return Head.read(read_json(path, "seq", "hash"))
        except UntrustedError as error:
            raise damaged(path, str(error)) from None

    def replies(self) -> dict[str, Reply]:
        """Return the replies that arrived, in the order of the study file; a damaged file counts as none."""
        found: dict[str, Reply] = {}
        for site in self.study.asks:
            try:
                reply = self.reply(site)
            except ParameterError:
                continue
            if reply is not None:
                found[site] = reply
        return found

    def note(self, facts: dict[str, Any]) -> None:
        """Keep what is known of the last run: its times, and which sites were seen; None is returned."""
        write_json(self.path / "run.json", facts)

    def last_run(self) -> dict[str, Any]:
        """Return what was noted of the last run: `seen` and `set_aside`, nothing before the first."""
        path = self.path / "run.json"
        facts = read_json(path, "seen", "set_aside")
        if facts is None:
            return {}
        if not isinstance(facts["seen"], list) or not isinstance(facts["set_aside"], dict):
            raise damaged(path, "other facts")
        return facts


def _changed(site: str) -> FederationError:
    return FederationError(
        "CV-F024",
        "the question was changed after sites were asked",
        expected="the question, declaration and epsilon that the sites were asked before",
        got=f"another one for {site}",
        fix="undo the change, or make a new study: another question is another release, and is paid for",
    )

"""A PostgreSQL server of our own, for tests and benchmarks."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

# initdb refuses to run as root, so root borrows one of these accounts.
UNPRIVILEGED = ("postgres", "nobody")
STARTUP_SECONDS = 60


def server_programs() -> Path | None:
    """Return the folder with initdb and postgres: the newest of Debian's, or the one on the path."""
    packaged = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = sorted(packaged, key=lambda program: float(program.parent.parent.name))
    if newest:
        return newest[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def reason_to_skip() -> str | None:
    """Return why no server can be started here, None where one can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed (pip install 'counterveil[postgres]')"
    if server_programs() is None:
        return "no PostgreSQL server programs (Debian: apt-get install postgresql)"
    if os.getuid() == 0 and account() is None:
        return "PostgreSQL refuses to run as root and there is no unprivileged account"
    return None


def account() -> pwd.struct_passwd | None:
    """Return the account that runs the server, None for our own."""
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


class Cluster:
    """A PostgreSQL server of our own on a loopback port, and the database on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = server_programs()
        self.as_user = {}
        if os.getuid() == 0:
            owner = account()
            shutil.chown(folder, owner.pw_uid, owner.pw_gid)
            self.as_user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self.log = folder / "server.log"
        self.log.touch()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ("-U", "steward", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        if not (folder / "data").exists():
            self._run("initdb", "-D", "data", *options)
        self.server = None
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, timeout=120, **self.as_user)

    def start(self, *settings: str) -> None:
        """Start the server and wait until it answers."""
        command = [str(self.programs / "postgres"), "-D", "data", "-p", str(self.port), "-k", ""]
        command += ["-c", "listen_addresses=127.0.0.1", *settings]
        with self.log.open("ab") as log:
            self.server = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self.as_user)
        import psycopg

        deadline = time.monotonic() + STARTUP_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self.server.poll() is not None:
                    raise RuntimeError(self.log.read_text()[-2000:]) from None
                time.sleep(0.05)

    def crash(self) -> None:
        """Stop the server at once, without a checkpoint, as a power cut would."""
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(timeout=STARTUP_SECONDS)

    def restart(self, *settings: str) -> None:
        """Stop the server in order and start it with other settings."""
        self.server.send_signal(signal.SIGINT)
        self.server.wait(timeout=STARTUP_SECONDS)
        self.start(*settings)

    @property
    def url(self) -> str:
        """The address of the database."""
        return f"postgresql://steward@127.0.0.1:{self.port}/postgres"

    def emptied(self) -> str:
        """Return the address of the database after removing the ledger and the checkpoints of the test before."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS counterveil, counterveil_checkpoints CASCADE")
        return self.url

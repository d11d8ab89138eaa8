"""A coordinator and its sites as real processes on loopback, for tests."""

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

from tests.command_line import as_json

import counterveil as cv
from counterveil.datasets import simulated_trial
from counterveil.federation.engines.flower.wire import free_port
from counterveil.federation.setup import make_site, make_study
from counterveil.privacy import Budget

HOOKED = Path(__file__).with_name("hooked_site.py")
HOSTILE = Path(__file__).with_name("hostile_coordinator.py")
# Far more than an idle machine needs: tests run beside others.
PATIENCE = 300


def wait_until(what, condition, seconds=PATIENCE):
    """Return what the condition returns as soon as it is true; fail where it never is."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not in {seconds} s: {what}")


class Federation:
    """Folders and processes under one path; `close` ends every process that was started."""

    def __init__(self, path: Path, names, outsiders=(), aggregation="none", **question):
        self.path = path
        self.question = {"method": "difference_in_means", "protects": "outcome", "epsilon": "1"} | question
        self.names = names
        self.study = path / "study"
        self.address = f"127.0.0.1:{free_port()}"
        self.declaration = simulated_trial(8, 0.2).study
        self.running = {}
        document = {
            "id": "trial-7",
            "address": self.address,
            "deadline": PATIENCE,
            "retry": 5,
            "quorum": 2,
            "aggregation": aggregation,
            "question": self.question,
            "sites": {name: {} for name in names},
        }
        make_study(self.study, document, self.declaration, {})
        for place, name in enumerate([*names, *outsiders]):
            self._site(name, place)
            if name in names:
                key = (path / name / "keys" / "node.pub").read_bytes()
                (self.study / "sites" / f"{name}.pub").write_bytes(key)

    def _site(self, name, seed):
        trial = simulated_trial(300 + 50 * seed, 0.2, outcome="continuous", seed=seed)
        records = self.path / f"{name}.csv"
        with records.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(trial.frame)
            writer.writerows(zip(*(column.tolist() for column in trial.frame.values()), strict=True))
        policy = {"estimators": [self.question["method"]], "study_epsilon": "1"}
        policy["protects"] = [self.question["protects"]]
        policy["measures"] = [self.question.get("measure", "difference")]
        document = {"name": name, "data": str(records), "coordinator": self.address, "policy": policy}
        budget = Budget("1/2" if name == "Poor" else 3)
        make_site(self.path / name, document, trial.study, self.study / "keys" / "ca.crt", budget)

    def start(self, key, *command):
        """Start a process; all it says goes to KEY.out under the path."""
        with (self.path / f"{key}.out").open("ab") as output:
            process = subprocess.Popen([sys.executable, *command], stdout=output, stderr=output)
        self.running[key] = process
        return process

    def start_site(self, name, fault=None):
        folder = str(self.path / name)
        if fault is None:
            return self.start(name, "-m", "counterveil", "federation", "site", "run", folder)
        return self.start(name, str(HOOKED), fault, folder)

    def start_coordinator(self, key, deadline, hostile=False):
        file = self.study / "study.toml"
        lines = [line for line in file.read_text().splitlines() if not line.startswith("deadline")]
        file.write_text("\n".join([f"deadline = {deadline}", *lines]) + "\n")
        program = [str(HOSTILE), str(self.path / "ran")] if hostile else ["-m", "counterveil"]
        return self.start(key, *program, "federation", "coordinator", "run", str(self.study), "--json")

    def drop(self, name):
        """Take a site out of the study."""
        file = self.study / "study.toml"
        lines = file.read_text().splitlines()
        file.write_text("\n".join(line for line in lines if not line.startswith(name)) + "\n")

    def kill(self, key):
        """End a process at once, as a power cut would."""
        process = self.running.pop(key)
        process.kill()
        process.wait()

    def close(self):
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def said(self, key):
        path = self.path / f"{key}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def reply(self, name):
        path = self.study / "replies" / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def states(self):
        """Return what the coordinator says of every site."""
        listed = as_json("federation", "coordinator", "status", self.study)["sites"]
        return {each["site"]: each["state"] for each in listed}

    def entries(self, name):
        """Return the ledger's entries of a site by kind."""
        with cv.open_ledger(self.path / name / "ledger.db") as ledger:
            found = ledger.entries("records")
        return {kind: [each for each in found if each.kind == kind] for kind in ("reserve", "settle")}

    def everything_at_the_coordinator(self):
        """Return every byte on the coordinator's disk and in what its processes said."""
        files = [path for path in self.study.rglob("*") if path.is_file()]
        files += list(self.path.glob("coordinator*.out"))
        return b"".join(path.read_bytes() for path in files)

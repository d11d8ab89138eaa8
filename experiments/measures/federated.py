"""Coverage of ratios that a coordinator pools from the answers of sites, each judged before it is believed.

Sites answer as they do over a network: they read their rows, pay from their ledgers and send texts. Noise is therefore
not seeded, and figures change a little from run to run.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import counterveil as cv
from counterveil.federation.coordinator import pooled, states
from counterveil.federation.messages import Reply
from counterveil.federation.setup import make_site, make_study
from counterveil.federation.site import Site
from counterveil.federation.study_files import StudyFolder
from counterveil.inference.arm_means import Means
from counterveil.inference.quotient import RATIO
from counterveil.results import MeasureResult
from experiments.measures.counting import COLUMNS, covered
from experiments.measures.ratios import METHODS, trial
from experiments.runner import Row, Table

# Rows and risk without treatment of each site; no share of the rows exceeds the largest weight of a site.
SITES = {"North": (1200, 0.1), "South": (600, 0.05), "West": (900, 0.2)}
STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial())


def coverage(place: int, protects: str, *, seeds: range) -> Row:
    """Return how often pooled intervals cover, and how many answers are refused."""
    sizes, chances = (np.array(numbers) for numbers in zip(*SITES.values(), strict=True))
    risk = float(sizes @ chances / sizes.sum())
    with TemporaryDirectory() as folder:
        world = _World(Path(folder), protects)
        found = covered(world.means(seeds.start + 10_000 * place, len(seeds)), risk)
    return [protects, 1.0, len(seeds), *found.values, world.aside]


TABLE = Table(
    columns=("protects", "epsilon", "draws", *COLUMNS, "set aside"),
    cells=list(enumerate(METHODS)),
    row=coverage,
    first_seed=500_000,
)


class _World:
    """Sites and a coordinator on one disk, asked again and again about new people."""

    def __init__(self, path: Path, protects: str) -> None:
        self.path, self.aside = path, 0
        question = {"method": METHODS[protects], "protects": protects, "epsilon": "1", "measure": RATIO}
        document = {"id": "s1", "address": "127.0.0.1:9092", "pooling": "all", "question": question}
        document |= {"sites": {name: {"max_rows": rows} for name, (rows, _) in SITES.items()}}
        make_study(path / "study", document, STUDY, {})
        authority = path / "ca.crt"
        authority.write_text("-----BEGIN CERTIFICATE-----\n")
        policy = {"estimators": [METHODS[protects]], "protects": [protects], "measures": [RATIO]}
        policy |= {"study_epsilon": "100000"}
        self.sites = {}
        for name in SITES:
            document = {"name": name, "data": str(path / f"{name}.csv"), "coordinator": "127.0.0.1:9092"}
            file = make_site(path / name, document | {"policy": policy}, STUDY, authority, cv.Budget(100_000))
            self.sites[name] = Site(file)
        self.study = StudyFolder(path / "study")

    def means(self, seed: int, draws: int) -> Iterator[Means]:
        """Yield the pooled means of every draw, and count answers that are set aside."""
        for number in range(draws):
            found = self.asked(seed + 10 * number).means
            assert found is not None
            self.aside += sum(not each.answered for each in states(self.study))
            yield found

    def asked(self, seed: int) -> MeasureResult:
        """Return the pooled ratio of new people at every site."""
        for place, (name, (rows, chance)) in enumerate(SITES.items()):
            people = trial(seed + place, rows, chance, 0.5)
            with (self.path / f"{name}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(people)
                writer.writerows(zip(*(column.tolist() for column in people.values()), strict=True))
            self.study.renew(name)
            reply = self.sites[name].answer(self.study.request(name, 4e9).to_text())
            self.study.keep(name, Reply.from_text(reply))
        found = pooled(self.study)
        assert isinstance(found, MeasureResult)
        return found

"""Every page of the console with a long ledger: CPU of the server for one visit."""

import tempfile
import time
import warnings
from pathlib import Path

from tests.unit.console.visitor import ACCESS_POLICY, PLACE, STUDY, Visitor, make_folder

import counterveil as cv
from benchmarks.ledger import fill_quickly
from counterveil.accounting import AccessPolicy, Uses, open_ledger
from counterveil.bounded_reading import parse_toml
from counterveil.console.application import PAGES, Console
from counterveil.console.visit import Sessions, SignedIn
from counterveil.console.workspace import Workspace
from counterveil.privacy import Budget, Unit

TITLE = "Console: CPU of one page with 10,000 ledger entries; the estimate and the plan are what they compute"
ENTRIES = 10_000
VISITS = 5
LIMIT_MS = 100
# What computes an effect, simulates studies, attaches rows or reads every entry, and not only a page.
COMPUTES = ("/spend", "/plan", "/check", "/verify")
USES = Uses(Unit.OUTCOME, "ate", "difference_in_means", "treated", "score")


def run() -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = make_folder(Path(name), rows=2000)
        (folder / "trial.csv").rename(folder / "records.csv")
        (folder / "studies" / "proposed").mkdir()
        (folder / "studies" / "proposed" / "primary.toml").write_text(STUDY)
        study = cv.Study.from_toml(folder / "studies" / "primary.toml")
        with open_ledger(folder / "ledger.db", create=True) as book:
            book.register(
                "records", Budget(1), access_policy=AccessPolicy.from_dict(parse_toml(ACCESS_POLICY))
            )
            fill_quickly(book, ENTRIES // 2, USES)
            asked = {"protects": "outcome", "epsilon": "0.5", "method": "weighting", "ledger": book}
            cv.ate(folder / "records.csv", study, **asked, request_id="last")
            seq = book.newest("records", 1)[0].seq
        sessions = Sessions()
        console = Console(Workspace(folder), sessions, PLACE).application()
        visitor = Visitor(console, sessions, SignedIn("ada", steward=True))
        key = visitor.get("/").text.split("/data/")[1][:12]
        place = visitor.get("/ledgers").text.split("/ledgers/")[1][:12]
        return [row(visitor, *each, key, place, seq) for each in PAGES if "{site}" not in each[1]]


def row(
    visitor: Visitor, method: str, pattern: str, _: object, key: str, place: str, seq: int
) -> dict[str, str]:
    path = pattern.replace("{key}", place if pattern.startswith("/ledgers") else key)
    path = path.replace("{seq}", str(seq)).replace("{name}", "primary").replace("{code}", "CV-B001")
    path = path.replace("{file}", "report.html")
    typed = {"study": "primary", "question": "ate", "protects": "outcome", "epsilon": "1/1000", "full": "1"}
    typed |= {"method": "weighting", "draws": "2", "rows": "1000", "token": visitor.token(path)}
    costs, codes = [], set()
    for visit in range(VISITS if not path.endswith(COMPUTES) else 2):
        begin = time.process_time()
        if method == "GET":
            query = f"?data={key}" if path.endswith("/check") else ""
            codes.add(visitor.get(path + query).status_code)
        else:
            digest = visitor.form("/studies/primary", "/studies/primary")["before"]
            begin = time.process_time()
            own = {"request": f"r{visit}", "name": f"n{visit}", "text": STUDY} | typed
            own |= {} if "/verify" in path else {"before": digest}
            codes.add(visitor.client.post(PLACE + path, data=own, follow_redirects=False).status_code)
        costs.append(1000 * (time.process_time() - begin))
    computes = path.endswith(COMPUTES)
    return {
        "page": f"{method} {pattern}",
        "status": ", ".join(map(str, sorted(codes))),
        "CPU ms": f"{min(costs):.1f}",
        f"below {LIMIT_MS} ms": "computes" if computes else "yes" if min(costs) < LIMIT_MS else "NO",
    }

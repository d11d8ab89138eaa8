"""A browser without a window: visits pages of a console, and sends their forms as they were written."""

import csv
import re
import tomllib
import warnings
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

import counterveil as cv
from counterveil.accounting import AccessPolicy

HOST = "http://127.0.0.1:8000"
PLACE = "/place"
STUDY = """\
treatment = "treated"
assignment = "trial"

[outcome]
column = "score"
range = [0, 100]

[covariates]
age = { range = [18, 90] }
site = { categories = ["north", "south"] }
"""
ACCESS_POLICY = 'public = ["age", "site", "treated"]\noutcomes = ["score"]\n'
# The same, as a table is filled in.
COLUMNS = {
    "treated": {"role": "treatment"},
    "score": {"role": "outcome", "low": "0", "high": "100"},
    "age": {"role": "covariate", "low": "18", "high": "90"},
    "site": {"role": "covariate", "labels": "north, south"},
}
# A label that no text of the console may show to an analyst.
SECRET = "QZXVCANARYKJW"


def make_folder(folder: Path, rows: int = 60) -> Path:
    """Write rows and a study, as a steward has them before anything is registered."""
    rng = np.random.default_rng(5)
    with (folder / "trial.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["treated", "score", "age", "site", "ward"])
        for number in range(rows):
            treated = number % 2
            score = round(float(rng.uniform(20, 60)) + 20 * treated, 1)
            writer.writerow(
                [treated, score, int(rng.integers(18, 90)), ("north", "south")[number % 3 > 0], SECRET]
            )
    (folder / "studies").mkdir()
    (folder / "studies" / "primary.toml").write_text(STUDY)
    return folder


class Visitor:
    """One person's browser."""

    def __init__(self, application, sessions, person, folder=None):
        self.folder = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # starlette announces a successor of httpx
            from starlette.testclient import TestClient

            self.client = TestClient(application, base_url=HOST, headers={"origin": HOST})
        self.person, self.sessions = person, sessions
        self.get(f"/enter?token={sessions.invite(person)}")

    def get(self, path, **more):
        return self.client.get(path if path.startswith("http") else PLACE + path, **more)

    def form(self, page, action):
        """Return the fields of a form on a page as it was sent, hidden ones and typed ones."""
        html = page if "<" in page else self.get(page).text
        found = re.search(
            rf'<form method="post" action="{PLACE}{re.escape(action)}">(.*?)</form>', html, re.S
        )
        assert found is not None, f"no form for {action}"
        # A box that is not ticked is not sent.
        text = re.sub(r'<input type="checkbox"(?:(?! checked)[^>])*>', "", found.group(1))
        named = re.findall(r'<input[^>]*?name="([^"]+)"[^>]*?value="([^"]*)"', text)
        named += re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', text, re.S)
        for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', text, re.S):
            values = re.findall(r'<option value="([^"]*)"( selected)?', options)
            named.append((name, next((value for value, chosen in values if chosen), values[0][0])))
        return {name: unescape(value) for name, value in named if name not in ("full", "decision")}

    def post(self, page, action, **typed):
        """Send the form of a page with what was typed."""
        return self.client.post(PLACE + action, data=self.form(page, action) | typed)

    def token(self, action):
        """Return the token that this session has for a form, whether or not a page shows it."""
        return self.session().form_token(action)

    def session(self):
        """Return the open session of this browser."""
        return self.sessions.find(dict(self.client.cookies))

    # Steps that several tests take.

    def register(self, access_policy=None, **typed):
        """Register by the forms, at all levels; or with a policy that no form makes, given as TOML."""
        if access_policy is None:
            levels = {f"protects-{level}": "1" for level in ("outcome", "treatment and outcome", "record")}
            wanted = {"epsilon": "3"} | levels | typed
            page = self.post("/register?name=trial", "/register/confirm", **wanted)
            assert "This cannot be undone" in page.text, page.text
            found = self.post(page.text, "/register")
        else:
            place = self.folder / "ledger.db"
            with cv.open_ledger(place, create=not place.exists()) as book:
                budget = cv.Budget(typed.get("epsilon", "3"), typed.get("delta", "0"))
                book.register(
                    "trial", budget, access_policy=AccessPolicy.from_dict(tomllib.loads(access_policy))
                )
            found = self.get("/")
        return re.search(r"/data/([0-9a-f]{12})\"", found.text).group(1)

    def fill(self, page, action, columns, **typed):
        """Send the table of a study with what was typed for columns, each a dictionary of fields."""
        form = self.form(page, action)
        places = {value: key.removeprefix("name-") for key, value in form.items() if key.startswith("name-")}
        for name, cells in columns.items():
            typed |= {f"{field}-{places[name]}": value for field, value in cells.items()}
        return self.client.post(PLACE + action, data=form | typed)

    def confirm(self, key, **typed):
        """Return the page with the price; the question and the level are chosen first."""
        chosen = {name: typed.get(name, "") for name in ("study", "question", "protects")}
        page = f"/data/{key}/ask?{urlencode({'study': 'primary'} | {k: v for k, v in chosen.items() if v})}"
        asked = {"study": "primary", "epsilon": "1", "method": "difference_in_means"} | typed
        return self.post(page, f"/data/{key}/confirm", **asked)

    def ask(self, key, **typed):
        """Confirm a request, and what it makes public for good where the page asks for that, and spend."""
        page = self.confirm(key, **typed)
        assert page.status_code == 200, page.text
        ticked = {"fixed": "1"} if 'name="fixed"' in page.text else {}
        return self.post(page.text, f"/data/{key}/spend", **ticked)


def code_of(response):
    """Return the code that a page of a refusal names."""
    found = re.search(r"CV-[A-Z]\d{3}", response.text)
    return found and found.group()


def words(response):
    """Return the text of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.text)).split())

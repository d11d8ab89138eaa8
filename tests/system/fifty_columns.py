"""A simulated trial as people have it: a CSV file of fifty columns and its REDCap data dictionary."""

import csv
from pathlib import Path

import numpy as np

PEOPLE = 2000
_HEADER = (
    "Variable / Field Name", "Form Name", "Section Header", "Field Type", "Field Label",
    "Choices, Calculations, OR Slider Labels", "Field Note", "Text Validation Type OR Show Slider Number",
    "Text Validation Min", "Text Validation Max", "Identifier?",
)  # fmt: skip


def write(folder: Path) -> None:
    """Write trial.csv and dictionary.csv."""
    rng = np.random.default_rng(50)
    columns, fields = {}, []

    def add(name, values, kind, choices="", validation="", low="", high="", identifier=""):
        columns[name] = values
        fields.append(
            (name, kind, name.replace("_", " ").capitalize(), choices, validation, low, high, identifier)
        )

    add("record_id", np.arange(PEOPLE), "text", identifier="y")
    treated = rng.permutation(np.arange(PEOPLE) % 2)
    add("arm", treated, "radio", "0, usual care | 1, coaching")
    age, severity = rng.integers(18, 91, PEOPLE), rng.normal(50, 15, PEOPLE).clip(0, 100).round(1)
    add("age", age, "text", validation="integer", low=18, high=90)
    add("severity", severity, "slider")
    add("sex", rng.integers(1, 3, PEOPLE), "radio", "1, female | 2, male")
    add(
        "site", rng.choice(["N", "S", "E", "W"], PEOPLE), "dropdown", "N, North | S, South | E, East | W, West",
    )  # fmt: skip
    for place in range(12):
        add(f"lab_{place}", rng.normal(5, 1.5, PEOPLE).clip(0, 10).round(2), "text", "", "number", 0, 10)
    for place in range(12):
        add(f"history_{place}", rng.integers(0, 2, PEOPLE), "yesno")
    for place in range(12):
        add(f"item_{place}", rng.integers(1, 6, PEOPLE), "text", "", "integer", 1, 5)
    codes = {1: "asthma", 2: "diabetes", 3: "gout", 4: "migraine"}
    fields.append(
        (
            "illness", "checkbox", "Illnesses", " | ".join(f"{k}, {v}" for k, v in codes.items()), "", "", "", "",
        )
    )  # fmt: skip
    columns |= {f"illness___{code}": rng.integers(0, 2, PEOPLE) for code in codes}
    add("enrolled", np.full(PEOPLE, "2025-03-01"), "text", validation="date_ymd")
    add("remarks", np.full(PEOPLE, ""), "notes")
    add("clinician", rng.integers(0, 9, PEOPLE), "text", identifier="y")
    risk = 0.5 + 0.003 * (severity - 50) + 0.002 * (age - 50) - 0.1 * treated
    add("relapse", (rng.random(PEOPLE) < risk).astype(int), "yesno")

    assert len(columns) == 50
    with (folder / "trial.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    with (folder / "dictionary.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(_HEADER)
        for name, kind, label, choices, validation, low, high, identifier in fields:
            rows.writerow((name, "baseline", "", kind, label, choices, "", validation, low, high, identifier))

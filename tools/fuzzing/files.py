"""Files of data: CSV and Parquet that are broken, ragged, of another encoding, without a header, or not there."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

from tools.fuzzing import nasty, trials
from tools.fuzzing.judging import NUMBER_CANARY, TEXT_CANARY, Answer, Attempt

_NAMES = (
    "data.csv",
    "data.tsv",
    "da ta.csv",
    "d*.csv",
    "d[1].csv",
    "déta.csv",
    "a\nb.csv",
    "DATA.CSV",
    "-x.csv",
)


def make(rng: random.Random, folder: Path) -> Attempt:
    """Return a question about a broken file."""
    path: Any = _parquet(rng, folder) if rng.random() < 0.3 else _csv(rng, folder)
    if rng.random() < 0.05:
        path = rng.choice(
            (str(folder), str(path) + "x", "a" * 5000 + ".csv", "a\0.csv", "", folder / "none.parquet")
        )
    name, arguments = trials.question(rng)

    def attempt() -> Answer:
        return trials.ask(path, trials.STUDY, name, arguments)

    return attempt


def _csv(rng: random.Random, folder: Path) -> Path:
    columns = trials.people(rng)
    mark = rng.choice((",", ",", ";", "\t", "|"))
    rows = [[_written(rng, cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    lines = [mark.join(columns)] * (rng.random() < 0.93) + [mark.join(row) for row in rows]
    for _ in range(rng.choice((0, 1, 1, 2))):
        _break_lines(rng, lines, mark)
    data = rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines).encode("utf-8", "surrogatepass")
    how = rng.random()
    if how < 0.08:
        data = b"\xef\xbb\xbf" + data
    elif how < 0.16:
        data = data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-32", "utf-7")))
    elif how < 0.22:
        data = data.replace(b"north", "Nörd".encode("latin-1"))
    elif how < 0.5:
        data = nasty.broken_bytes(rng, data)
    path = folder / rng.choice(_NAMES)
    if rng.random() < 0.1:
        path = path.with_name(path.name + ".gz")
        data = gzip.compress(data) if rng.random() < 0.7 else data
        data = data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data
    path.write_bytes(data)
    return path


def _written(rng: random.Random, cell: Any) -> str:
    if rng.random() < 0.005:
        return rng.choice((TEXT_CANARY, f'"{TEXT_CANARY}', str(trials.cell(rng))))
    return str(cell)


def _break_lines(rng: random.Random, lines: list[str], mark: str) -> None:
    at = rng.randrange(len(lines)) if lines else 0
    if not lines:
        return
    how = rng.randrange(9)
    if how == 0:
        lines[min(max(at, 1), len(lines) - 1)] += mark + TEXT_CANARY  # column names are public
    elif how == 1:
        lines[at] = lines[at].rpartition(mark)[0]
    elif how == 2:
        lines[at] = '"' + lines[at]
    elif how == 3:
        lines[at] += "\0"
    elif how == 4:
        lines[at] = mark.join(["1", str(NUMBER_CANARY), "x" * rng.choice((100, 300_000)), "0", TEXT_CANARY])
    elif how == 5:
        lines[at] = ""
    elif how == 6:
        lines[0] = lines[0].replace(
            "score", rng.choice(("Score", "arm", "", "score ", '"score"', "sc\x1bre"))
        )
    elif how == 7:
        del lines[at:]
    else:
        lines[at] = lines[at].replace(
            "0", rng.choice(("NAN", " nan", "1e999", "0x1", "inf", "", "0,5", "٠")), 1
        )


def _parquet(rng: random.Random, folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = trials.people(rng)
    for name in columns:
        if rng.random() < 0.1:
            columns[name] = [str(cell) for cell in columns[name]]
        if rng.random() < 0.05:
            columns[name] = [[cell] for cell in columns[name]]
    path = folder / rng.choice(("data.parquet", "d a.pq", "DATA.PARQUET"))
    pq.write_table(pa.table(columns), path, compression=rng.choice(("none", "snappy", "zstd")))
    if rng.random() < 0.7:
        path.write_bytes(nasty.broken_bytes(rng, path.read_bytes()))
    return path

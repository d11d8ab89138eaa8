"""Files whose lines end in two ways are read or refused as others are; durations are no numbers in any container."""

import gzip
from decimal import Decimal

import pytest

import counterveil as cv
from counterveil.data.sources.files import durations
from counterveil.errors import CounterveilError

STUDY = cv.Study("arm", "score", (0, 10), {"site": cv.Categories(["a", "b\nb"])}, randomised=True)
ROWS = [(place % 2, place % 11, '"b\nb"' if place % 3 else "a") for place in range(40)]


def estimate(source):
    return cv.ate(source, STUDY, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).estimate


def text_of(head, end, rows=ROWS):
    return "arm,score,site" + head + "".join(",".join(map(str, row)) + end for row in rows)


@pytest.mark.parametrize(("head", "end"), [("\r\n", "\n"), ("\n", "\r\n"), ("\r\n", "\r\n"), ("\n", "\n")])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_a_header_line_may_end_in_another_way_than_the_rows(tmp_path, head, end, start, name):
    content = (start + text_of(head, end)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    plain = tmp_path / "plain.csv"
    plain.write_bytes(text_of("\n", "\n").encode())
    assert estimate(tmp_path / name) == estimate(plain)


@pytest.mark.parametrize("row", ["1,2,a,4", "1,2", '1,2,"a', '1,2,"a"b'])
def test_a_broken_row_is_refused_however_lines_end(tmp_path, row):
    for head in ("\n", "\r\n"):
        (tmp_path / "data.csv").write_bytes((text_of(head, "\n") + row + "\n").encode())
        with pytest.raises(CounterveilError, match="CV-D015"):
            estimate(tmp_path / "data.csv")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_refused_in_arrow_and_in_parquet(tmp_path, unit):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "arm": [row[0] for row in ROWS],
            "score": pa.array([row[1] for row in ROWS], pa.duration(unit)),
            "site": ["a"] * len(ROWS),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    for source in (table, tmp_path / "data.parquet"):
        with pytest.raises(CounterveilError, match="CV-D013"):
            estimate(source)
    # Where nothing asks for it, it does no harm.
    other = table.append_column("beside", table["score"]).set_column(
        1, "score", pa.array([row[1] for row in ROWS])
    )
    pq.write_table(other, tmp_path / "other.parquet")
    assert estimate(tmp_path / "other.parquet") == estimate(other)


@pytest.mark.parametrize(
    "noted", [b"", b"@", b"AAAA", b"/////wAAAAA=", b"\xff" * 40, b"/////3AAAAAQAAAAAAAK"]
)
def test_a_schema_that_cannot_be_read_names_no_duration(noted):
    assert durations(noted) == frozenset()


def test_decimals_of_a_negative_scale_are_the_numbers_they_stand_for():
    pa = pytest.importorskip("pyarrow")
    whole = {"arm": [row[0] for row in ROWS], "site": ["a"] * len(ROWS)}
    study = STUDY.changed(outcome_range=(0, 1000))
    cells = [Decimal(100 * row[1]) for row in ROWS]

    def answer(source):
        return cv.ate(source, study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).estimate

    scaled = pa.table(whole | {"score": pa.array(cells, pa.decimal128(5, -2))})
    assert answer(scaled) == answer(whole | {"score": cells})

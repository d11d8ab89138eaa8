"""Experiments declare tables; the runner makes them, keeps what is made and prints pages from CSV."""

from experiments.runner import MARK, Table, judged, mean, of_draws, read_csv, rmse, run, save, saved
from experiments.third_level.__main__ import Row as Answer


def counted(name, number, *, seeds):
    asked.append((name, seeds))
    return [name, number, len(seeds)]


asked: list[object] = []
TABLES = {
    "counts": Table(columns=("name", "number :.2f", "draws"), cells=[("a", 1.0), ("b", 2 / 3)], row=counted),
    "other": Table(
        columns=("name", "number"), cells=[()], row=lambda seeds: [["x", 1], ["y", 2]], apart=True
    ),
}


def lines(capsys, *arguments):
    run(None, TABLES, [*map(str, arguments)])
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_a_table_is_printed_with_the_formats_of_its_columns(capsys):
    assert lines(capsys, "--draws", 3) == [
        "| name | number | draws |",
        "|---|---|---|",
        "| a | 1.00 | 3 |",
        "| b | 0.67 | 3 |",
    ]


def test_quick_makes_two_draws_of_the_first_cell_and_words_choose_cells(capsys):
    assert lines(capsys, "--quick")[2:] == ["| a | 1.00 | 2 |"]
    assert lines(capsys, "--cells", "B", "--draws", 1)[2:] == ["| b | 0.67 | 1 |"]
    # A number is named as a whole.
    assert lines(capsys, "--cells", "1.0", "--draws", 1)[2:] == ["| a | 1.00 | 1 |"]
    assert lines(capsys, "--cells", "1", "--draws", 1)[2:] == []


def test_a_cell_may_have_several_rows_and_a_table_apart_is_named(capsys):
    assert lines(capsys, "--only", "other")[2:] == ["| x | 1 |", "| y | 2 |"]


def test_processes_change_nothing(capsys):
    assert lines(capsys, "--jobs", 2) == lines(capsys)


def test_finished_cells_are_kept_and_the_page_comes_out_the_same_from_the_csv(capsys, tmp_path):
    made = lines(capsys, "--out", tmp_path, "--draws", 4)
    page = (tmp_path / "RESULTS.md").read_text()
    before = len(asked)
    assert lines(capsys, "--out", tmp_path, "--draws", 4) == made
    assert lines(capsys, "--out", tmp_path, "--print") == made
    assert len(asked) == before
    assert (tmp_path / "RESULTS.md").read_text() == page
    assert page.startswith(MARK)
    assert read_csv(tmp_path / "counts.csv") == [
        ["name", "number", "draws"],
        ["a", "1.0", "4"],
        ["b", str(2 / 3), "4"],
    ]
    assert lines(capsys, "--out", tmp_path, "--draws", 5) != made


def test_words_of_a_page_without_a_mark_are_left_alone(capsys, tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text("Written by hand.\n")
    lines(capsys, "--out", tmp_path)
    assert page.read_text() == "Written by hand.\n"
    page.write_text(f"Above.\n{MARK}\nold")
    lines(capsys, "--out", tmp_path)
    assert page.read_text().startswith(f"Above.\n{MARK}\n\n| name |")


def test_measures_are_of_all_draws():
    row = of_draws(
        lambda truth: [truth],
        lambda truth, seed: judged((seed - 1.0, seed + 1.0), seed, truth),
        [mean("covered"), mean("width"), rmse("error")],
    )
    assert row(1, seeds=range(4)) == [1, 0.75, 2.0, (6 / 4) ** 0.5]


def test_answers_are_kept_one_by_one_but_for_a_line_that_was_cut_off(tmp_path):
    file = tmp_path / "answers.csv"
    answer = Answer("record", "d", "auto", "ATE", "1", "0", 3, *[0.1] * 7, 5, "")
    save(file, answer)
    file.write_text(file.read_text() + "record,d,au")
    assert saved(file, Answer) == [answer]
    save(file, answer)
    assert saved(file, Answer) == [answer, answer]

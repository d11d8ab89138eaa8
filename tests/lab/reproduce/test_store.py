"""Finished cells on disk: what was cut short is left out, and nothing behind it is lost."""

from counterveil_lab.reproduce.command import Done, Store, key_of


def test_cells_are_read_back_by_their_entries_in_any_order(tmp_path):
    store = Store(tmp_path / "rows" / "figure.jsonl")
    assert store.read() == {}
    store.add({"b": 1, "a": "x"}, Done([{"value": 0.5}], 1.25))
    assert store.read() == {key_of({"a": "x", "b": 1}): Done([{"value": 0.5}], 1.25)}


def test_a_torn_last_line_is_ignored_and_the_next_cell_is_kept(tmp_path):
    store = Store(tmp_path / "figure.jsonl")
    for number in range(3):
        store.add({"n": number}, Done([{"value": number}], 0.0))
    text = store.path.read_bytes()
    store.path.write_bytes(text[:-9])
    assert sorted(store.read()) == [key_of({"n": 0}), key_of({"n": 1})]
    store.add({"n": 2}, Done([{"value": 7}], 0.0))
    assert store.read()[key_of({"n": 2})].rows == [{"value": 7}]
    assert len(store.read()) == 3


def test_a_line_of_another_shape_is_ignored(tmp_path):
    store = Store(tmp_path / "figure.jsonl")
    store.path.write_text('[1]\n{"rows": []}\n\n', encoding="utf-8")
    assert store.read() == {}

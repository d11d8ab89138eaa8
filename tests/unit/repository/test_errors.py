TABLE = "src/counterveil/refusals.toml"
ROW = '[CV-Z001]\nproblem = "{name!r} is gone"\nexpected = "{name!r}"\ngot = "{what}"\nfix = "look"\nwhy = "so"\n'


def test_every_code_has_its_row(tool, root):
    assert tool("check_errors").problems(root) == []


def test_a_code_without_row_and_a_row_without_code_are_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001")\n')
    write(TABLE, ROW.replace("Z001", "Z002"))
    assert tool("check_errors").problems(tmp_path) == [
        f"CV-Z001 (part.py): {TABLE} has no such row",
        f"{TABLE}: the source never uses CV-Z002",
    ]
    assert tool("check_errors").main([str(tmp_path)]) == 1


def test_a_row_without_its_texts_is_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001")\n')
    write(TABLE, '[CV-Z001]\nproblem = "gone"\nexpected = "it"\ngot = "none"\nfix = ""\n')
    assert tool("check_errors").problems(tmp_path) == [
        f"{TABLE}: CV-Z001 has no fix",
        f"{TABLE}: CV-Z001 has no why",
    ]


def test_a_call_with_other_facts_than_its_row_names_is_named(tool, write, tmp_path):
    write("src/part.py", 'raise refusal("CV-Z001", name="a", what="b")\nraise refusal("CV-Z001", name="a")\n')
    write(TABLE, ROW)
    assert tool("check_errors").problems(tmp_path) == ["part.py:2: CV-Z001 takes name, what"]

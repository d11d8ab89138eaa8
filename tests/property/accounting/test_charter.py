"""For every charter: what is written, as TOML and as entries of a ledger, is read back."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from counterveil.accounting import Charter, open_ledger
from counterveil.accounting.charter import usable
from counterveil.privacy import Budget

NAMES = st.text(min_size=1, max_size=30).filter(usable)
LISTS = st.lists(NAMES, max_size=6)


@st.composite
def charters(draw):
    private = draw(LISTS)
    public = [name for name in draw(LISTS) if name not in private]
    return Charter(
        public=public,
        outcomes=draw(st.none() | st.just(private)),
        missing={name: draw(st.sampled_from(["drop", "fill"])) for name in private},
        protects=draw(st.sampled_from([["outcome"], ["record"], ["outcome", "record"]])),
        methods=draw(st.none() | LISTS),
        most_epsilon=draw(st.none() | st.fractions(min_value="1/1000", max_value=100, max_denominator=10**9)),
        most_delta=draw(st.none() | st.fractions(min_value=0, max_value="1/2", max_denominator=10**9)),
        unproved=draw(st.booleans()),
    )


@given(charters())
def test_what_is_written_is_read_back(charter):
    assert Charter.from_dict(charter.to_dict()) == charter
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "charter.toml"
        path.write_bytes(charter.to_toml().encode())
        assert Charter.from_toml(path) == charter
    with open_ledger(":memory:") as ledger:
        ledger.register("people", Budget(1), charter=charter)
        assert ledger.account("people").charter == charter
        assert ledger.verify().ok
        assert all(line.isprintable() for line in str(ledger.account("people")).split("\n"))

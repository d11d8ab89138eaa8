"""For every access policy: what is written, as TOML and as entries of a ledger, is read back."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from counterveil.accounting import AccessPolicy, open_ledger
from counterveil.accounting.access_policy import usable
from counterveil.privacy import Budget

NAMES = st.text(min_size=1, max_size=30).filter(usable)
LISTS = st.lists(NAMES, max_size=6)


@st.composite
def access_policies(draw):
    private = draw(LISTS)
    public = [name for name in draw(LISTS) if name not in private]
    return AccessPolicy(
        public=public,
        outcomes=draw(st.none() | st.just(private)),
        missing={name: draw(st.sampled_from(["drop", "fill"])) for name in private},
        protects=draw(st.sampled_from([["outcome"], ["record"], ["outcome", "record"]])),
        methods=draw(st.none() | LISTS),
        max_epsilon=draw(st.none() | st.fractions(min_value="1/1000", max_value=100, max_denominator=10**9)),
        max_delta=draw(st.none() | st.fractions(min_value=0, max_value="1/2", max_denominator=10**9)),
        unproved=draw(st.booleans()),
    )


@given(access_policies())
def test_what_is_written_is_read_back(access_policy):
    assert AccessPolicy.from_dict(access_policy.to_dict()) == access_policy
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "access-policy.toml"
        path.write_bytes(access_policy.to_toml().encode())
        assert AccessPolicy.from_toml(path) == access_policy
    with open_ledger(":memory:") as ledger:
        ledger.register("people", Budget(1), access_policy=access_policy)
        assert ledger.account("people").access_policy == access_policy
        assert ledger.verify().ok
        assert all(line.isprintable() for line in str(ledger.account("people")).split("\n"))

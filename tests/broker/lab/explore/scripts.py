"""Scripts for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from pulsarium.broker.lab.explore.script import Decision

decisions = st.builds(
    Decision,
    st.sampled_from(["receipt-lost", "ack-lost", "unload"]),
    st.sampled_from(["SEND", "ACK"]),
    st.integers(0, 20),
    st.none() | st.sampled_from([0.5, 60.0]),
)
scripts = st.lists(decisions, max_size=8, unique_by=lambda each: each[:3]).map(tuple)

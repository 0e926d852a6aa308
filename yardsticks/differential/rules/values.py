"""Values that rules draw. Numbers are small, so that programs use the same objects again."""

from __future__ import annotations

from hypothesis import strategies as st

from ..program import NON_PERSISTENT, PARTITION

LINKS = st.integers(0, 2)
IDS = st.integers(0, 3)
ANY = st.integers(0, 15)
OFTEN = st.sampled_from([True, True, True, False])
SELDOM = st.sampled_from([False] * 7 + [True])
NAMES = st.sampled_from([None, "p", "q"])
SUBSCRIPTIONS = st.sampled_from(["s", "r"])
TOPIC = st.sampled_from([0, 0, 0, 0, 1, 1, NON_PERSISTENT, PARTITION])
PERSISTENT = st.sampled_from([0, 0, 0, 1, 1, PARTITION])
EARLIEST, LATEST = (-1 % 2**64,) * 2, (2**63 - 1,) * 2

from __future__ import annotations

import pytest

from .key_order import assert_ordered_by_key, events


def test_the_order_check_accepts_each_allowed_history() -> None:
    assert_ordered_by_key(
        events(
            [
                "a received k 1",
                "b received x 2",
                "a received k 3",
                "a acknowledged k 1",
                "a left",
                "b received k 3",
                "b received k 4",
                "b acknowledged k 3",
                "b acknowledged k 4",
                "c received k 5",
            ]
        )
    )


@pytest.mark.parametrize(
    ("history", "complaint"),
    [
        (("a received k 1", "b received k 2"), "others hold"),
        (("a received k 1", "a left", "b received k 2", "b received k 1"), "after 2"),
        (("a received k 2", "a acknowledged k 2", "b received k 1"), "new, after 2"),
        (("a received k 1", "a acknowledged k 1", "a received k 1"), "after 1"),
    ],
)
def test_the_order_check_refuses_each_forbidden_history(history: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        assert_ordered_by_key(events(history))

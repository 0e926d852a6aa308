"""The page docs/client.md is complete."""

from __future__ import annotations

import inspect

import pytest

from pulsarium.cli.pages.client import OPTIONS, Explained, client_page, fields_of
from pulsarium.client import Client, errors


@pytest.mark.parametrize(("title", "explained"), OPTIONS)
def test_every_option_is_explained(title: str, explained: Explained) -> None:
    found = fields_of(explained)
    assert found
    assert [field.name for field in found if not field.text] == []
    assert all(f"| `{field.name}` |" in client_page() for field in found)
    if inspect.isfunction(explained):
        taken = inspect.signature(explained).parameters.keys() - {"self"}
        shared = {field.name for field in fields_of(Client.subscribe)} if "as `subscribe`" in title else set()
        assert {field.name for field in found} <= taken <= {field.name for field in found} | shared


def test_every_error_is_there() -> None:
    page = client_page()
    assert "| `ProducerFenced` | " in page
    assert "`PulsarError` |" not in page
    assert all(f"| `{error.__name__}` | " in page for error in errors.BY_CODE.values())

"""docs/client.md says something of everything."""

from __future__ import annotations

import pytest

from pulsarium.cli.pages.client import OPTIONS, client_page, fields_of
from pulsarium.client import errors


@pytest.mark.parametrize(("title", "cls"), OPTIONS)
def test_every_option_is_explained(title: str, cls: type) -> None:
    fields = fields_of(cls)
    assert fields
    assert [field.name for field in fields if not field.text] == []
    assert all(f"| `{field.name}` |" in client_page() for field in fields)


def test_every_error_is_there() -> None:
    page = client_page()
    assert "| `ProducerFenced` | " in page
    assert "`PulsarError` |" not in page
    assert all(f"| `{error.__name__}` | " in page for error in errors.BY_CODE.values())

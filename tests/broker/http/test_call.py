from __future__ import annotations

import pytest

from pulsarium.broker.http.call import parse_json, texts_of


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (b"null", None),
        (b'{"a": "b", "n": 1, "t": true, "none": null}', {"a": "b", "n": "1", "t": "true"}),
        (b'{"\\ud83d\\ude00": "\\ud83d\\ude00"}', {"\U0001f600": "\U0001f600"}),
        (b'{"\\ud800": "a\\udc00"}', {"?": "a?"}),
    ],
)
def test_every_text_can_be_kept(body: bytes, texts: dict[str, str] | None) -> None:
    assert texts_of(parse_json(body)) == texts
    assert str(texts).encode()

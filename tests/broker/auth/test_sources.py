"""Sources of keys: files, data URLs and base64."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.auth.sources import read_source
from pulsarium.broker.config import ConfigError


def test_a_key_comes_from_a_file_by_url_or_path(tmp_path: Path) -> None:
    path = tmp_path / "a key"
    path.write_bytes(b"\x00key")
    assert read_source("k", f"file://{str(path).replace(' ', '%20')}") == b"\x00key"
    assert read_source("k", f" {path} ") == b"\x00key"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("data:;base64,AGtleQ==", b"\x00key"),
        ("data:application/octet-stream;base64,AGtleQ==", b"\x00key"),
        ("data:;base64,AGtleQ%3D%3D", b"\x00key"),
        ("data:;base64,AGtleQ", b"\x00key"),
        ("data:,plain%20text", b"plain text"),
        ("AGtleQ==", b"\x00key"),
        ("AGtleQ", b"\x00key"),
    ],
)
def test_a_key_may_be_its_own_content(value: str, content: bytes) -> None:
    assert read_source("k", value) == content


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("data:nothing", "this data: URL has no comma before its content"),
        ("data:;base64,hush!", "is neither a file nor base64"),
        ("hushé", "is neither a file nor base64"),
        ("hush!", "is neither a file nor base64"),
        ("hush" * 5000 + "!", "is neither a file nor base64"),
        ("file:///not/there", "/not/there cannot be read: No such file or directory"),
        ("file:///%FF", "cannot be read: No such file or directory"),
        ("file:///%00", "is not the path of a file"),
    ],
)
def test_a_source_that_is_none_is_refused_by_key_and_not_shown(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_source("tokenSecretKey", value)
    assert str(caught.value).startswith("tokenSecretKey: ")
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", ["secret.key", "keys/public.pem", "file:secret.key"])
def test_a_file_that_is_not_there_is_told_with_the_folder_it_was_looked_for_in(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        read_source("tokenSecretKey", name)
    path = name.removeprefix("file:")
    expected = f"tokenSecretKey: no file {path} in {tmp_path}, the folder of relative paths; "
    assert str(refused.value).startswith(expected)


def test_an_error_hides_a_possible_secret() -> None:
    with pytest.raises(ConfigError) as refused:
        read_source("tokenSecretKey", "a.secret/of*mine")
    assert "secret/of" not in str(refused.value)

"""Keys from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.client.entry.crypto import CryptoKeyReader


def test_keys_are_read_from_files_as_they_are_now(tmp_path: Path) -> None:
    """The reader reads the file at each call, because an application may replace a key. All names have the same key."""
    public, private = tmp_path / "public.pem", tmp_path / "private.pem"
    public.write_bytes(b"public")
    private.write_bytes(b"private")
    reader = CryptoKeyReader(str(public), str(private))
    assert reader.get_public_key("a", {}) == b"public"
    assert reader.get_private_key("b", {"version": "1"}) == b"private"
    public.write_bytes(b"another")
    assert reader.get_public_key("a", {}) == b"another"


def test_a_producer_needs_no_private_key(tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_bytes(b"public")
    reader = CryptoKeyReader(str(public), "")
    assert reader.get_public_key("a", {}) == b"public"
    with pytest.raises(OSError, match=r"."):
        reader.get_private_key("a", {})

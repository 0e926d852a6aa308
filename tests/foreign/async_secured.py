"""Helpers for tests of authentication with the asynchronous client."""

from __future__ import annotations

from typing import Any

from pulsarium.client import (
    AuthenticationToken,
)
from tests.broker.auth.secured import token
from tests.foreign.secured import SECRET_OF_TEST


def by_token(role: str, **claims: Any) -> AuthenticationToken:
    return AuthenticationToken(token(role, **{"key": SECRET_OF_TEST, **claims}))

"""Helpers for the tests of authorization."""

from __future__ import annotations

from typing import Any

from tests.broker.auth.secured import token
from tests.broker.wire import Bed

NAMESPACE = "public/default"


def connecting(role: str | None, **fields: Any) -> dict[str, Any]:
    return {"auth_method_name": "token", "auth_data": token(role).encode(), **fields}


def grant(bed: Bed, role: str, *actions: str, **others: Any) -> None:
    kept = bed.broker.metadata.namespaces[NAMESPACE]
    auth = {"namespace_auth": {role: list(actions)}, **others.pop("auth", {})}
    bed.broker.metadata.put_namespace(NAMESPACE, {**kept, "auth_policies": auth, **others})

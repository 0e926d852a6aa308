"""What operators tell the cluster."""

from __future__ import annotations

import json

from pulsarium.broker.model.namespace.metadata import Records
from pulsarium.broker.storage.interface import Done


class Store:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def store(self, path: str, value: bytes | None) -> None:
        if value is None:
            del self.kept[path]
        else:
            self.kept[path] = value

    def after_commit(self, done: Done) -> None:
        done(None)


def test_names_are_no_paths() -> None:
    store = Store()
    records = Records(store)
    records.put("/bookies", "a", "b/c", value=1)
    records.put("/bookies", "a", value={"x": 2})
    assert store.kept == {"/bookies/a/b%2Fc": b"1", "/bookies/a": b'{"x": 2}'}
    assert records.inside("/bookies") == {"a": {"x": 2}}
    assert records.inside("/bookies", "a") == {"b/c": 1}
    assert records.get("/bookies", "a", "b", "c") is None
    assert records.get("/bookies", "a", "b/c") == 1


def test_what_is_inside_is_forgotten_too() -> None:
    store = Store()
    records = Records(store)
    for names in (("a",), ("a", "b"), ("ab",)):
        records.put("/bookies", *names, value={})
    records.forget("/bookies", "a")
    assert list(store.kept) == ["/bookies/ab"]
    records.forget("/bookies", "a")
    assert records.inside("/bookies") == {"ab": {}}


def test_what_was_kept_comes_back() -> None:
    store = Store()
    Records(store).put("/admin/clusters", "c", "failureDomain", "d", value={"brokers": ["b"]})
    records = Records(store)
    for path, value in {**store.kept, "/admin/policies/t": json.dumps({}).encode()}.items():
        records.recover(path, value)
    assert records.inside("/admin/clusters", "c", "failureDomain") == {"d": {"brokers": ["b"]}}
    assert records.inside("/admin/policies") == {}

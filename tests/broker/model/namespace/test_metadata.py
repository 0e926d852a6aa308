"""Records that operators store in the metadata of the cluster."""

from __future__ import annotations

import json

from pulsarium.broker.model.namespace.metadata import Metadata, Records
from tests.broker.model.stores import Paths


def test_names_in_records_are_escaped() -> None:
    store = Paths()
    records = Records(store)
    records.put("/bookies", "a", "b/c", value=1)
    records.put("/bookies", "a", value={"x": 2})
    assert store == {"/bookies/a/b%2Fc": b"1", "/bookies/a": b'{"x": 2}'}
    assert records.inside("/bookies") == {"a": {"x": 2}}
    assert records.inside("/bookies", "a") == {"b/c": 1}
    assert records.get("/bookies", "a", "b", "c") is None
    assert records.get("/bookies", "a", "b/c") == 1


def test_forgetting_a_record_forgets_the_records_inside() -> None:
    store = Paths()
    records = Records(store)
    for names in (("a",), ("a", "b"), ("ab",)):
        records.put("/bookies", *names, value={})
    records.forget("/bookies", "a")
    assert list(store) == ["/bookies/ab"]
    records.forget("/bookies", "a")
    assert records.inside("/bookies") == {"ab": {}}


def test_stored_records_are_recovered() -> None:
    store = Paths()
    Records(store).put("/admin/clusters", "c", "failureDomain", "d", value={"brokers": ["b"]})
    records = Records(store)
    for path, value in {**store, "/admin/policies/t": json.dumps({}).encode()}.items():
        records.recover(path, value)
    assert records.inside("/admin/clusters", "c", "failureDomain") == {"d": {"brokers": ["b"]}}
    assert records.inside("/admin/policies") == {}


def test_the_system_namespace_of_a_new_cluster_may_have_bundles_of_its_own() -> None:
    metadata = Metadata(Paths(), "standalone", system_bundles=64)
    metadata.recover({})
    assert metadata.namespaces["pulsar/system"]["bundles"]["numBundles"] == 64
    assert "bundles" not in metadata.namespaces["public/default"]

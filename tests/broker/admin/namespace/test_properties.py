"""/admin/v2/namespaces: properties."""

from __future__ import annotations

from tests.broker.admin.rest import NAMESPACES, Rest
from tests.broker.admin.steps import Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
ABSENT = {"reason": "Namespace does not exist"}


async def test_all_of_them(rest: Rest) -> None:
    url = f"{DEFAULT}/properties"
    before = await rest.get(DEFAULT)
    await play(
        rest,
        Step(f"GET {url}", 200, {}),
        Step(f"PUT {url}", 204, value={"a": "1", "b": 2}),
        Step(f"PUT {url}", 204, value={"c": "3"}),
        Step(f"PUT {url}", 204),  # Pulsar never answers that
        Step(f"GET {url}", 200, {"a": "1", "b": "2", "c": "3"}),
        Step(f"GET {DEFAULT}", 200, before | {"properties": {"a": "1", "b": "2", "c": "3"}}),
        Step(
            f"PUT {url}",
            400,
            Text("Cannot deserialize value of type `java.util.LinkedHashMap<java.lang.String,"),
            ["x"],
        ),
        Step(f"PUT {url}", 400, Text("Cannot construct instance of `java.util.LinkedHashMap`"), "x"),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200, {}),
        Step(f"GET {MISSING}/properties", 404, ABSENT),
        Step(f"PUT {MISSING}/properties", 404, ABSENT, {"a": "1"}),
        Step(f"DELETE {MISSING}/properties", 404, ABSENT),
        Step(f"GET {NAMESPACES}/nope/x/properties", 404, {"reason": "Tenant does not exist"}),
    )


async def test_one_by_one(rest: Rest) -> None:
    url = f"{DEFAULT}/property"
    await play(
        rest,
        Step(f"GET {url}/k", 200),
        Step(f"PUT {url}/k/v1", 204),
        Step(f"GET {url}/k", 200, Text("v1")),
        Step(f"PUT {url}/k/v%2F2", 204),
        Step(f"GET {DEFAULT}/properties", 200, {"k": "v/2"}),
        Step(f"DELETE {url}/k", 200, Text("v/2")),
        Step(f"DELETE {url}/k", 200),
        Step(f"GET {url}/k", 200),
        Step(f"PUT {MISSING}/property/k/v", 404, ABSENT),
        Step(f"GET {MISSING}/property/k", 404, ABSENT),
        Step(f"DELETE {MISSING}/property/k", 404, ABSENT),
    )

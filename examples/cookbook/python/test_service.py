import service
from starlette.testclient import TestClient


def test_an_order_is_stored_and_billed(pulsar_broker, pulsar_topic, pulsar_faults, monkeypatch):
    monkeypatch.setenv("PULSAR_SERVICE_URL", pulsar_broker.service_url)
    monkeypatch.setattr(service, "TOPIC", pulsar_topic)
    cut = pulsar_faults.add("close", "SEND")  # the connection ends while the service sends
    with TestClient(service.app) as http:
        assert http.post("/orders", content="3 apples").status_code == 201
        pulsar_broker.assert_acked(pulsar_topic, "billing", 1, timeout=30)
        assert http.get("/billed").json() == ["3 apples"]
    assert cut.hits == 1

"""A stranger's page, open in a real browser on this machine, tries to wipe, read and fault a broker on loopback.

Each attack also runs against a broker that allows every host. The attack succeeds there, which shows that it works.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsarium.broker.testing import PulsarBroker, running
from tests.foreign.browser import site, visit

pytestmark = [pytest.mark.heavy, pytest.mark.foreign]
STRANGER = "evil.example"

# Browsers send text, blob and reset at once. Before json and put, they send the broker an OPTIONS request.
ATTACK = """<!doctype html><title>attack</title><pre id="said">nothing</pre><script>
const broker = "http://127.0.0.1:PORT";
const quiet = {method: "POST", mode: "no-cors"};
async function attack() {
  const said = [];
  const attempt = async (name, url, options) => {
    try { const answer = await fetch(url, options); said.push(name + " " + answer.type) }
    catch (error) { said.push(name + " failed") }
  };
  const fault = JSON.stringify({command: "SEND", action: {kind: "drop"}});
  await attempt("text", broker + "/lab/faults", {...quiet, body: fault});
  await attempt("blob", broker + "/lab/faults", {...quiet, body: new Blob([fault])});
  const json = {"Content-Type": "application/json"};
  await attempt("json", broker + "/lab/faults", {method: "POST", headers: json, body: fault});
  await attempt("put", broker + "/admin/v2/tenants/evil", {method: "PUT"});
  await attempt("reset", broker + "/lab/reset", quiet);
  document.getElementById("said").textContent = said.join(",");
}
attack();
</script>"""

FORM = """<!doctype html><iframe name="inside"></iframe>
<form method="post" enctype="text/plain" target="inside" action="http://127.0.0.1:PORT/lab/reset"></form>
<script>document.forms[0].submit()</script>"""
FRAME = """<!doctype html>
<iframe src="http://127.0.0.1:PORT/admin/v2/persistent/public/mine/seen/subscription/evil/position/1"></iframe>"""
ALL = {"httpAllowedHosts": "*"}


@contextmanager
def broker_with_something_to_lose(**set_: str) -> Iterator[PulsarBroker]:
    with running(set=set_) as broker:
        broker.create_namespace("mine")
        yield broker


def attacked_by(page: str, broker: PulsarBroker, profile: Path) -> str:
    """Show a stranger's page in a browser, and return the page's document afterwards."""
    port = broker.admin_url.rpartition(":")[2]
    with site(page.replace("PORT", port)) as own:
        return visit(f"http://{STRANGER}:{own}/", profile, resolve=STRANGER)


def asked(broker: PulsarBroker, path: str) -> list[str]:
    """Return a list from the admin API."""
    with urllib.request.urlopen(f"{broker.admin_url}/admin/v2/{path}", timeout=30) as answer:
        found: list[str] = json.load(answer)
    return found


def namespaces(broker: PulsarBroker) -> list[str]:
    return asked(broker, "namespaces/public")


def test_scripts_of_a_page_change_nothing(tmp_path: Path) -> None:
    with broker_with_something_to_lose() as broker:
        said = attacked_by(ATTACK, broker, tmp_path)
        assert "text opaque" in said, said  # the browser sent the request, and hid the answer from the page
        assert "public/mine" in namespaces(broker)
        assert asked(broker, "tenants") == ["public", "pulsar"]
        assert broker.call(lambda running: len(running.lab.faults.rules)) == 0


def test_the_same_scripts_wipe_a_broker_that_allows_every_host(tmp_path: Path) -> None:
    with broker_with_something_to_lose(**ALL) as broker:
        attacked_by(ATTACK, broker, tmp_path)
        assert "public/mine" not in namespaces(broker)


def test_a_form_changes_nothing(tmp_path: Path) -> None:
    with broker_with_something_to_lose() as broker:
        attacked_by(FORM, broker, tmp_path)
        assert "public/mine" in namespaces(broker)


def test_the_same_form_wipes_a_broker_that_allows_every_host(tmp_path: Path) -> None:
    with broker_with_something_to_lose(**ALL) as broker:
        attacked_by(FORM, broker, tmp_path)
        assert "public/mine" not in namespaces(broker)


def subscriptions_after_a_frame(broker: PulsarBroker, profile: Path) -> list[str]:
    """Show a stranger's page with a frame that peeks, and return the subscriptions. A peek creates one."""
    broker.create_topic("public/mine/seen")
    attacked_by(FRAME, broker, profile)
    return asked(broker, "persistent/public/mine/seen/subscriptions")


def test_a_frame_makes_nothing(tmp_path: Path) -> None:
    with broker_with_something_to_lose() as broker:
        assert subscriptions_after_a_frame(broker, tmp_path) == []


def test_the_same_frame_makes_a_subscription_on_a_broker_that_allows_every_host(tmp_path: Path) -> None:
    with broker_with_something_to_lose(**ALL) as broker:
        assert subscriptions_after_a_frame(broker, tmp_path) == ["evil"]


@pytest.mark.parametrize("path", ["admin/v2/namespaces/public", "pulsarium/topics", ""])
def test_a_site_whose_name_suddenly_resolves_to_this_machine_reads_nothing(path: str, tmp_path: Path) -> None:
    with broker_with_something_to_lose() as broker:
        url = broker.admin_url.replace("127.0.0.1", STRANGER)
        said = visit(f"{url}/{path}", tmp_path, resolve=STRANGER)
        assert "the Host evil.example" in said


def test_the_same_site_reads_a_broker_that_allows_every_host(tmp_path: Path) -> None:
    with broker_with_something_to_lose(**ALL) as broker:
        url = broker.admin_url.replace("127.0.0.1", STRANGER)
        assert "public/mine" in visit(f"{url}/admin/v2/namespaces/public", tmp_path, resolve=STRANGER)

"""The pages of the console: themes, a phone, the keyboard, hostile texts, many topics, and assistive technology."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

import pytest

from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing import PulsarBroker
from pulsarium.proto.topic_name import TopicName
from tests.browser.chromium import Chromium, Page
from tests.browser.stage import asked, client_of, publish

pytestmark = pytest.mark.heavy

AXE = Path(__file__).with_name("axe.min.js")
HOSTILE = "<img src=x onerror=alert(1)>"
LINES = "a\nb"
MANY = 10_000
TOPIC = "#/topic/persistent/public/default/shown"
PAGES = {
    "overview": ("", "No progress for longer than a minute"),
    "topics": ("#/topics", "shown"),
    "topic": (TOPIC, "mark-delete position"),
    "partitioned": ("#/topic/persistent/public/default/parted", "Published to each partition"),
    "producers": (f"{TOPIC}/clients", "No producer is connected."),
    "acts": (f"{TOPIC}/acts", "Acts on the topic"),
    "messages": (f"{TOPIC}/messages?subscription=sub", "message 2"),
    "connections": ("#/connections", "No client is connected"),
    "storage": (f"{TOPIC}/storage", "Mark-delete position"),
    "schema": (f"{TOPIC}/schema", "STRING"),
    "policies": (f"{TOPIC}/policies", "retention"),
    "scalable": ("#/topic/topic/public/default/scaled", "Scaling:"),
    "namespaces": ("#/namespaces", "public/default"),
    "namespace": ("#/namespace/public/default", "retention"),
    "permissions": ("#/namespace/public/default?tab=permissions", "No role has a permission"),
    "unknown": ("#/nowhere", "There is no page at this address"),
    "missing": ("#/topic/persistent/public/default/show", "Names that are close"),
    "transactions": ("#/transactions", "Transactions"),
    "lab": ("#/lab", "Masks"),
}
TOGETHER = """
(() => {
  const shown = (node) => getComputedStyle(node.nodeType === 1 ? node : node.parentNode).display;
  const inline = (node) => node.nodeType === 3 || shown(node) === "inline";
  const free = (parent) => !/flex|grid/.test(getComputedStyle(parent).display) && !parent.closest("pre, svg, code");
  const pairs = [...document.querySelectorAll("main *")].filter(free)
    .flatMap((parent) => [...parent.childNodes].slice(1).map((now) => [now.previousSibling, now]));
  return pairs.filter((pair) => pair.every(inline))
    .map(([before, now]) => [before.textContent, now.textContent])
    .filter(([before, now]) => /[\\p{L}\\p{N}]$/u.test(before) && /^\\p{L}/u.test(now))
    .map(([before, now]) => before.slice(-20) + "|" + now.slice(0, 20));
})()
"""


@pytest.fixture(scope="module", autouse=True)
def stage(broker: PulsarBroker) -> None:
    """Show content on each page."""
    publish(broker, "public/default/shown", 3)
    asked(broker, "admin/v2/persistent/public/default/parted/partitions", "PUT", 3)
    messages = [{"payload": f"part {number}", "key": str(number)} for number in range(3)]
    asked(broker, "topics/persistent/public/default/parted", "POST", {"producerName": "p", "messages": messages})
    asked(broker, "admin/v2/scalable/public/default/scaled?numInitialSegments=2", "PUT", {})
    asked(broker, "admin/v2/scalable/public/default/scaled/split/0", "POST")
    asked(broker, "lab/faults", "POST", {"command": "PING", "action": {"kind": "drop"}})


def violations(page: Page) -> list[str]:
    """Return the violations that axe finds."""
    page.do(AXE.read_text() + "; 0")
    found = page.do("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)")
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_in_both_themes(name: str, theme: str, browser: Chromium, broker: PulsarBroker) -> None:
    where, text = PAGES[name]
    page = browser.page(theme=theme)
    page.go(f"{broker.admin_url}/{where}")
    page.sees(text)
    assert violations(page) == []
    assert page.complaints() == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name: str, browser: Chromium, broker: PulsarBroker) -> None:
    where, text = PAGES[name]
    page = browser.page(width=380, height=700)
    page.go(f"{broker.admin_url}/{where}")
    page.sees(text)
    assert page.do("document.documentElement.scrollWidth") <= 380
    page.close()


def test_the_browser_sees_what_is_below_the_window(browser: Chromium, broker: PulsarBroker) -> None:
    page = browser.page(height=100)
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.until("document.querySelector('article.sub')?.getBoundingClientRect().top > innerHeight")
    page.sees("mark-delete position")
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_head_of_a_phone_leaves_room(name: str, browser: Chromium, broker: PulsarBroker) -> None:
    page = browser.page(width=390, height=844)
    page.go(f"{broker.admin_url}/{PAGES[name][0]}")
    page.sees(PAGES[name][1])
    assert page.do("document.querySelector('header').getBoundingClientRect().bottom") < 0.1 * 844
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_no_words_run_together(name: str, page: Page, broker: PulsarBroker) -> None:
    """A template whose line break is lost shows `1 partitionnot loaded`: two texts of one line without a space."""
    page.go(f"{broker.admin_url}/{PAGES[name][0]}")
    page.sees(PAGES[name][1])
    assert page.do(TOGETHER) == []


def test_a_dialog_is_accessible(page: Page, broker: PulsarBroker) -> None:
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.press("[data-act=subscribe]")
    page.until("document.querySelector('dialog[open]')")
    assert violations(page) == []


def test_the_theme_is_chosen_by_hand(page: Page, broker: PulsarBroker) -> None:
    page.go(broker.admin_url)
    page.fill("Theme", "dark")
    page.until("getComputedStyle(document.body).backgroundColor === 'rgb(16, 17, 21)'")
    page.go("about:blank")
    page.go(broker.admin_url)
    page.until("getComputedStyle(document.body).backgroundColor === 'rgb(16, 17, 21)'")


def test_the_console_is_used_with_the_keyboard_alone(page: Page, broker: PulsarBroker) -> None:
    publish(broker, "public/default/typed", 1)
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/typed/acts")
    page.sees("Acts on the topic")
    for _ in range(60):
        page.key("Tab", 9)
        if page.do("document.activeElement.dataset.act") == "unload":
            break
    page.key("Enter", 13, "\r")
    page.until("document.querySelector('dialog[open]')")
    page.key("Escape", 27)
    page.until("!document.querySelector('main dialog')")  # the page hears of a closed dialog a moment later
    page.key("Enter", 13, "\r")
    page.until("document.querySelector('dialog[open]')")
    page.do("document.querySelector('dialog[open] button.main').focus()")
    page.key("Enter", 13, "\r")
    page.sees("Done: ")


@pytest.mark.parametrize("name", [HOSTILE, LINES, "<script>b", "a?b#c%2F'\"", "${x}{y}"])
def test_a_hostile_name_is_only_a_text(name: str, page: Page, broker: PulsarBroker) -> None:
    path = f"public/default/{urllib.parse.quote(name, safe='')}"
    asked(broker, f"admin/v2/persistent/{path}", "PUT", {})
    subscription = urllib.parse.quote(urllib.parse.quote(HOSTILE, safe=""), safe="")
    asked(broker, f"admin/v2/persistent/{path}/subscription/{subscription}", "PUT", {"ledgerId": -1, "entryId": -1})
    message = {"payload": HOSTILE, "key": HOSTILE, "properties": {HOSTILE: HOSTILE}}
    asked(broker, f"topics/persistent/{path}", "POST", {"producerName": HOSTILE, "messages": [message]})
    page.go(f"{broker.admin_url}/#/topics")
    shown = f"persistent://public/default/{name}"
    link = f"[...document.querySelectorAll('td a')].find((e) => e.textContent === {json.dumps(shown[13:])})"
    page.until(link)
    page.do(f"{link}.click()")
    page.until(f"document.querySelector('main h2').textContent.trim() === {json.dumps(shown[13:])}")
    page.sees(HOSTILE)
    page.click("Messages")
    page.until("document.querySelector('[data-message]')")
    page.sees(HOSTILE)
    assert page.do("document.querySelectorAll('main img, main b > b').length") == 0
    page.click("Acts")
    page.press("[data-act=unload]")
    page.click("Unload", within="dialog[open]")
    page.sees("Done: ")


def test_nothing_is_asked_of_another_host(page: Page, broker: PulsarBroker) -> None:
    for where, text in PAGES.values():
        page.go(f"{broker.admin_url}/{where}")
        page.sees(text)
    assert {url.split("#")[0].startswith(broker.admin_url) for url in page.requests() if url != "about:blank"} == {True}


def test_changes_come_without_being_asked_for(page: Page, broker: PulsarBroker) -> None:
    page.go(f"{broker.admin_url}/#/topics")
    page.sees("public/default/shown")
    page.until("document.readyState === 'complete'")
    before = len(page.requests())
    publish(broker, "public/default/sudden", 1)
    page.sees("public/default/sudden")
    assert len(page.requests()) == before


LIST = "document.querySelector('.list')"


def test_ten_thousand_topics_are_searched_and_scrolled_through(page: Page, broker: PulsarBroker) -> None:
    def create(running: RunningCluster) -> None:
        for number in range(MANY):  # behind those of the other tests, which stay in the first part of the list
            running.broker.topics.create(TopicName.parse(f"persistent://public/default/zoo-{number:05}"))

    broker.call(create)
    page.go(f"{broker.admin_url}/#/topics?filter=zoo-")
    page.sees("10,000 topics")
    page.sees("zoo-00000")
    height = page.do(f"{LIST}.querySelector('tbody tr').offsetHeight")
    for place, name in ((0.5, "zoo-05000"), (1, "zoo-09999"), (0, "zoo-00000")):
        page.do(f"{LIST}.scrollTop = {place} * 10_000 * {height}")
        page.sees(name)
        assert page.do(f"{LIST}.querySelectorAll('tbody tr').length") <= 102
    page.fill("Filter topics", "zoo-09999")
    page.sees("1 topic")
    page.sees("zoo-09999")
    assert page.do("document.querySelectorAll('tbody tr').length") == 1


def test_a_live_topic_shows_its_clients(page: Page, broker: PulsarBroker) -> None:
    page.go(f"{broker.admin_url}/#/topic/persistent/public/default/shown/clients")
    page.sees("No producer is connected.")
    with client_of(broker) as client:
        client.create_producer("shown", producer_name=HOSTILE)
        page.sees(HOSTILE)
    page.sees("No producer is connected.")


def test_one_connection_is_counted_in_the_singular(page: Page, broker: PulsarBroker) -> None:
    page.go(broker.admin_url)
    page.sees("0 connections")
    with client_of(broker) as client:
        client.create_producer("shown")
        page.sees("1 connection ")

"""The habits of the console: Ctrl-K, acts that tell what they touch and are taken back, a lost broker, the lab."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pulsar
import pytest

from pulsarium.broker.testing import PulsarBroker, running
from scripts.pages.console import recorded
from scripts.pages.console_acts import Act
from tests.browser.chromium import Chromium, Page
from tests.browser.stage import asked, client_of, publish

pytestmark = pytest.mark.heavy

ORDERS = "public/default/orders"
TOPIC = "#/topic/persistent/public/default/orders"
CTRL_K = "dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }))"


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


def test_ctrl_k_finds_a_subscription_by_a_part_of_its_name(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    asked(broker, f"admin/v2/persistent/{ORDERS}/subscription/invoicing", "PUT", {"ledgerId": -1, "entryId": -1})
    page.go(broker.admin_url)
    page.until("document.querySelector('header .finder')")
    page.do(CTRL_K)
    page.fill("Find", "nvoic", within="dialog[open]")
    page.until("document.querySelector('#found')?.innerText.includes('invoicing of public/default/orders')")
    page.key("Enter", 13, "\r")
    page.until("location.hash.endsWith('?subscription=invoicing')")
    page.until("document.querySelector('[data-subscription=invoicing] [aria-expanded=true]')")


def test_ctrl_k_does_an_act_on_what_the_page_shows(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 3)
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.sees("mark-delete position")
    page.until("document.querySelector('header .finder')")
    page.do(CTRL_K)
    page.fill("Find", "Clear backlog", within="dialog[open]")
    page.key("Enter", 13, "\r")
    page.click("Clear backlog", within="dialog[open] form")
    page.sees("Nothing waits: the backlog is empty.")


def test_a_slash_goes_to_the_filter(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    page.go(f"{broker.admin_url}/#/topics")
    page.sees(ORDERS)
    page.key("/", 191, "/")
    assert page.do("document.activeElement.getAttribute('aria-label')") == "Filter topics"


def test_a_seek_is_taken_back(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 3)
    asked(broker, f"admin/v2/persistent/{ORDERS}/subscription/sub/skip/2", "POST")
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.press("[data-act=seek]")
    page.click("Seek", within="dialog[open]")
    page.sees("Done: Seek")
    assert broker.why("orders", "sub").details["backlog"] == 3
    page.click("Back to ")
    page.sees(": done.")
    assert broker.why("orders", "sub").details["backlog"] == 1


def test_an_act_says_what_it_will_touch_before_it_acts(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 5)
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.press("[data-act=clear]")
    page.until("document.querySelector('[data-touches]')?.innerText.includes('5 messages')")
    told = page.text("[data-touches]")
    assert "message 0" in told
    assert "message 4" in told


def test_a_lost_broker_is_told_with_a_count_down(browser: Chromium) -> None:
    with running() as broker:
        publish(broker, ORDERS, 1)
        page = browser.page()
        page.go(f"{broker.admin_url}/{TOPIC}")
        page.sees("mark-delete position")
    page.sees("does not answer. Is it running? What you see is from before.")
    page.until("/Trying again in \\d+ s/.test(document.body.innerText)")
    page.close()


def test_a_page_that_lost_a_module_is_loaded_again(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    page.call("Network.setBlockedURLs", urls=["*/console/charts.js"])
    page.go(f"{broker.admin_url}/{TOPIC}")
    page.sees("A part of the console did not load")
    page.call("Network.setBlockedURLs", urls=[])
    page.until("document.querySelector('[data-subscription=sub]')")


def test_a_question_that_was_lost_on_the_way_is_asked_again(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    page.go(broker.admin_url)
    page.sees(ORDERS)
    page.call("Network.setBlockedURLs", urls=["*/pulsarium/policies/*"])
    page.do(f"location.hash = '{TOPIC}/policies'")
    page.until("document.querySelector('main .skeleton')")
    page.call("Network.setBlockedURLs", urls=[])
    page.sees("messageTTL")


def test_the_title_of_the_tab_counts_what_is_stuck(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    broker.clock.advance(90)
    page.go(broker.admin_url)
    page.until("document.title === '(1) Overview · Pulsarium'")


def test_a_message_is_found_by_a_field_of_its_value_in_all_partitions(page: Page, broker: PulsarBroker) -> None:
    asked(broker, f"admin/v2/persistent/{ORDERS}/partitions", "PUT", 3)
    with client_of(broker) as client:
        producer = client.create_producer("orders")
        for number in range(12):
            producer.send(json.dumps({"total": number}).encode(), partition_key=str(number))
    page.go(f"{broker.admin_url}/{TOPIC}/messages?where=total+%3E+9")
    page.sees("12 messages looked at")
    assert page.do("[...document.querySelectorAll('td span.mono')].map((e) => e.innerText).sort()") == [
        '{"total": 10}',
        '{"total": 11}',
    ]


def test_a_message_that_comes_again_and_again_is_a_loop(page: Page, broker: PulsarBroker) -> None:
    with client_of(broker) as client:
        consumer = client.subscribe(
            "orders", "sub", pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=1, consumer_name="worker-1"
        )
        client.create_producer("orders").send(b"poison")
        for _ in range(8):
            consumer.negative_acknowledge(consumer.receive(timeout_millis=60_000))
        broker.clock.advance(90)
        page.go(broker.admin_url)
        page.until("/was delivered \\d+ times to worker-1, and came back each time/.test(document.body.innerText)")


def test_a_recipe_is_done_and_taken_back(page: Page, broker: PulsarBroker) -> None:
    publish(broker, ORDERS, 1)
    page.go(f"{broker.admin_url}/#/lab")
    page.click("Do it", within="[data-recipe='Lose the next receipt']")
    page.sees("Done: Lose the next receipt")
    assert [each["command"] for each in asked(broker, "lab/faults")] == ["SEND_RECEIPT"]
    page.click("Take back", within="[data-recipe='Lose the next receipt']")
    page.until("!document.querySelector('.recipe.on')")
    assert asked(broker, "lab/faults") == []


def test_every_recipe_works(page: Page, broker: PulsarBroker) -> None:
    page.go(f"{broker.admin_url}/#/lab")
    page.until("document.querySelector('[data-recipe]')")
    names = page.do("[...document.querySelectorAll('[data-recipe]')].map((e) => e.dataset.recipe)")
    for name in names:
        page.click("Do it", within=f"[data-recipe='{name}']")
        page.sees(f"Done: {name}")
    assert len(names) == 10


def test_the_command_of_each_recipe_makes_its_call(page: Page, broker: PulsarBroker) -> None:
    page.go(broker.admin_url)
    recipes = page.do("import('/console/recipes.js').then((m) => m.RECIPES)")
    for recipe in recipes:
        made = recorded(Act("recipe", "lab", recipe["title"], recipe["about"], recipe["command"]), {})
        assert (made.method, made.path) == (recipe["method"], recipe["path"])
        asked = recipe.get("body") or {}
        assert {name: (made.body or {}).get(name) for name in asked} == asked

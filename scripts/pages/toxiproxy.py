"""Generate docs/toxiproxy.md: the guide, with the table of toxics from their classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from pulsarium.broker.lab.toxiproxy.link import LATE
from pulsarium.broker.lab.toxiproxy.passage import READ
from pulsarium.broker.lab.toxiproxy.toxics import EFFECTS
from pulsarium.broker.web.toxiproxy import MOST_BODY, MOST_PROXIES, MOST_TOXICS, VERSION

_BEFORE: Final = f"""\
# Toxiproxy

Generated from `broker/lab/toxiproxy`; do not edit.

A suite that drives [Toxiproxy](https://github.com/Shopify/toxiproxy) runs against the broker unchanged, without a
second server:

```sh
pulsarium serve --toxiproxy-port 8474
pulsarium exec --toxiproxy-port 0 -- go test ./...        # PULSAR_TOXIPROXY_URL has the URL
```

The port answers the control API of Toxiproxy {VERSION}: `/version`, `/proxies`, `/proxies/NAME`,
`/proxies/NAME/toxics`, `/proxies/NAME/toxics/TOXIC`, `/populate` and `/reset`. In tests, `running(toxiproxy_port=0)`
and `@pytest.mark.pulsar(toxiproxy_port=0)` give the broker a `toxiproxy_url`. The ready file has the URL too.

```sh
curl localhost:8474/proxies -d '{{"name": "pulsar", "listen": "127.0.0.1:26650", "upstream": "127.0.0.1:6650"}}'
curl localhost:8474/proxies/pulsar/toxics -d '{{"type": "latency", "attributes": {{"latency": 500, "jitter": 100}}}}'
```

## Stay behind the proxy

Give clients the URL of the proxy, here `pulsar://127.0.0.1:26650`. A single broker that advertises a local address, as
by default, lets its clients keep their URL. So all their connections pass through the proxy.

A broker that advertises another address sends clients to that address, and the proxy sees only lookups. A client with
an `http://` URL goes to the advertised address, too. As with a real broker, let the broker advertise the proxy then:

```sh
pulsarium serve --toxiproxy-port 8474 --set advertisedListeners=proxied:pulsar://127.0.0.1:26650
```

With `--brokers 2` or more, the proxy sees only lookups. For faults on single frames of Pulsar's protocol, use the
[lab](lab/faults.md).

## Toxics

| type | attributes | what it does |
|---|---|---|
"""
_AFTER: Final = f"""
A toxic acts on the `downstream` direction (toward the client) or on `upstream`, also on open connections. `toxicity`
is the share of connections that the toxic affects, from 0 to 1. Toxics of one direction act one after the other, in
the order of their creation.

- **Time** is real: toxics follow the machine's clock, not the clock of the lab. They stand for the network, and the
  client's operating system has no other clock.
- **Bounds.** At most {LATE >> 20} MB wait in front of a latency toxic, and {READ >> 10} KB in front of another one.
  Then the proxy stops reading, and TCP slows the sender down. There are at most {MOST_PROXIES:,} proxies, {MOST_TOXICS}
  toxics for each, and {MOST_BODY >> 20} MB for a body.
- **Security.** The API has no authentication, as in Toxiproxy. The broker refuses the option when authentication is
  on and other machines reach the port. Without authentication, proxies lead only to the ports of this broker (and of
  others of `--brokers`) when other machines reach the port. With `--host 127.0.0.1`, the default, they lead anywhere.
  Pages in browsers cannot call the API.
- **End.** Ports and connections of proxies end with the broker.

## Differences from Toxiproxy

- `reset_peer` resets open connections too. Toxiproxy resets connections that open after the toxic, and closes the
  others.
- A `slicer` without an average size, and values below 0, are refused with status 400.
- An attribute that the toxic does not have is ignored, as in Toxiproxy, and the broker logs a warning.
- `/metrics`, and toxics of third parties, do not exist.
"""


def toxiproxy_page() -> str:
    """Return the text of docs/toxiproxy.md."""
    return _BEFORE + "\n".join(_rows()) + "\n" + _AFTER


def _rows() -> Iterator[str]:
    for kind, effect in EFFECTS.items():
        attributes = ", ".join(f"`{field.name}`" for field in fields(effect))
        yield f"| `{kind}` | {attributes} | {inspect.cleandoc(effect.__doc__ or '')} |"

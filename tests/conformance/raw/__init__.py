"""A client of scalable topics in a few hundred lines over sockets, and the bugs that can be planted in it."""

BUGS = {
    "misroute": "routes keys by their length",
    "low-bits": "takes the low bits of the hash",
    "ignores-layouts": "keeps its first layout for ever, so that it produces to sealed segments",
    "drops-unconfirmed": "forgets the messages of a sealed segment that had no receipt",
    "overtakes": "sends later messages before the ones that a sealed segment did not confirm",
    "sticky-keyless": "sends all messages without a key to one segment",
    "reads-active-only": "does not subscribe to sealed segments",
    "acks-across-split": "acknowledges every message on the newest segment",
    "acks-one-segment": "acknowledges only the segment of the message",
    "acks-too-much": "acknowledges everything delivered, and not up to the message's vector",
    "double-session": "opens each lookup session under the same id",
    "partial-checkpoint": "keeps one segment in a checkpoint",
    "durable-reader": "reads checkpoints with durable cursors",
    "lazy-exclusive": "attaches an exclusive producer with the first message",
    "stays-registered": "closes without SCALABLE_TOPIC_UNSUBSCRIBE",
    "generic-errors": "tells every error as a generic failure",
}

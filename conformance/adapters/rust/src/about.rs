//! What the client is, and what it lacks.

use serde_json::{json, Value};

use crate::request::OPERATIONS;

/// Operations and options that the client does not have.
const LACKS: &[(&str, &str)] = &[
    ("open.http", "the client connects to pulsar:// and pulsar+ssl:// alone"),
    ("producer.chunk", "no such option"),
    ("producer.encrypt", "encryption is not implemented yet"),
    ("send.null", "messages always have a value"),
    ("send.sequence", "the client chooses sequence ids"),
    ("send.transaction", "the client has no transactions"),
    ("consumer.decrypt", "encryption is not implemented yet"),
    ("consumer.crypto-failure", "encryption is not implemented yet"),
    ("consumer.nack-delay", "the client asks for the message at once"),
    ("consumer.retry", "no such option"),
    ("consumer.batch-index", "no such option"),
    ("consumer.receipt", "no such option"),
    ("consumer.batch-receive", "no such option"),
    ("consumer.hash-ranges", "no such option"),
    ("reader.decrypt", "encryption is not implemented yet"),
    ("reader.crypto-failure", "encryption is not implemented yet"),
    ("reader.inclusive", "no such option"),
    ("receive.redeliveries", "messages have no redelivery count"),
    ("receive.index", "messages have no index of the broker"),
    ("receive-batch", "no such call"),
    ("acknowledge.transaction", "the client has no transactions"),
    ("redeliver", "no such call"),
    ("reconsume-later", "no such call"),
    ("has-message", "readers have no such call"),
    ("table-view", "no such call"),
    ("table", "no such call"),
    ("transaction", "the client has no transactions"),
    ("transaction.scalable", "the client has no transactions"),
    ("commit", "the client has no transactions"),
    ("abort", "the client has no transactions"),
    ("stream", "the client has no scalable topics"),
    ("queue", "the client has no scalable topics"),
    ("checkpoint-consumer", "the client has no scalable topics"),
    ("namespace-stream", "the client has no scalable topics"),
    ("checkpoint", "the client has no scalable topics"),
];

pub fn hello() -> Value {
    let lock = include_str!("../Cargo.lock");
    let version = lock.split("name = \"pulsar\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let lacks: Value = LACKS.iter().map(|(name, reason)| (name.to_string(), json!(reason))).collect();
    json!({
        "protocol": 2, "client": "Pulsar-Rust", "version": version, "topics": ["classic"],
        "operations": OPERATIONS, "lacks": lacks,
    })
}

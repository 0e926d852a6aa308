//! The conformance kit's adapter for the official Rust client.

mod about;
mod adapter;
mod consuming;
mod failure;
mod publishing;
mod request;
mod values;

use std::collections::HashMap;
use std::io::stdin;
use std::sync::Arc;

use log::{LevelFilter, Log, Metadata, Record};
use serde::Deserialize;
use serde_json::{json, Value};
use tokio::task::JoinHandle;

use adapter::Adapter;
use request::Request;

/// Writes what the client logs to standard error.
struct StandardError;

impl Log for StandardError {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        eprintln!("{} {}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

async fn answer(adapter: Arc<Adapter>, line: Value) -> Value {
    let (field, result) = match Request::deserialize(&line) {
        Err(error) => ("unsupported", json!(format!("the adapter does not know this request: {error}"))),
        Ok(request) => {
            // A task of its own, because the client may panic.
            let outcome = tokio::spawn(async move { adapter.perform(request).await }).await;
            match outcome.unwrap_or_else(|panic| Err(panic.into())) {
                Ok(result) => ("ok", result),
                Err(failure) => failure.told(),
            }
        }
    };
    json!({"id": line["id"], field: result})
}

/// Returns what a request waits for: earlier requests for its handle. A pending `receive` holds up other ones alone.
fn queue(asked: &Value) -> String {
    let handles = ["as", "producer", "consumer", "handle"];
    let handle = handles.iter().find_map(|name| asked[name].as_str()).unwrap_or_default();
    if asked["do"] == "receive" {
        format!("receive {handle}")
    } else {
        handle.to_owned()
    }
}

#[tokio::main]
async fn main() {
    log::set_logger(&StandardError).expect("it is the only logger");
    log::set_max_level(LevelFilter::Info);
    let adapter = Arc::new(Adapter::default());
    let mut latest = HashMap::<String, JoinHandle<()>>::new();
    // The other threads of the runtime do the work while this one reads.
    for line in stdin().lines().map_while(Result::ok) {
        let asked: Value = serde_json::from_str(&line).expect("a request is JSON");
        let queue = queue(&asked);
        let (earlier, answer) = (latest.remove(&queue), answer(adapter.clone(), asked));
        let task = tokio::spawn(async move {
            if let Some(earlier) = earlier {
                let _ = earlier.await;
            }
            println!("{}", answer.await);
        });
        latest.insert(queue, task);
    }
}

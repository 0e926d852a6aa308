//! The scenarios of the Rust client, a JSON object a line (see python/lines.py).

mod acknowledging;
mod cell;
mod messages;
mod reading;
mod topics;

use std::io::stdin;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures::FutureExt;
use serde_json::{json, Value};

use cell::{fail, Cell, Done};

#[tokio::main]
async fn main() {
    let mut line = String::new();
    while stdin().read_line(&mut line).unwrap_or(0) > 0 {
        let request: Value = serde_json::from_str(&line).expect("a request is JSON");
        line.clear();
        let start = Instant::now();
        let outcome = match AssertUnwindSafe(run(request)).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(_) => fail("the client panicked"),
        };
        let (outcome, reason) = match outcome {
            Ok(()) => ("pass", String::new()),
            Err(error) => ("fail", error.to_string()),
        };
        println!("{}", json!({"outcome": outcome, "reason": reason, "seconds": start.elapsed().as_secs_f64()}));
    }
}

async fn run(request: Value) -> Done {
    let name = request["scenario"].as_str().unwrap_or_default().to_owned();
    let c = Cell::new(request).await?;
    match name.as_str() {
        "produce-consume" => messages::produce_consume(c).await,
        "batching" => messages::batching(c).await,
        name if name.starts_with("compression-") => messages::compression(c, &name["compression-".len()..]).await,
        "delayed" => messages::delayed(c).await,
        "non-persistent" => messages::non_persistent(c).await,
        "key-shared" => messages::key_shared(c).await,
        "shared-nack" => acknowledging::shared_nack(c).await,
        "ack-timeout" => acknowledging::ack_timeout(c).await,
        "cumulative-ack" => acknowledging::cumulative_ack(c).await,
        "dead-letter" => acknowledging::dead_letter(c).await,
        "unsubscribe" => acknowledging::unsubscribe(c).await,
        "exclusive-busy" => topics::exclusive_busy(c).await,
        "failover" => topics::failover(c).await,
        "shared" => topics::shared(c).await,
        "partitioned" => topics::partitioned(c).await,
        "pattern" => topics::pattern(c).await,
        "multi-topics" => topics::multi_topics(c).await,
        "unload" => topics::unload(c).await,
        "brokers" => topics::brokers(c).await,
        "token" => topics::token(c).await,
        "tls" => topics::tls(c).await,
        "producer-name" => topics::producer_name(c).await,
        "exclusive-producer" => topics::exclusive_producer(c).await,
        "wait-for-exclusive" => topics::wait_for_exclusive(c).await,
        "terminated" => topics::terminated(c).await,
        "seek-id" => reading::seek_id(c).await,
        "seek-time" => reading::seek_time(c).await,
        "reader" => reading::reader(c).await,
        "last-message-id" => reading::last_message_id(c).await,
        "compaction" => reading::compaction(c).await,
        "compaction-batch" => reading::compaction_batch(c).await,
        "schema-string" => reading::schema_string(c).await,
        "schema-json" => reading::schema_json(c).await,
        "schema-incompatible" => reading::schema_incompatible(c).await,
        name => fail(format!("no scenario {name}")),
    }
}

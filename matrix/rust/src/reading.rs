//! Where reading begins, and what is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::TryStreamExt;
use pulsar::consumer::InitialPosition;
use pulsar::message::proto::{schema, MessageIdData, Schema};
use pulsar::reader::Reader;
use pulsar::{ConsumerOptions, ProducerOptions, SubType, TokioExecutor};
use serde_json::{json, Value};
use tokio::time::timeout;

use crate::cell::*;

const DEFINITION: &str =
    r#"{"type":"record","name":"Person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int"}]}"#;

/// The client opens a second consumer while the first one, which the broker closed for the seek, comes back by itself.
/// Whichever is late is refused, also by a real broker; the first one is as good.
async fn seek(consumer: &mut Consuming, id: Option<MessageIdData>, time: Option<u64>, c: &Cell) -> Done {
    match consumer.seek(None, id, time, c.client.clone()).await {
        Err(error) if error.to_string().contains("ConsumerBusy") => Ok(()),
        other => Ok(other?),
    }
}

pub async fn seek_id(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let ids = send(&mut c.single().await?, &texts(0, 10)).await?;
    equal(consume(&mut consumer, 10).await?, texts(0, 10))?;
    seek(&mut consumer, Some(ids[4].clone()), None, &c).await?;
    let first = consume(&mut consumer, 1).await?.remove(0);
    that(first == "a0004" || first == "a0005", format!("{first} came first"))?;
    let number: usize = first[1..].parse()?;
    equal(consume(&mut consumer, 9 - number).await?, texts(number + 1, 10))
}

pub async fn seek_time(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let mut producer = c.single().await?;
    send(&mut producer, &texts(0, 5)).await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let moment = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    send(&mut producer, &texts(5, 10)).await?;
    equal(consume(&mut consumer, 10).await?, texts(0, 10))?;
    seek(&mut consumer, None, Some(moment), &c).await?;
    equal(consume(&mut consumer, 5).await?, texts(5, 10))?;
    nothing_more(&mut consumer).await
}

async fn read(c: &Cell, options: ConsumerOptions, count: usize) -> Done<Vec<String>> {
    let builder = c.client.reader().with_topic(c.topic()).with_options(options);
    let mut reader: Reader<Vec<u8>, TokioExecutor> = builder.into_reader().await?;
    let mut got = Vec::new();
    while got.len() < count {
        let message = timeout(PATIENCE, reader.try_next()).await?;
        got.push(text(&message?.ok_or("the reader ended")?));
    }
    Ok(got)
}

pub async fn reader(c: Cell) -> Done {
    let ids = send(&mut c.single().await?, &texts(0, 10)).await?;
    let earliest = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    equal(read(&c, earliest, 10).await?, texts(0, 10))?;
    let behind = ConsumerOptions::default().starting_on_message(ids[4].clone());
    let got = read(&c, behind, 5).await?;
    // This reader drops no message that the broker sends, so that it may start at the given message.
    let first: usize = got[0][1..].parse()?;
    that(first == 4 || first == 5, format!("{} came first", got[0]))?;
    equal(got, texts(first, first + 5))
}

pub async fn last_message_id(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let ids = send(&mut c.single().await?, &texts(0, 5)).await?;
    let last = consumer.get_last_message_id().await?;
    let place = |id: &MessageIdData| (id.ledger_id, id.entry_id);
    equal(place(&last[0]), place(&ids[4]))
}

pub async fn compaction(c: Cell) -> Done {
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest).read_compacted(true);
    let compacted = || c.consuming(SubType::Exclusive).with_topic(c.topic()).with_options(options.clone());
    // The subscription must exist first, so that compaction retains its messages.
    compacted().build::<Vec<u8>>().await?.close().await?;
    let mut producer = c.single().await?;
    for version in ["1", "2"] {
        for key in ["a", "b", "c"] {
            producer.send_non_blocking(message(&format!("{key}{version}"), key)).await?.await?;
        }
    }
    c.administrate("compact")?;
    let mut consumer: Consuming = compacted().build().await?;
    equal(consume(&mut consumer, 3).await?, vec!["a2".to_owned(), "b2".to_owned(), "c2".to_owned()])?;
    nothing_more(&mut consumer).await
}

pub async fn compaction_batch(c: Cell) -> Done {
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest).read_compacted(true);
    let compacted = || c.consuming(SubType::Exclusive).with_topic(c.topic()).with_options(options.clone());
    compacted().build::<Vec<u8>>().await?.close().await?;
    let mut producer = c.producer(batches()).await?;
    let mut receipts = Vec::new();
    for (number, text) in texts(0, 10).iter().enumerate() {
        receipts.push(producer.send_non_blocking(message(text, &format!("key {}", number % 5))).await?);
    }
    for receipt in receipts {
        receipt.await?;
    }
    c.administrate("compact")?;
    let mut consumer: Consuming = compacted().build().await?;
    equal(consume(&mut consumer, 5).await?, texts(5, 10))?;
    nothing_more(&mut consumer).await
}

fn of_type(kind: schema::Type, definition: &str) -> Schema {
    Schema {
        name: "schema".into(),
        schema_data: definition.into(),
        r#type: kind as i32,
        properties: Vec::new(),
    }
}

async fn with_schema(c: &Cell, schema: Schema, sent: &str) -> Done<Got> {
    let options = ConsumerOptions::default().with_schema(schema.clone());
    let builder = c.consuming(SubType::Exclusive).with_topic(c.topic());
    let mut consumer: Consuming = builder.with_options(options).build().await?;
    let mut producer = c.producer(ProducerOptions { schema: Some(schema), ..single() }).await?;
    send(&mut producer, &[sent.to_owned()]).await?;
    Ok(receive(&mut consumer, 1).await?.remove(0))
}

pub async fn schema_string(c: Cell) -> Done {
    let message = with_schema(&c, of_type(schema::Type::String, ""), "grüße").await?;
    equal(text(&message), "grüße".to_owned())
}

pub async fn schema_json(c: Cell) -> Done {
    let ada = json!({"name": "Ada", "age": 36});
    let message = with_schema(&c, of_type(schema::Type::Json, DEFINITION), &ada.to_string()).await?;
    equal(serde_json::from_slice::<Value>(&message.payload.data)?, ada)
}

pub async fn schema_incompatible(c: Cell) -> Done {
    let json = ProducerOptions { schema: Some(of_type(schema::Type::Json, DEFINITION)), ..single() };
    send(&mut c.producer(json).await?, &[json!({"name": "Ada", "age": 36}).to_string()]).await?;
    let string = ProducerOptions { schema: Some(of_type(schema::Type::String, "")), ..single() };
    refused("another schema", timeout(PATIENCE, c.producer(string)).await?)
}

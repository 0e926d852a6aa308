//! Producers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::try_join_all;
use pulsar::compression::Compression;
use pulsar::message::proto::ProducerAccessMode;
use pulsar::producer::Message;
use pulsar::routing_policy::RoutingPolicy;
use pulsar::{Producer, ProducerOptions, TokioExecutor};
use serde_json::json;
use tokio::sync::Mutex;

use crate::adapter::{Connected, Places};
use crate::failure::{Failure, Outcome};
use crate::request::{Record, Request};
use crate::values::{encode, schema_of};

pub struct Publisher {
    schema: Option<String>,
    inner: Mutex<Inner>,
}

struct Inner {
    producer: Producer<TokioExecutor>,
    /// Sequence id of the last receipt.
    last_sequence: i64,
}

impl Inner {
    fn batches(&self) -> bool {
        self.producer.options().batch_size > Some(1)
    }
}

fn access(name: Option<&str>) -> Outcome<ProducerAccessMode> {
    match name {
        None | Some("shared") => Ok(ProducerAccessMode::Shared),
        Some("exclusive") => Ok(ProducerAccessMode::Exclusive),
        Some("wait-for-exclusive") => Ok(ProducerAccessMode::WaitForExclusive),
        Some("exclusive-with-fencing") => Ok(ProducerAccessMode::ExclusiveWithFencing),
        Some(other) => Err(Failure::lack(format!("the client has no access mode {other}"))),
    }
}

fn compression(name: Option<&str>) -> Outcome<Compression> {
    match name {
        None => Ok(Compression::None),
        Some("LZ4") => Ok(Compression::Lz4(Default::default())),
        Some("ZLIB") => Ok(Compression::Zlib(Default::default())),
        Some("ZSTD") => Ok(Compression::Zstd(Default::default())),
        Some("SNAPPY") => Ok(Compression::Snappy(Default::default())),
        Some(other) => Err(Failure::lack(format!("the client has no compression {other}"))),
    }
}

impl Publisher {
    pub async fn open(client: &Connected, request: &Request) -> Outcome<Publisher> {
        let options = ProducerOptions {
            access_mode: Some(access(request.access.as_deref())?.into()),
            batch_size: request.batch,
            compression: Some(compression(request.compression.as_deref())?),
            schema: schema_of(request.schema.as_deref())?,
            // Without it the client refuses messages when a hundred of them wait.
            block_queue_if_full: true,
            // Without it the client ignores keys.
            routing_policy: Some(RoutingPolicy::RoundRobin),
            ..Default::default()
        };
        let mut builder = client.producer().with_topic(&request.topic).with_options(options);
        if let Some(name) = &request.name {
            builder = builder.with_name(name);
        }
        let inner = Inner { producer: builder.build().await?, last_sequence: -1 };
        Ok(Publisher { schema: request.schema.clone(), inner: Mutex::new(inner) })
    }

    fn message(&self, record: &Record) -> Outcome<Message> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64;
        Ok(Message {
            payload: encode(&record.value, self.schema.as_deref())?,
            properties: record.properties.clone(),
            partition_key: record.key.clone(),
            ordering_key: record.ordering_key.clone().map(String::into_bytes),
            event_time: record.event_time,
            deliver_at_time: record.delay.map(|delay| now() + delay),
            ..Default::default()
        })
    }

    pub async fn send(&self, request: &Request, places: &Places) -> Outcome {
        let mut inner = self.inner.lock().await;
        let mut receipts = Vec::new();
        for record in &request.messages {
            receipts.push(inner.producer.send_non_blocking(self.message(record)?).await?);
        }
        if inner.batches() {
            inner.producer.send_batch().await?;
        }
        let mut ids = Vec::new();
        for receipt in try_join_all(receipts).await? {
            inner.last_sequence = receipt.sequence_id as i64;
            ids.push(places.keep("", receipt.message_id.unwrap_or_default()));
        }
        Ok(json!({"ids": ids}))
    }

    /// Waits until the last batch is stored. Messages outside of batches are stored when `send` returns.
    pub async fn flush(&self) -> Outcome {
        let mut inner = self.inner.lock().await;
        if inner.batches() {
            inner.producer.send_batch().await?;
        }
        Ok(json!({}))
    }

    pub async fn last_sequence(&self) -> Outcome {
        Ok(json!({"sequence": self.inner.lock().await.last_sequence}))
    }

    pub async fn close(&self) -> Outcome {
        self.inner.lock().await.producer.close().await?;
        Ok(json!({}))
    }
}

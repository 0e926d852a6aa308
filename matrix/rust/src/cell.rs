//! One scenario's request, the client it uses, and what scenarios say about what they got.

use std::error::Error;
use std::fmt::Debug;
use std::io::stdin;
use std::time::Duration;

use futures::future::join_all;
use futures::TryStreamExt;
use pulsar::authentication::Authentication as _;
use pulsar::consumer::{InitialPosition, Message};
use pulsar::message::proto::MessageIdData;
use pulsar::producer;
use pulsar::{
    Authentication, Consumer, ConsumerBuilder, ConsumerOptions, OperationRetryOptions, Producer, ProducerOptions,
    Pulsar, PulsarBuilder, SubType, TokioExecutor,
};
use serde_json::{json, Value};
use tokio::time::timeout;

pub type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;
pub type Client = Pulsar<TokioExecutor>;
pub type Consuming = Consumer<Vec<u8>, TokioExecutor>;
pub type Producing = Producer<TokioExecutor>;
pub type Got = Message<Vec<u8>>;

pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long a consumer must stay without a message before "nothing more comes" is believed.
const QUIET: Duration = Duration::from_millis(300);

pub struct Cell {
    request: Value,
    pub client: Client,
}

pub fn fail<T>(what: impl Into<String>) -> Done<T> {
    Err(what.into().into())
}

pub fn that(holds: bool, what: impl Into<String>) -> Done {
    if holds {
        Ok(())
    } else {
        fail(what)
    }
}

pub fn equal<T: PartialEq + Debug>(got: T, wanted: T) -> Done {
    that(got == wanted, format!("got {got:?}, wanted {wanted:?}"))
}

pub fn refused<T, E>(what: &str, result: Result<T, E>) -> Done {
    that(result.is_err(), format!("{what} was not refused"))
}

pub fn texts(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|number| format!("a{number:04}")).collect()
}

/// What a client is told of a URL; it gives up after ten seconds.
pub fn builder(url: &str) -> PulsarBuilder<TokioExecutor> {
    Pulsar::builder(url, TokioExecutor).with_operation_retry_options(OperationRetryOptions {
        operation_timeout: Duration::from_secs(10),
        retry_delay: Duration::from_millis(500),
        max_retries: Some(10),
    })
}

pub fn by_token(builder: PulsarBuilder<TokioExecutor>, token: &str) -> PulsarBuilder<TokioExecutor> {
    let given = Authentication { name: "token".into(), data: token.into() };
    debug_assert_eq!(given.auth_method_name(), "token");
    builder.with_auth(given)
}

/// One message an entry.
pub fn single() -> ProducerOptions {
    ProducerOptions { batch_size: Some(1), ..Default::default() }
}

pub fn batches() -> ProducerOptions {
    ProducerOptions { batch_size: Some(10), ..Default::default() }
}

impl Cell {
    pub async fn new(request: Value) -> Done<Cell> {
        // With a broker that requires a token, scenarios open their own clients.
        let url = request["service_url"].as_str().unwrap_or_default();
        let token = request["token"].as_str().unwrap_or_default();
        let client = by_token(builder(url), token).build().await?;
        Ok(Cell { request, client })
    }

    pub fn text(&self, name: &str) -> &str {
        self.request[name].as_str().unwrap_or_default()
    }

    pub fn topic(&self) -> String {
        self.text("topic").to_owned()
    }

    pub fn service_urls(&self) -> Vec<String> {
        let urls = self.request["service_urls"].as_array().cloned().unwrap_or_default();
        urls.iter().filter_map(|url| url.as_str().map(str::to_owned)).collect()
    }

    /// Asks for admin work on the topic: "unload", "compact" or "terminate".
    pub fn administrate(&self, action: &str) -> Done {
        println!("{}", json!({"do": action}));
        let mut line = String::new();
        stdin().read_line(&mut line)?;
        that(serde_json::from_str::<Value>(&line)?["done"] == true, format!("{action} was refused"))
    }

    pub async fn producer(&self, options: ProducerOptions) -> Result<Producing, pulsar::Error> {
        self.client.producer().with_topic(self.topic()).with_options(options).build().await
    }

    pub async fn single(&self) -> Result<Producing, pulsar::Error> {
        self.producer(single()).await
    }

    pub fn consuming(&self, sub_type: SubType) -> ConsumerBuilder<TokioExecutor> {
        let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
        self.client.consumer().with_subscription("s").with_subscription_type(sub_type).with_options(options)
    }

    pub async fn consumer(&self, sub_type: SubType) -> Result<Consuming, pulsar::Error> {
        self.consuming(sub_type).with_topic(self.topic()).build().await
    }

    pub async fn exclusive(&self) -> Result<Consuming, pulsar::Error> {
        self.consumer(SubType::Exclusive).await
    }
}

pub fn message(text: &str, key: &str) -> producer::Message {
    producer::Message {
        payload: text.as_bytes().to_vec(),
        partition_key: (!key.is_empty()).then(|| key.to_owned()),
        ..Default::default()
    }
}

/// Sends without waiting for each; the message ids in order.
pub async fn send(producer: &mut Producing, payloads: &[String]) -> Done<Vec<MessageIdData>> {
    let mut receipts = Vec::new();
    for payload in payloads {
        receipts.push(producer.send_non_blocking(message(payload, "")).await?);
    }
    if producer.options().batch_size != Some(1) {
        producer.send_batch().await?;
    }
    let mut ids = Vec::new();
    for receipt in timeout(PATIENCE, join_all(receipts)).await? {
        ids.push(receipt?.message_id.ok_or("a receipt without an id")?);
    }
    Ok(ids)
}

/// The next message within a time.
pub async fn within(limit: Duration, consumer: &mut Consuming) -> Done<Option<Got>> {
    match timeout(limit, consumer.try_next()).await {
        Ok(message) => Ok(message?),
        Err(_) => Ok(None),
    }
}

pub async fn receive(consumer: &mut Consuming, count: usize) -> Done<Vec<Got>> {
    let mut messages = Vec::new();
    while messages.len() < count {
        match within(PATIENCE, consumer).await? {
            Some(message) => messages.push(message),
            None => return fail(format!("only {} of {count} messages arrived", messages.len())),
        }
    }
    Ok(messages)
}

pub fn text(message: &Got) -> String {
    String::from_utf8_lossy(&message.payload.data).into_owned()
}

pub fn texts_of(messages: &[Got]) -> Vec<String> {
    messages.iter().map(text).collect()
}

/// The texts of the next messages, each acknowledged.
pub async fn consume(consumer: &mut Consuming, count: usize) -> Done<Vec<String>> {
    let messages = receive(consumer, count).await?;
    for message in &messages {
        consumer.ack(message).await?;
    }
    Ok(texts_of(&messages))
}

pub async fn nothing_more(consumer: &mut Consuming) -> Done {
    match within(QUIET, consumer).await? {
        Some(message) => fail(format!("an unexpected message arrived: {}", text(&message))),
        None => Ok(()),
    }
}

//! Consumers and readers. Each is owned by a task, which does what other requests ask for while a `receive` waits.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pulsar::consumer::{DeadLetterPolicy, InitialPosition, Message};
use pulsar::message::proto::MessageIdData;
use pulsar::reader::Reader;
use pulsar::{Consumer, ConsumerBuilder, ConsumerOptions, SubType, TokioExecutor};
use regex::Regex;
use serde_json::{json, Value};
use tokio::select;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, Instant};

use crate::adapter::{Connected, Place, Places};
use crate::failure::{Failure, Outcome};
use crate::request::{Operation, Request};
use crate::values::{place_of, schema_of, told};

/// How often a consumer looks for new partitions and topics.
const DISCOVERY: Duration = Duration::from_secs(5);

/// A request to the task of a consumer or a reader.
struct Asked {
    request: Request,
    answer: oneshot::Sender<Outcome>,
}

/// A consumer or a reader. Its task drops it when the last clone of this is dropped.
#[derive(Clone)]
pub struct Source {
    pub is_reader: bool,
    asking: mpsc::UnboundedSender<Asked>,
}

impl Source {
    pub async fn open(client: &Connected, request: &Request, places: &Arc<Places>) -> Outcome<Source> {
        let is_reader = request.operation == Operation::Reader;
        let subscribed = if is_reader {
            Subscribed::Reader(Box::new(reading(client, request, places)?.into_reader().await?))
        } else {
            Subscribed::Consumer(Box::new(consuming(client, request)?.build().await?))
        };
        let (schema, places) = (request.schema.clone(), places.clone());
        let (asking, asked) = mpsc::unbounded_channel();
        tokio::spawn(Owner { subscribed, client: client.clone(), schema, places }.serve(asked));
        Ok(Source { is_reader, asking })
    }

    pub async fn ask(&self, request: Request) -> Outcome {
        let (answer, outcome) = oneshot::channel();
        let _ = self.asking.send(Asked { request, answer }); // there is no outcome when the client panicked
        outcome.await?
    }
}

fn position(start: &str) -> Option<InitialPosition> {
    match start {
        "earliest" => Some(InitialPosition::Earliest),
        "latest" => Some(InitialPosition::Latest),
        _ => None,
    }
}

fn options(request: &Request) -> Outcome<ConsumerOptions> {
    if request.queue == Some(0) {
        return Err(Failure::lack("a queue of the size 0 is not implemented yet"));
    }
    Ok(ConsumerOptions {
        priority_level: request.priority,
        read_compacted: Some(request.compacted),
        receiver_queue_size: request.queue,
        schema: schema_of(request.schema.as_deref())?,
        ..Default::default()
    })
}

/// Returns a builder with the size of the queue: the client asks for messages by its "batch size".
fn sized(builder: ConsumerBuilder<TokioExecutor>, request: &Request) -> ConsumerBuilder<TokioExecutor> {
    match request.queue {
        Some(size) => builder.with_batch_size(size),
        None => builder,
    }
}

fn consuming(client: &Connected, request: &Request) -> Outcome<ConsumerBuilder<TokioExecutor>> {
    let sub_type = match request.r#type.as_str() {
        "Exclusive" => SubType::Exclusive,
        "Shared" => SubType::Shared,
        "Failover" => SubType::Failover,
        "Key_Shared" => SubType::KeyShared,
        other => return Err(Failure::lack(format!("the client has no subscription type {other}"))),
    };
    let no_message = || Failure::lack("subscriptions begin at the earliest or the latest message");
    let initial_position = position(&request.start).ok_or_else(no_message)?;
    let mut builder = sized(client.consumer(), request)
        .with_topics(&request.topics)
        .with_topic_refresh(DISCOVERY)
        .with_subscription(&request.subscription)
        .with_subscription_type(sub_type)
        .with_unacked_message_resend_delay(request.ack_timeout.map(Duration::from_millis))
        .with_options(ConsumerOptions { initial_position, ..options(request)? });
    if let Some(name) = &request.name {
        builder = builder.with_consumer_name(name);
    }
    if let Some(policy) = &request.dead_letter {
        builder = builder.with_dead_letter_policy(DeadLetterPolicy {
            max_redeliver_count: policy.max,
            dead_letter_topic: policy.topic.clone(),
        });
    }
    if let Some(pattern) = &request.pattern {
        let (_, path) = pattern.split_once("://").unwrap_or(("", pattern));
        let (namespace, _) = path.rsplit_once('/').unwrap_or((path, ""));
        builder = builder.with_lookup_namespace(namespace).with_topic_regex(Regex::new(pattern)?);
    }
    Ok(builder)
}

fn reading(client: &Connected, request: &Request, places: &Places) -> Outcome<ConsumerBuilder<TokioExecutor>> {
    let mut options = options(request)?;
    match position(&request.start) {
        Some(position) => options.initial_position = position,
        None => options.start_message_id = Some(places.find(&request.start)?.id),
    }
    Ok(sized(client.reader(), request).with_topic(&request.topic).with_options(options))
}

/// A `receive` that waits.
struct Receiving {
    asked: Asked,
    end: Instant,
    told: Vec<Value>,
}

impl Receiving {
    fn new(asked: Asked) -> Receiving {
        let end = Instant::now() + Duration::from_secs_f64(asked.request.seconds);
        Receiving { asked, end, told: Vec::new() }
    }

    /// Takes a message. Answers, and returns none, when it was the last one, or after an error or the end of the time.
    fn went_on(mut self, outcome: Outcome<Option<Value>>) -> Option<Receiving> {
        let answer = match outcome {
            Err(failure) => Err(failure),
            Ok(message) => {
                let is_time_over = message.is_none();
                self.told.extend(message);
                if !is_time_over && self.told.len() < self.asked.request.count {
                    return Some(self);
                }
                Ok(json!({"messages": self.told}))
            }
        };
        let _ = self.asked.answer.send(answer);
        None
    }
}

enum Subscribed {
    Consumer(Box<Consumer<Vec<u8>, TokioExecutor>>),
    Reader(Box<Reader<Vec<u8>, TokioExecutor>>),
}

impl Subscribed {
    async fn next(&mut self) -> Outcome<Message<Vec<u8>>> {
        let next = match self {
            Subscribed::Consumer(consumer) => consumer.next().await,
            Subscribed::Reader(reader) => reader.next().await,
        };
        Ok(next.ok_or_else(|| Failure::Failed("the client's stream ended".into()))??)
    }
}

/// The task of a consumer or a reader.
struct Owner {
    subscribed: Subscribed,
    client: Connected,
    schema: Option<String>,
    places: Arc<Places>,
}

impl Owner {
    /// Does what is asked. At most one `receive` waits, because the adapter does the next one when it has ended.
    async fn serve(mut self, mut asked: mpsc::UnboundedReceiver<Asked>) {
        let mut waiting: Option<Receiving> = None;
        loop {
            let end = waiting.as_ref().map_or_else(Instant::now, |receiving| receiving.end);
            let outcome = select! {
                biased;
                asked = asked.recv() => match asked {
                    None => return,
                    Some(asked) if asked.request.operation == Operation::Receive => {
                        waiting = Some(Receiving::new(asked));
                        continue;
                    }
                    Some(asked) => {
                        let _ = asked.answer.send(self.perform(&asked.request).await);
                        continue;
                    }
                },
                got = self.subscribed.next(), if waiting.is_some() => {
                    got.and_then(|message| told(&message, self.schema.as_deref(), &self.places)).map(Some)
                }
                _ = sleep_until(end), if waiting.is_some() => Ok(None),
            };
            waiting = waiting.and_then(|receiving| receiving.went_on(outcome));
        }
    }

    async fn perform(&mut self, request: &Request) -> Outcome {
        match &mut self.subscribed {
            Subscribed::Consumer(consumer) => match request.operation {
                Operation::Acknowledge => {
                    let Place { topic, id } = self.places.find(&request.message)?;
                    consumer.ack_with_id(&topic, id).await?;
                }
                Operation::AcknowledgeCumulative => {
                    let Place { topic, id } = self.places.find(&request.message)?;
                    consumer.cumulative_ack_with_id(&topic, id).await?;
                }
                Operation::NegativeAcknowledge => {
                    let Place { topic, id } = self.places.find(&request.message)?;
                    consumer.nack_with_id(&topic, id).await?;
                }
                Operation::Seek => {
                    let (topics, id) = (consumer.topics(), sought(request, &self.places)?);
                    consumer.seek(Some(topics), id, request.time, self.client.clone()).await?;
                }
                Operation::Unsubscribe => consumer.unsubscribe().await?,
                Operation::LastMessageId => {
                    let last = consumer.get_last_message_id().await?;
                    return Ok(json!({"place": last.iter().map(place_of).max()}));
                }
                _ => consumer.close().await?,
            },
            Subscribed::Reader(reader) => match request.operation {
                Operation::Seek => reader.seek(sought(request, &self.places)?, request.time).await?,
                Operation::LastMessageId => {
                    return Ok(json!({"place": place_of(&reader.get_last_message_id().await?)}));
                }
                _ => return Err(Failure::lack("readers have no such call")),
            },
        }
        Ok(json!({}))
    }
}

/// Returns the message that a request seeks, and none for a time.
fn sought(request: &Request, places: &Places) -> Outcome<Option<MessageIdData>> {
    match request.time {
        Some(_) => Ok(None),
        None => Ok(Some(places.find(&request.start)?.id)),
    }
}

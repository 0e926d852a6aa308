//! What the requests opened, and the message ids by the names that the kit knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pulsar::message::proto::MessageIdData;
use pulsar::{Authentication, OperationRetryOptions, Pulsar, TokioExecutor};
use serde_json::{json, Value};
use tokio::sync::OnceCell;

use crate::about::hello;
use crate::consuming::Source;
use crate::failure::{Failure, Outcome};
use crate::publishing::Publisher;
use crate::request::{Operation, Request};

pub type Connected = Pulsar<TokioExecutor>;

/// A client, which connects when it is first used: the kit expects the refusal of a connection there.
pub struct Client {
    opening: Request,
    connected: OnceCell<Connected>,
}

impl Client {
    async fn connected(&self) -> Outcome<&Connected> {
        self.connected.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Outcome<Connected> {
        // Without limits, the client tries for ever to become the consumer of a busy subscription.
        let limits = OperationRetryOptions {
            operation_timeout: Duration::from_secs(15),
            retry_delay: Duration::from_millis(500),
            max_retries: Some(10),
        };
        let mut builder = Pulsar::builder(&self.opening.url, TokioExecutor).with_operation_retry_options(limits);
        if let Some(token) = &self.opening.token {
            builder = builder.with_auth(Authentication { name: "token".into(), data: token.clone().into() });
        }
        if let Some(file) = &self.opening.trust {
            builder = builder.with_certificate_chain_file(file)?;
        }
        Ok(builder.build().await?)
    }
}

/// The id of a message, and the topic of a message that was received.
#[derive(Clone)]
pub struct Place {
    pub topic: String,
    pub id: MessageIdData,
}

/// Ids by the names that the kit knows.
#[derive(Default)]
pub struct Places(Mutex<Vec<Place>>);

impl Places {
    /// Keeps an id, and returns its name.
    pub fn keep(&self, topic: &str, id: MessageIdData) -> String {
        let mut kept = self.0.lock().unwrap();
        kept.push(Place { topic: topic.to_owned(), id });
        (kept.len() - 1).to_string()
    }

    pub fn find(&self, name: &str) -> Outcome<Place> {
        let end = |number| MessageIdData { ledger_id: number, entry_id: number, ..Default::default() };
        match name {
            "earliest" => Ok(Place { topic: String::new(), id: end(u64::MAX) }),
            "latest" => Ok(Place { topic: String::new(), id: end(i64::MAX as u64) }),
            _ => {
                let place = name.parse::<usize>().ok().and_then(|number| self.0.lock().unwrap().get(number).cloned());
                place.ok_or_else(|| Failure::Failed(format!("the adapter has told of no message {name}")))
            }
        }
    }
}

#[derive(Clone)]
enum Thing {
    Client(Arc<Client>),
    Publisher(Arc<Publisher>),
    Source(Source),
}

/// A thing, and the handle of its client.
struct Kept {
    client: String,
    thing: Thing,
}

#[derive(Default)]
pub struct Adapter {
    things: Mutex<HashMap<String, Kept>>,
    places: Arc<Places>,
}

impl Adapter {
    fn keep(&self, handle: &str, client: &str, thing: Thing) -> Outcome {
        let kept = Kept { client: client.to_owned(), thing };
        self.things.lock().unwrap().insert(handle.to_owned(), kept);
        Ok(json!({}))
    }

    fn find<T>(&self, handle: &str, is: impl FnOnce(Thing) -> Option<T>) -> Outcome<T> {
        let thing = self.things.lock().unwrap().get(handle).map(|kept| kept.thing.clone());
        thing.and_then(is).ok_or_else(|| Failure::not_open(handle))
    }

    fn client(&self, request: &Request) -> Outcome<Arc<Client>> {
        self.find(&request.client, |thing| if let Thing::Client(client) = thing { Some(client) } else { None })
    }

    fn publisher(&self, request: &Request) -> Outcome<Arc<Publisher>> {
        self.find(&request.producer, |thing| if let Thing::Publisher(found) = thing { Some(found) } else { None })
    }

    fn source(&self, request: &Request) -> Outcome<Source> {
        self.find(&request.consumer, |thing| if let Thing::Source(source) = thing { Some(source) } else { None })
    }

    pub async fn perform(&self, request: Request) -> Outcome {
        match request.operation {
            Operation::Hello => Ok(hello()),
            Operation::Open => {
                let handle = request.r#as.clone();
                let client = Client { opening: request, connected: OnceCell::new() };
                self.keep(&handle, &handle, Thing::Client(Arc::new(client)))
            }
            Operation::Close => self.close(request).await,
            Operation::Producer => {
                let client = self.client(&request)?;
                let publisher = Publisher::open(client.connected().await?, &request).await?;
                self.keep(&request.r#as, &request.client, Thing::Publisher(Arc::new(publisher)))
            }
            Operation::Send => self.publisher(&request)?.send(&request, &self.places).await,
            Operation::Flush => self.publisher(&request)?.flush().await,
            Operation::LastSequence => self.publisher(&request)?.last_sequence().await,
            Operation::Consumer | Operation::Reader => {
                let client = self.client(&request)?;
                let source = Source::open(client.connected().await?, &request, &self.places).await?;
                self.keep(&request.r#as, &request.client, Thing::Source(source))
            }
            Operation::Receive
            | Operation::Acknowledge
            | Operation::AcknowledgeCumulative
            | Operation::NegativeAcknowledge
            | Operation::Seek
            | Operation::Unsubscribe
            | Operation::LastMessageId => self.source(&request)?.ask(request).await,
            Operation::Partitions => {
                let client = self.client(&request)?;
                let found = client.connected().await?.lookup_partitioned_topic(&request.topic).await?;
                let names: Value = found.into_iter().map(|(name, _)| name).collect();
                Ok(json!({"topics": names}))
            }
        }
    }

    /// Closes a thing. What is closed stays, so that the client itself tells what it can still do. Clients and readers
    /// have no call to close them: they end when they and all that they opened are dropped.
    async fn close(&self, request: Request) -> Outcome {
        match self.find(&request.handle, Some)? {
            Thing::Client(_) => {
                self.things.lock().unwrap().retain(|_, kept| kept.client != request.handle);
                Ok(json!({}))
            }
            Thing::Publisher(publisher) => publisher.close().await,
            Thing::Source(source) if source.is_reader => {
                self.things.lock().unwrap().remove(&request.handle);
                Ok(json!({}))
            }
            Thing::Source(source) => source.ask(request).await,
        }
    }
}

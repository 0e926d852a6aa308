//! Why a request was not done: the errors by the kinds of the kit.

use std::error::Error;

use serde_json::{json, Value};

pub type Outcome<T = Value> = Result<T, Failure>;

/// An error of the client, or what it lacks.
pub enum Failure {
    Failed(String),
    Unsupported(String),
}

/// Words in texts of errors, for each of the kit's kinds. Those of the broker come first, because the client adds
/// words to them.
const KINDS: &[(&str, &[&str])] = &[
    ("NotFound", &["TopicNotFound", "SubscriptionNotFound", "ConsumerNotFound"]),
    ("Authentication", &["AuthenticationError", "uthentication error"]),
    ("Authorization", &["AuthorizationError"]),
    ("ProducerBusy", &["ProducerBusy"]),
    ("Fenced", &["ProducerFenced", "Producer is fenced"]),
    ("ConsumerBusy", &["ConsumerBusy"]),
    ("IncompatibleSchema", &["IncompatibleSchema"]),
    ("TopicTerminated", &["TopicTerminated"]),
    ("ProducerQueueFull", &["SlowDown"]),
    ("InvalidConfiguration", &["InvalidTopicName"]),
    ("Other", &["Server error", "Query error"]),
    ("AlreadyClosed", &["is closed", "is open as", "stream ended"]),
    ("Timeout", &["timed out", "timedout", "timeout"]),
    ("InvalidServiceURL", &["error looking up URL"]),
    ("Connect", &["Disconnected", "connecting to the Pulsar server", "onnection refused", "onnection reset"]),
    ("Connect", &["canceled request", "was shut down", "Error connecting TLS stream", "roken pipe"]),
];

impl Failure {
    pub fn lack(what: impl Into<String>) -> Failure {
        Failure::Unsupported(what.into())
    }

    pub fn not_open(handle: &str) -> Failure {
        Failure::Failed(format!("nothing is open as {handle}"))
    }

    /// Returns the fields of the answer.
    pub fn told(&self) -> (&'static str, Value) {
        match self {
            Failure::Unsupported(text) => ("unsupported", json!(text)),
            Failure::Failed(text) => {
                let fits = |words: &[&str]| words.iter().any(|each| text.contains(each));
                let kind = KINDS.iter().find(|(_, words)| fits(words)).map_or("Other", |(kind, _)| kind);
                ("error", json!({"kind": kind, "text": text}))
            }
        }
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Failed(error.to_string())
    }
}

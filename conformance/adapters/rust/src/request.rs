//! What the kit asks for. An `Option` is none when it is left out.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

macro_rules! operations {
    ($($name:ident),*) => {
        /// An operation of the kit that the client has.
        #[derive(Clone, Copy, Default, Deserialize, PartialEq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Operation {
            #[default]
            Hello,
            $($name),*
        }

        /// Every operation but hello.
        pub const OPERATIONS: &[Operation] = &[$(Operation::$name),*];
    };
}

operations!(
    Open,
    Close,
    Producer,
    Send,
    Flush,
    LastSequence,
    Consumer,
    Reader,
    Receive,
    Acknowledge,
    AcknowledgeCumulative,
    NegativeAcknowledge,
    Seek,
    Unsubscribe,
    LastMessageId,
    Partitions
);

/// A request with the fields of all operations.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Request {
    pub id: u64,
    #[serde(rename = "do")]
    pub operation: Operation,

    // handles
    pub r#as: String,
    pub client: String,
    pub producer: String,
    pub consumer: String,
    pub handle: String,

    // clients
    pub url: String,
    pub token: Option<String>,
    pub trust: Option<String>,

    // producers
    pub topic: String,
    pub name: Option<String>,
    pub access: Option<String>,
    pub batch: Option<u32>,
    pub compression: Option<String>,
    pub schema: Option<String>,
    pub messages: Vec<Record>,

    // consumers and readers
    pub topics: Vec<String>,
    pub pattern: Option<String>,
    pub subscription: String,
    pub r#type: String,
    pub start: String,
    pub compacted: bool,
    pub queue: Option<u32>,
    pub ack_timeout: Option<u64>,
    pub dead_letter: Option<DeadLetter>,
    pub priority: Option<i32>,

    // what consumers do
    pub count: usize,
    pub seconds: f64,
    pub message: String,
    pub time: Option<u64>,
}

/// A message to publish.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Record {
    pub value: String,
    pub key: Option<String>,
    pub ordering_key: Option<String>,
    #[serde(default)]
    pub properties: HashMap<String, String>,
    pub event_time: Option<u64>,
    pub delay: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    pub max: usize,
    pub topic: String,
}

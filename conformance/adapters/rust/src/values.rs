//! Values of messages, and what messages have. The client sends and receives bytes: applications encode and decode.

use pulsar::consumer::Message;
use pulsar::message::proto::{schema, MessageIdData, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};

use crate::adapter::Places;
use crate::failure::{Failure, Outcome};

const DEFINITION: &str =
    r#"{"type":"record","name":"Person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int"}]}"#;

/// The record of scenarios with schemas, as its definition says.
#[derive(Deserialize, Serialize)]
struct Person {
    name: String,
    age: i32,
}

pub fn schema_of(name: Option<&str>) -> Outcome<Option<Schema>> {
    let (kind, definition) = match name {
        None => return Ok(None),
        Some("text") => (schema::Type::String, ""),
        Some("json") => (schema::Type::Json, DEFINITION),
        Some("avro") => (schema::Type::Avro, DEFINITION),
        Some(other) => return Err(Failure::lack(format!("the adapter has no schema {other}"))),
    };
    Ok(Some(Schema {
        name: "schema".into(),
        schema_data: definition.into(),
        r#type: kind.into(),
        properties: Vec::new(),
    }))
}

/// Returns the bytes of a value.
pub fn encode(value: &str, schema: Option<&str>) -> Outcome<Vec<u8>> {
    if schema != Some("avro") {
        return Ok(value.into());
    }
    let person: Person = serde_json::from_str(value)?;
    let mut bytes = Vec::new();
    write_number(person.name.len() as i64, &mut bytes);
    bytes.extend(person.name.as_bytes());
    write_number(person.age.into(), &mut bytes);
    Ok(bytes)
}

fn decode(bytes: &[u8], schema: Option<&str>) -> Outcome<String> {
    if schema != Some("avro") {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let person = read_person(bytes).ok_or_else(|| Failure::Failed(format!("no Avro of a person: {bytes:?}")))?;
    Ok(serde_json::to_string(&person)?)
}

fn read_person(mut bytes: &[u8]) -> Option<Person> {
    let length = usize::try_from(read_number(&mut bytes)?).ok()?;
    let (name, mut rest) = bytes.split_at_checked(length)?;
    Some(Person { name: String::from_utf8(name.into()).ok()?, age: read_number(&mut rest)?.try_into().ok()? })
}

/// Writes a number as Avro does: its sign in the lowest bit, and seven bits a byte.
fn write_number(number: i64, into: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest > 0x7f {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// Returns ledger, entry and batch index.
pub fn place_of(id: &MessageIdData) -> [i64; 3] {
    [id.ledger_id as i64, id.entry_id as i64, id.batch_index.unwrap_or(-1).into()]
}

/// Returns what a message has.
pub fn told(message: &Message<Vec<u8>>, schema: Option<&str>, places: &Places) -> Outcome {
    let (id, metadata) = (message.message_id(), message.metadata());
    let mut told = Map::new();
    let mut tell = |name: &str, value: Value| told.insert(name.into(), value);
    tell("id", places.keep(&message.topic, id.clone()).into());
    tell("value", decode(&message.payload.data, schema)?.into());
    tell("topic", message.topic.clone().into());
    tell("place", json!(place_of(id)));
    tell("publisher", metadata.producer_name.clone().into());
    tell("sequence", metadata.sequence_id.into());
    if let Some(key) = message.key() {
        tell("key", key.into());
    }
    if let Some(key) = &metadata.ordering_key {
        tell("ordering-key", String::from_utf8_lossy(key).into());
    }
    if !metadata.properties.is_empty() {
        tell("properties", metadata.properties.iter().map(|each| (each.key.clone(), each.value.clone())).collect());
    }
    if let Some(time) = metadata.event_time {
        tell("event-time", time.into());
    }
    if let Some(version) = &metadata.schema_version {
        tell("schema-version", version.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)).into());
    }
    if metadata.null_value() {
        tell("null", true.into());
    }
    Ok(told.into())
}

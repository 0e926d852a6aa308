//! An adapter: it lets the conformance kit of Pulsarium drive a client in Rust.
//!
//! The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong
//! on standard error. Add a function for each operation that the client has. docs/conformance.md lists the operations.

use std::collections::HashMap;
use std::io::stdin;
use std::sync::{Arc, Mutex};
use std::thread::{spawn, JoinHandle};

/// Clients, producers, consumers, ... by the kit's handles. TODO: keep your own types instead of texts.
type Things = Arc<Mutex<HashMap<String, String>>>;

/// An error of the client, of one of the kit's kinds, such as NotFound or Timeout.
struct Refusal(&'static str, String);

/// Does a request, and returns the fields of ok, as JSON: "" or "\"ids\": [\"1:0\"]".
type Operation = fn(&str, &Things) -> Result<String, Refusal>;

const OPERATIONS: [(&str, Operation); 2] = [("open", open), ("close", close)];

/// Why the client lacks an operation or option, as JSON: "\"send.delay\": \"no delayed messages\"".
const LACKS: &str = "";

fn open(request: &str, things: &Things) -> Result<String, Refusal> {
    // TODO: connect a client to the URL, and keep the client
    things.lock().unwrap().insert(text(request, "as").into(), text(request, "url").into());
    Ok(String::new())
}

fn close(request: &str, things: &Things) -> Result<String, Refusal> {
    let handle = text(request, "handle");
    // TODO: close the client, producer or consumer. The kit also asks for handles of nothing.
    match things.lock().unwrap().remove(handle) {
        Some(_) => Ok(String::new()),
        None => Err(Refusal("AlreadyClosed", format!("nothing is open as {handle}"))),
    }
}

/// Returns a field of a request, or "". TODO: use serde_json, because Rust's standard library has no JSON.
fn text<'a>(request: &'a str, name: &str) -> &'a str {
    let start = format!("\"{name}\": ");
    let Some(at) = request.find(&start) else { return "" };
    let rest = &request[at + start.len()..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or(""),
        None => rest.split([',', '}']).next().unwrap_or(""),
    }
}

fn hello() -> String {
    let names = OPERATIONS.map(|(name, _)| name); // {:?} writes plain texts as JSON does
    let about = r#""protocol": 2, "client": "My-Client", "version": "1.0", "topics": ["classic"]"#;
    format!("\"ok\": {{{about}, \"operations\": {names:?}, \"lacks\": {{{LACKS}}}}}")
}

/// Returns ok, unsupported or error.
fn answer(request: &str, things: &Things) -> String {
    let name = text(request, "do");
    if name == "hello" {
        return hello();
    }
    let Some((_, run)) = OPERATIONS.iter().find(|(known, _)| *known == name) else {
        return format!("\"unsupported\": \"no operation {name}\"");
    };
    match run(request, things) {
        Ok(fields) => format!("\"ok\": {{{fields}}}"),
        Err(Refusal(kind, why)) => format!("\"error\": {{\"kind\": {kind:?}, \"text\": {why:?}}}"),
    }
}

/// Names what a request waits for: requests of one handle keep their order, and a receive holds up no other.
fn turn(request: &str) -> String {
    let names = ["as", "handle", "producer", "consumer", "reader", "view", "transaction", "client"];
    let handle = names.iter().map(|name| text(request, name)).find(|handle| !handle.is_empty());
    format!("{} {}", handle.unwrap_or(""), text(request, "do").starts_with("receive"))
}

fn main() {
    let things = Things::default();
    let mut last: HashMap<String, JoinHandle<()>> = HashMap::new(); // by turn, the latest request
    for line in stdin().lines() {
        let (request, things) = (line.expect("requests are UTF-8"), things.clone());
        let turn = turn(&request);
        let before = last.remove(&turn);
        let work = move || {
            before.map(JoinHandle::join);
            let id = text(&request, "id").to_string();
            // Every request is answered, whatever happens: also when its own thread panics.
            let told = spawn(move || answer(&request, &things)).join();
            let told = told.unwrap_or(r#""error": {"kind": "Other", "text": "the adapter panicked"}"#.into());
            println!("{{\"id\": {id}, {told}}}");
        };
        last.insert(turn, spawn(work));
    }
}

//! Starts Pulsarium, an emulator of the Apache Pulsar broker, for tests.

mod process;

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

pub use serde_json::{json, Value};

/// A broker as one test sees it, with a namespace of the test's own.
///
/// When it is dropped, the test's faults, its namespace, and the namespace's time are gone. The broker itself ends with
/// the test binary. Methods panic when the broker refuses a request, so that the test fails.
pub struct Broker {
    /// The URL pulsar://host:port.
    pub service_url: String,
    /// The URL http://host:port.
    pub admin_url: String,
    /// The test's own namespace, tenant/namespace.
    pub namespace: String,
    agent: ureq::Agent,
    faults: Mutex<Vec<String>>,
}

impl Broker {
    /// Returns the broker that PULSARIUM_SERVICE_URL and PULSARIUM_ADMIN_URL name, which "pulsarium exec" sets, or the
    /// broker of this test binary, which its first test starts.
    pub fn start() -> Broker {
        Broker::with(&[])
    }

    /// Returns a broker with options of "pulsarium serve". Tests with the same options share a broker.
    pub fn with(options: &[&str]) -> Broker {
        let (service_url, admin_url) = process::running(options).unwrap_or_else(|error| panic!("{error}"));
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build();
        let agent = ureq::Agent::new_with_config(config);
        let faults = Mutex::default();
        let mut broker = Broker { service_url, admin_url, namespace: String::new(), agent, faults };
        let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
        let made = broker.call("POST", "/lab/namespaces", json!({ "name": test }));
        broker.namespace = made["name"].as_str().expect("a name").to_owned();
        broker
    }

    /// Returns the full name of a topic in the test's namespace. A missing topic is created by its first client.
    pub fn topic(&self, name: &str) -> String {
        format!("persistent://{}/{name}", self.namespace)
    }

    /// Applies an action, such as "drop" or json!({"kind": "delay", "seconds": 1}), to frames of a command, such as "SEND".
    ///
    /// `which` selects the frames by the names of POST /lab/faults: "stage", "topic", "count", ... By default, the rule
    /// acts on the first frame in the test's namespace. The namespace "*" selects the frames of all tests.
    pub fn fault(&self, action: impl Into<Value>, command: &str, which: Value) -> Fault<'_> {
        let mut asked = json!({ "action": action.into(), "command": command, "namespace": self.namespace });
        let selectors = which.as_object().expect("which is a JSON object").clone();
        asked.as_object_mut().expect("an object").extend(selectors);
        let path = format!("/lab/faults/{}", self.call("POST", "/lab/faults", asked)["id"]);
        self.faults.lock().unwrap().push(path.clone());
        Fault { broker: self, path }
    }

    /// Returns the clock of the test's namespace.
    pub fn clock(&self) -> Clock<'_> {
        Clock { broker: self }
    }

    fn call(&self, method: &str, path: &str, body: Value) -> Value {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_call(&self, method: &str, path: &str, body: Value) -> Result<Value, String> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.admin_url))
            .header("Content-Type", "application/json");
        let answer = match method {
            "POST" => self.agent.run(request.body(body.to_string()).map_err(|error| error.to_string())?),
            _ => self.agent.run(request.body(()).map_err(|error| error.to_string())?),
        };
        let mut answer = answer.map_err(|error| format!("no broker answers at {}: {error}", self.admin_url))?;
        let said = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let gone = method == "DELETE" && status == 404;
        if status >= 400 && !gone {
            return Err(format!("status {status}: {said}"));
        }
        Ok(serde_json::from_str(&said).unwrap_or(Value::Null))
    }

    fn end(&self) -> Result<(), String> {
        for path in self.faults.lock().unwrap().drain(..) {
            self.try_call("DELETE", &path, Value::Null)?;
        }
        self.try_call("POST", &format!("/lab/clock/reset?namespace={}", self.namespace), json!({}))?;
        self.try_call("DELETE", &format!("/lab/namespaces/{}", self.namespace), Value::Null)?;
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if self.namespace.is_empty() {
            return; // the broker refused it
        }
        let ended = self.end();
        if !std::thread::panicking() {
            ended.unwrap_or_else(|error| panic!("the test could not be cleaned up: {error}"));
        }
    }
}

/// A rule that acts on frames.
pub struct Fault<'a> {
    broker: &'a Broker,
    path: String,
}

impl Fault<'_> {
    /// Blocks until the rule has acted so many times. Panics after 30 seconds.
    pub fn wait(&self, hits: u32) {
        self.broker.call("GET", &format!("{}/wait?timeout=30&n={hits}", self.path), Value::Null);
    }

    /// Returns how often the rule has acted.
    pub fn hits(&self) -> u64 {
        self.broker.call("GET", &self.path, Value::Null)["hits"].as_u64().expect("a number")
    }

    /// Removes the rule, which may be removed already.
    pub fn remove(&self) {
        self.broker.call("DELETE", &self.path, Value::Null);
    }
}

/// The clock of the test's namespace.
pub struct Clock<'a> {
    broker: &'a Broker,
}

impl Clock<'_> {
    /// Advances the clock, and returns when all due timers have run.
    pub fn advance(&self, by: Duration) {
        self.call("POST", "/advance", json!({ "seconds": by.as_secs_f64() }));
    }

    /// Stops the clock.
    pub fn freeze(&self) {
        self.call("POST", "/freeze", json!({}));
    }

    /// Lets the clock run again from the time that it shows.
    pub fn resume(&self) {
        self.call("POST", "/resume", json!({}));
    }

    /// Returns to the broker's time.
    pub fn reset(&self) {
        self.call("POST", "/reset", json!({}));
    }

    /// Returns the clock's time.
    pub fn now(&self) -> SystemTime {
        let shown = self.call("GET", "", Value::Null);
        SystemTime::UNIX_EPOCH + Duration::from_millis(shown["nowMs"].as_u64().expect("a number"))
    }

    fn call(&self, method: &str, path: &str, body: Value) -> Value {
        self.broker.call(method, &format!("/lab/clock{path}?namespace={}", self.broker.namespace), body)
    }
}

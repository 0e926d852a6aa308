//! A broker as a process: the command, or a container of the image.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(60);
const ENGINES: [&str; 2] = ["docker", "podman"];
const NONE: &str = "no broker can start: put the command pulsarium on the PATH, or name it in PULSARIUM; \
    or install docker or podman, with the image pulsarium";

/// A broker, which ends when the pipe on its standard input does: with this process at the latest.
struct Process {
    urls: (String, String),
    _child: Child, // has the pipe
}

static PROCESSES: Mutex<Option<HashMap<Vec<String>, Process>>> = Mutex::new(None);

/// Returns the URLs of the broker with these options, and starts it when this process has none.
pub fn running(options: &[&str]) -> Result<(String, String), String> {
    let given = (env::var("PULSARIUM_SERVICE_URL"), env::var("PULSARIUM_ADMIN_URL"));
    if let (true, (Ok(service_url), Ok(admin_url))) = (options.is_empty(), given) {
        return Ok((service_url, admin_url));
    }
    let key: Vec<String> = options.iter().map(ToString::to_string).collect();
    let mut guard = PROCESSES.lock().map_err(|_| "the broker of another test did not start".to_owned())?;
    let processes = guard.get_or_insert_with(HashMap::new);
    if !processes.contains_key(&key) {
        processes.insert(key.clone(), start(&key)?);
    }
    Ok(processes[&key].urls.clone())
}

/// Starts the command "pulsarium" or the one that PULSARIUM names, else a container.
fn start(options: &[String]) -> Result<Process, String> {
    let serve = words("serve --with-parent --log-level warning");
    let named = env::var("PULSARIUM").ok();
    let command = words(named.as_deref().unwrap_or("pulsarium"));
    let ports = words("--port 0 --http-port 0");
    if let Some(started) = run(&[&command, &serve, &ports, options].concat())? {
        return Ok(started);
    }
    if let Some(name) = named {
        return Err(format!("PULSARIUM names {name}, which is not a command: correct or unset the variable"));
    }
    let image = env::var("PULSARIUM_IMAGE").unwrap_or_else(|_| "pulsarium".to_owned());
    // Clients are told the ports of the inside, so these are the same outside.
    let (port, http_port) = (free_port()?, free_port()?);
    let published = words(&format!("--publish 127.0.0.1:{port}:{port} --publish 127.0.0.1:{http_port}:{http_port}"));
    let inside = words(&format!(
        "--host 0.0.0.0 --set advertisedAddress=127.0.0.1 --port {port} --http-port {http_port}"
    ));
    for engine in ENGINES {
        let container = [words(engine), words("run --rm --interactive"), published.clone(), vec![image.clone()]].concat();
        if let Some(started) = run(&[&container, &words("pulsarium"), &serve, &inside, options].concat())? {
            return Ok(started);
        }
    }
    Err(NONE.to_owned())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

/// Runs a command until it is ready. Returns None when there is no such command.
fn run(command: &[String]) -> Result<Option<Process>, String> {
    let spawned = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be executed: {error}", command[0])),
    };
    let mut errors = child.stderr.take().expect("a pipe");
    let log = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (ready, told) = mpsc::channel();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if let ["pulsarium", "ready", service_url, admin_url, ..] = line.split(' ').collect::<Vec<_>>()[..] {
                let _ = ready.send((from_outside(service_url), from_outside(admin_url)));
            }
        }
    });
    if let Ok(urls) = told.recv_timeout(START_LIMIT) {
        return Ok(Some(Process { urls, _child: child }));
    }
    let _ = child.kill();
    let _ = child.wait();
    let log = log.join().unwrap_or_default();
    let advice = advice(&command[0]);
    Err(format!("{} ended before it served, or was not ready in a minute:\n{log}{advice}", command.join(" ")))
}

/// Returns what to do when a program serves no broker.
fn advice(program: &str) -> String {
    if !ENGINES.contains(&program) {
        return String::new();
    }
    format!(
        "a container needs the image: type `{program} build -t pulsarium .` in a checkout of Pulsarium, \
         or put the command pulsarium on the PATH"
    )
}

/// Returns a URL that leads to a broker, which listens on 0.0.0.0 in a container.
fn from_outside(url: &str) -> String {
    url.replace("0.0.0.0", "127.0.0.1")
}

use std::time::Duration;

use futures::TryStreamExt;
use pulsar::consumer::{ConsumerOptions, InitialPosition};
use pulsar::producer::Message;
use pulsar::{Consumer, Pulsar, SubType, TokioExecutor};
use pulsarium::{json, Broker};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn a_reminder_arrives_after_a_week() -> Outcome {
    let broker = Broker::start();
    let client = connect(&broker).await?;
    let week = Duration::from_secs(7 * 86_400);
    let mut consumer = subscribe(&client, &broker).await?;
    let mut producer = client.producer().with_topic(broker.topic("orders")).build().await?;
    let due = std::time::SystemTime::now() + week;
    let due_ms = due.duration_since(std::time::UNIX_EPOCH)?.as_millis() as i64;
    let message = Message { payload: b"pay".to_vec(), deliver_at_time: Some(due_ms), ..Default::default() };
    producer.send_non_blocking(message).await?.await?;
    let before = broker.clock().now();
    broker.clock().advance(week + Duration::from_secs(60));
    assert!(broker.clock().now() >= before + week);
    expect(&mut consumer, "pay").await
}

#[tokio::test]
async fn each_test_has_a_namespace_of_its_own() -> Outcome {
    let (first, second) = (Broker::start(), Broker::start());
    assert_eq!(first.admin_url, second.admin_url);
    assert_ne!(first.topic("orders"), second.topic("orders"));
    let fault = first.fault("drop", "SEND", json!({}));
    let client = connect(&second).await?;
    let mut consumer = subscribe(&client, &second).await?;
    let mut producer = client.producer().with_topic(second.topic("orders")).build().await?;
    producer.send_non_blocking("3 apples").await?.await?;
    expect(&mut consumer, "3 apples").await?;
    assert_eq!(fault.hits(), 0);
    Ok(())
}

#[test]
fn this_process_dies() {
    if std::env::var("PULSARIUM_TEST_DIES").is_ok() {
        let broker = Broker::start();
        broker.fault("drop", "SEND", json!({}));
        let pid = std::process::id().to_string();
        std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("kill"); // leaves no core file
    }
}

async fn connect(broker: &Broker) -> Result<Pulsar<TokioExecutor>, pulsar::Error> {
    Pulsar::builder(&broker.service_url, TokioExecutor).build().await
}

async fn subscribe(
    client: &Pulsar<TokioExecutor>,
    broker: &Broker,
) -> Result<Consumer<String, TokioExecutor>, pulsar::Error> {
    let earliest = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    client
        .consumer()
        .with_topic(broker.topic("orders"))
        .with_subscription("billing")
        .with_subscription_type(SubType::Shared) // only a shared subscription delays messages
        .with_options(earliest)
        .build()
        .await
}

async fn expect(consumer: &mut Consumer<String, TokioExecutor>, value: &str) -> Outcome {
    let next = tokio::time::timeout(Duration::from_secs(30), consumer.try_next()).await?;
    assert_eq!(next?.expect("a message").deserialize()?, value);
    Ok(())
}

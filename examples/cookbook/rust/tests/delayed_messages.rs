use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::TryStreamExt;
use pulsar::producer::Message;
use pulsar::{Consumer, Pulsar, SubType, TokioExecutor};
use pulsarium::Broker;

const WEEK: Duration = Duration::from_secs(7 * 86_400);

#[tokio::test]
async fn a_reminder_in_a_week_comes_now() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start();
    let client = Pulsar::builder(&broker.service_url, TokioExecutor).build().await?;
    let topic = broker.topic("reminders");
    let consumer = client.consumer().with_topic(&topic).with_subscription("mail").with_subscription_type(SubType::Shared);
    let mut consumer: Consumer<String, _> = consumer.build().await?;
    let mut producer = client.producer().with_topic(&topic).build().await?;

    let due = (SystemTime::now() + WEEK).duration_since(UNIX_EPOCH)?.as_millis() as i64;
    let reminder = Message { payload: b"pay".to_vec(), deliver_at_time: Some(due), ..Default::default() };
    producer.send_non_blocking(reminder).await?.await?;
    broker.clock().advance(WEEK);

    let message = consumer.try_next().await?.expect("a message");
    assert_eq!(message.deserialize()?, "pay");
    consumer.ack(&message).await?;
    Ok(())
}

//! What is acknowledged, refused, and comes again.

use std::time::Duration;

use pulsar::consumer::DeadLetterPolicy;
use pulsar::SubType;

use crate::cell::*;

pub async fn shared_nack(c: Cell) -> Done {
    let mut consumer = c.consumer(SubType::Shared).await?;
    send(&mut c.single().await?, &texts(0, 10)).await?;
    for message in receive(&mut consumer, 10).await? {
        if text(&message) == "a0004" {
            consumer.nack(&message).await?;
        } else {
            consumer.ack(&message).await?;
        }
    }
    equal(consume(&mut consumer, 1).await?, vec!["a0004".to_owned()])?;
    nothing_more(&mut consumer).await
}

pub async fn ack_timeout(c: Cell) -> Done {
    let builder = c.consuming(SubType::Shared).with_topic(c.topic());
    let mut consumer: Consuming =
        builder.with_unacked_message_resend_delay(Some(Duration::from_secs(1))).build().await?;
    send(&mut c.single().await?, &["again".to_owned()]).await?;
    receive(&mut consumer, 1).await?;
    equal(consume(&mut consumer, 1).await?, vec!["again".to_owned()])
}

pub async fn cumulative_ack(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    send(&mut c.single().await?, &texts(0, 10)).await?;
    let messages = receive(&mut consumer, 6).await?;
    consumer.cumulative_ack(&messages[5]).await?;
    consumer.close().await?;
    let mut again = c.exclusive().await?;
    equal(consume(&mut again, 4).await?, texts(6, 10))?;
    nothing_more(&mut again).await
}

pub async fn dead_letter(c: Cell) -> Done {
    let dead = format!("{}-s-DLQ", c.topic());
    let mut letters: Consuming = c.consuming(SubType::Exclusive).with_topic(&dead).build().await?;
    let policy = DeadLetterPolicy { max_redeliver_count: 3, dead_letter_topic: dead };
    let builder = c.consuming(SubType::Shared).with_topic(c.topic());
    let mut consumer: Consuming = builder.with_dead_letter_policy(policy).build().await?;
    send(&mut c.single().await?, &["dead".to_owned()]).await?;
    for _ in 0..3 {
        let messages = receive(&mut consumer, 1).await?;
        consumer.nack(&messages[0]).await?;
    }
    nothing_more(&mut consumer).await?;
    equal(consume(&mut letters, 1).await?, vec!["dead".to_owned()])
}

pub async fn unsubscribe(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    send(&mut c.single().await?, &texts(0, 5)).await?;
    equal(consume(&mut consumer, 5).await?, texts(0, 5))?;
    consumer.unsubscribe().await?;
    drop(consumer);
    equal(consume(&mut c.exclusive().await?, 5).await?, texts(0, 5))
}

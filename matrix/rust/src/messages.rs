//! What becomes of messages on their way.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pulsar::compression::Compression;
use pulsar::{ProducerOptions, SubType};

use crate::cell::*;

pub async fn produce_consume(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let mut producer = c.single().await?;
    for each in texts(0, 10) {
        let mut sent = message(&each, "k");
        sent.properties.insert("p".into(), "v".into());
        producer.send_non_blocking(sent).await?.await?;
    }
    let messages = receive(&mut consumer, 10).await?;
    equal(texts_of(&messages), texts(0, 10))?;
    for each in &messages {
        equal(each.key(), Some("k".to_owned()))?;
        let properties = &each.payload.metadata.properties;
        equal(properties.iter().map(|pair| (pair.key.as_str(), pair.value.as_str())).collect(), vec![("p", "v")])?;
        consumer.ack(each).await?;
    }
    consumer.close().await?;
    nothing_more(&mut c.exclusive().await?).await
}

pub async fn batching(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let mut producer = c.producer(batches()).await?;
    send(&mut producer, &texts(0, 10)).await?;
    let messages = receive(&mut consumer, 10).await?;
    equal(texts_of(&messages), texts(0, 10))?;
    for (place, each) in messages.iter().enumerate() {
        equal(each.message_id().entry_id, messages[0].message_id().entry_id)?;
        equal(each.message_id().batch_index, Some(place as i32))?;
    }
    Ok(())
}

pub async fn compression(c: Cell, kind: &str) -> Done {
    let kind = match kind {
        "lz4" => Compression::Lz4(Default::default()),
        "zlib" => Compression::Zlib(Default::default()),
        "zstd" => Compression::Zstd(Default::default()),
        _ => Compression::Snappy(Default::default()),
    };
    let mut consumer = c.exclusive().await?;
    let mut producer = c.producer(ProducerOptions { compression: Some(kind), ..single() }).await?;
    let sent: Vec<String> = texts(0, 10).iter().map(|each| each.repeat(1000)).collect();
    send(&mut producer, &sent).await?;
    equal(consume(&mut consumer, 10).await?, sent)
}

pub async fn delayed(c: Cell) -> Done {
    let mut consumer = c.consumer(SubType::Shared).await?;
    let mut producer = c.single().await?;
    let start = Instant::now();
    let due = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64 + 1000;
    let mut later = message("later", "");
    later.deliver_at_time = Some(due);
    producer.send_non_blocking(later).await?.await?;
    producer.send_non_blocking(message("now", "")).await?.await?;
    equal(consume(&mut consumer, 2).await?, vec!["now".to_owned(), "later".to_owned()])?;
    that(start.elapsed() > Duration::from_millis(900), "too early")
}

pub async fn non_persistent(c: Cell) -> Done {
    let topic = c.topic().replace("persistent://", "non-persistent://");
    let mut consumer: Consuming = c.consuming(SubType::Exclusive).with_topic(&topic).build().await?;
    let mut producer = c.client.producer().with_topic(&topic).with_options(single()).build().await?;
    send(&mut producer, &texts(0, 10)).await?;
    equal(consume(&mut consumer, 10).await?, texts(0, 10))
}

pub async fn key_shared(c: Cell) -> Done {
    let mut consumers = [c.consumer(SubType::KeyShared).await?, c.consumer(SubType::KeyShared).await?];
    let mut producer = c.single().await?;
    for number in 0..10 {
        for key in 0..5 {
            producer.send_non_blocking(message(&number.to_string(), &format!("key-{key}"))).await?.await?;
        }
    }
    let mut numbers: HashMap<String, String> = HashMap::new();
    let mut owners: HashMap<String, usize> = HashMap::new();
    let (mut count, start) = (0, Instant::now());
    while count < 50 && start.elapsed() < PATIENCE {
        for (place, consumer) in consumers.iter_mut().enumerate() {
            while let Some(got) = within(Duration::from_millis(50), consumer).await? {
                consumer.ack(&got).await?;
                let key = got.key().unwrap_or_default();
                numbers.entry(key.clone()).or_default().push_str(&text(&got));
                that(*owners.entry(key).or_insert(place) == place, "two consumers of a key")?;
                count += 1;
            }
        }
    }
    equal(count, 50)?;
    numbers.values().try_for_each(|each| equal(each.as_str(), "0123456789"))
}

//! Who is let in where.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use pulsar::{ConsumerOptions, ProducerOptions, SubType};
use regex::Regex;
use tokio::time::timeout;

use crate::cell::*;

const EXCLUSIVE: Option<i32> = Some(1);
const WAIT_FOR_EXCLUSIVE: Option<i32> = Some(2);
const TURN: Duration = Duration::from_millis(100);

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub async fn exclusive_busy(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    refused("a second consumer", c.exclusive().await)?;
    consumer.close().await?;
    c.exclusive().await?;
    Ok(())
}

pub async fn failover(c: Cell) -> Done {
    let mut consumers = Vec::new();
    for name in ["a", "b"] {
        let builder = c.consuming(SubType::Failover).with_topic(c.topic()).with_consumer_name(name);
        consumers.push(builder.build::<Vec<u8>>().await?);
    }
    let mut producer = c.single().await?;
    send(&mut producer, &texts(0, 10)).await?;
    // A hash of the consumers' names and the topic's name decides which consumer is active.
    let (mut active, mut first, start) = (1, None, Instant::now());
    while first.is_none() && start.elapsed() < PATIENCE {
        active = 1 - active;
        first = within(TURN, &mut consumers[active]).await?;
    }
    let first = first.ok_or("no consumer is active")?;
    consumers[active].ack(&first).await?;
    equal(text(&first), "a0000".to_owned())?;
    equal(consume(&mut consumers[active], 9).await?, texts(1, 10))?;
    nothing_more(&mut consumers[1 - active]).await?;
    consumers[active].close().await?;
    send(&mut producer, &texts(10, 20)).await?;
    equal(consume(&mut consumers[1 - active], 10).await?, texts(10, 20))
}

pub async fn shared(c: Cell) -> Done {
    let mut consumers = Vec::new();
    for _ in 0..2 {
        let builder = c.consuming(SubType::Shared).with_topic(c.topic());
        let options = ConsumerOptions::default().with_receiver_queue_size(5);
        consumers.push(builder.with_options(options).with_batch_size(5).build::<Vec<u8>>().await?);
    }
    send(&mut c.single().await?, &texts(0, 20)).await?;
    let (mut found, mut busy, start) = (Vec::new(), HashSet::new(), Instant::now());
    while found.len() < 20 && start.elapsed() < PATIENCE {
        for (place, consumer) in consumers.iter_mut().enumerate() {
            if let Some(message) = within(TURN, consumer).await? {
                consumer.ack(&message).await?;
                found.push(text(&message));
                busy.insert(place);
            }
        }
    }
    found.sort();
    equal(found, texts(0, 20))?;
    that(busy.len() == 2, "one consumer got everything")
}

pub async fn partitioned(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    send(&mut c.single().await?, &texts(0, 30)).await?;
    let messages = receive(&mut consumer, 30).await?;
    let mut got = texts_of(&messages);
    got.sort();
    equal(got, texts(0, 30))?;
    equal(messages.iter().map(|message| message.topic.as_str()).collect::<BTreeSet<_>>().len(), 3)
}

pub async fn pattern(c: Cell) -> Done {
    let namespace = c.text("namespace").to_owned();
    for name in ["red-1", "red-2", "blue"] {
        let topic = format!("persistent://{namespace}/{name}");
        let mut producer = c.client.producer().with_topic(topic).with_options(single()).build().await?;
        send(&mut producer, &strings(&[name])).await?;
    }
    let builder = c.consuming(SubType::Exclusive).with_lookup_namespace(namespace);
    let mut consumer: Consuming = builder.with_topic_regex(Regex::new(".*/red-.*")?).build().await?;
    let mut got = consume(&mut consumer, 2).await?;
    got.sort();
    equal(got, strings(&["red-1", "red-2"]))?;
    nothing_more(&mut consumer).await
}

pub async fn multi_topics(c: Cell) -> Done {
    let topics = [format!("{}-0", c.topic()), format!("{}-1", c.topic())];
    let mut consumer: Consuming = c.consuming(SubType::Exclusive).with_topics(&topics).build().await?;
    for topic in &topics {
        let mut producer = c.client.producer().with_topic(topic).with_options(single()).build().await?;
        send(&mut producer, std::slice::from_ref(topic)).await?;
    }
    let mut got = consume(&mut consumer, 2).await?;
    got.sort();
    equal(got, topics.to_vec())
}

pub async fn unload(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let mut producer = c.single().await?;
    send(&mut producer, &texts(0, 5)).await?;
    equal(consume(&mut consumer, 5).await?, texts(0, 5))?;
    c.administrate("unload")?;
    send(&mut producer, &texts(5, 10)).await?;
    // Acknowledgements in flight may have been lost with the old consumer.
    let mut missing: BTreeSet<String> = texts(5, 10).into_iter().collect();
    while !missing.is_empty() {
        missing.remove(&consume(&mut consumer, 1).await?[0]);
    }
    Ok(())
}

pub async fn brokers(mut c: Cell) -> Done {
    for url in c.service_urls() {
        c.client = builder(&url).build().await?;
        for number in 0..8 {
            let topic = format!("{}-{number}", c.topic());
            let mut consumer: Consuming = c.consuming(SubType::Exclusive).with_topic(&topic).build().await?;
            let mut producer = c.client.producer().with_topic(&topic).with_options(single()).build().await?;
            send(&mut producer, std::slice::from_ref(&topic)).await?;
            equal(consume(&mut consumer, 1).await?, vec![topic])?;
            consumer.close().await?;
        }
    }
    Ok(())
}

async fn five(c: &Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    send(&mut c.single().await?, &texts(0, 5)).await?;
    equal(consume(&mut consumer, 5).await?, texts(0, 5))
}

pub async fn token(mut c: Cell) -> Done {
    c.client = by_token(builder(c.text("service_url")), c.text("token")).build().await?;
    five(&c).await?;
    refused("a wrong token", by_token(builder(c.text("service_url")), c.text("wrong_token")).build().await)
}

pub async fn tls(mut c: Cell) -> Done {
    let builder = builder(c.text("tls_url")).with_certificate_chain_file(c.text("authority"))?;
    c.client = by_token(builder, c.text("token")).build().await?;
    five(&c).await
}

pub async fn producer_name(c: Cell) -> Done {
    let named = || c.client.producer().with_topic(c.topic()).with_name("p").with_options(single()).build();
    let mut producer = named().await?;
    refused("a second p", timeout(PATIENCE, named()).await?)?;
    producer.close().await?;
    named().await?;
    Ok(())
}

pub async fn exclusive_producer(c: Cell) -> Done {
    let mut owner = c.producer(ProducerOptions { access_mode: EXCLUSIVE, ..single() }).await?;
    refused("another producer", timeout(PATIENCE, c.single()).await?)?;
    send(&mut owner, &strings(&["mine"])).await?;
    Ok(())
}

pub async fn wait_for_exclusive(c: Cell) -> Done {
    let mut owner = c.producer(ProducerOptions { access_mode: EXCLUSIVE, ..single() }).await?;
    let next = c.producer(ProducerOptions { access_mode: WAIT_FOR_EXCLUSIVE, ..single() });
    futures::pin_mut!(next);
    that(timeout(Duration::from_millis(500), &mut next).await.is_err(), "the producer did not wait")?;
    owner.close().await?;
    send(&mut timeout(PATIENCE, next).await??, &strings(&["mine now"])).await?;
    Ok(())
}

pub async fn terminated(c: Cell) -> Done {
    let mut consumer = c.exclusive().await?;
    let mut producer = c.single().await?;
    send(&mut producer, &texts(0, 5)).await?;
    c.administrate("terminate")?;
    equal(consume(&mut consumer, 5).await?, texts(0, 5))?;
    let late = async { producer.send_non_blocking(message("too late", "")).await?.await };
    refused("a message", timeout(PATIENCE, late).await?)
}

use futures::TryStreamExt;
use pulsar::{Consumer, TokioExecutor};
use testcontainers_modules::testcontainers::{core::IntoContainerPort, runners::AsyncRunner, ImageExt};

/// `docker build -t pulsarium .` in a checkout of Pulsarium makes this image.
fn image() -> (String, String) {
    let image = std::env::var("PULSARIUM_IMAGE").unwrap_or_else(|_| "pulsarium:latest".into());
    let (name, tag) = image.rsplit_once(':').expect("an image with its tag");
    (name.into(), tag.into())
}

/// With Docker `get_host_port_ipv4(6650)` finds the port that the engine chose; with Podman 4 it finds none, so we choose.
fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[tokio::test]
async fn a_message_reaches_its_consumer() -> Result<(), Box<dyn std::error::Error>> {
    let (name, tag) = image();
    let port = free_port()?;
    let broker = testcontainers_modules::pulsar::Pulsar::default()
        .with_config_env("allowAutoTopicCreationType", "partitioned")
        .with_config_env("defaultNumPartitions", "2")
        .with_name(name)
        .with_tag(tag)
        .with_mapped_port(port, 6650.tcp())
        .start()
        .await?;
    let url = format!("pulsar://{}:{port}", broker.get_host().await?);

    let client = pulsar::Pulsar::builder(url, TokioExecutor).build().await?;
    let mut consumer: Consumer<String, _> =
        client.consumer().with_topic("orders").with_subscription("billing").build().await?;
    let mut producer = client.producer().with_topic("orders").build().await?;
    producer.send_non_blocking("3 apples").await?.await?;
    let message = consumer.try_next().await?.expect("a message");
    assert_eq!(message.deserialize()?, "3 apples");
    consumer.ack(&message).await?;

    assert_eq!(client.lookup_partitioned_topic("orders").await?.len(), 2);
    Ok(())
}

use futures::TryStreamExt;
use pulsar::{Consumer, Pulsar, TokioExecutor};
use pulsarium::{json, Broker};

#[tokio::test]
async fn an_order_is_stored_when_its_receipt_is_lost() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start();
    let topic = broker.topic("orders");
    let client = Pulsar::builder(&broker.service_url, TokioExecutor).build().await?;
    let mut consumer: Consumer<String, _> =
        client.consumer().with_topic(&topic).with_subscription("billing").build().await?;
    let mut producer = client.producer().with_topic(&topic).build().await?;
    let fault = broker.fault("close", "SEND", json!({ "stage": "after" }));
    producer.send_non_blocking("3 apples").await?.await?;
    fault.wait(1);
    let message = consumer.try_next().await?.expect("a message");
    assert_eq!(message.deserialize()?, "3 apples");
    Ok(())
}

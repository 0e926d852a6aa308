import org.apache.pulsar.client.api.*;

class Hello {
    public static void main(String[] args) throws Exception {
        try (var client = PulsarClient.builder().serviceUrl("pulsar://localhost:6650").build();
             var consumer = client.newConsumer(Schema.STRING).topic("hello-java").subscriptionName("readme").subscribe();
             var producer = client.newProducer(Schema.STRING).topic("hello-java").create()) {
            producer.send("Hello from Java");
            var message = consumer.receive();
            System.out.println(message.getValue());
            consumer.acknowledge(message);
        }
    }
}

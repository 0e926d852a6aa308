package pulsarium.matrix;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** The request of one scenario, its client, and the channel for admin work. */
final class Cell implements AutoCloseable {
    private final JsonObject request;
    private final BufferedReader lines;
    private final PrintStream answers;
    private final List<PulsarClient> clients = new ArrayList<>();
    private PulsarClient client;

    Cell(JsonObject request, BufferedReader lines, PrintStream answers) {
        this.request = request;
        this.lines = lines;
        this.answers = answers;
    }

    String text(String name) {
        return request.get(name).getAsString();
    }

    List<String> serviceUrls() {
        return request.get("service_urls").getAsJsonArray().asList().stream().map(each -> each.getAsString()).toList();
    }

    String topic() {
        return text("topic");
    }

    /** Asks for admin work on the topic: "unload", "compact" or "terminate". */
    void administrate(String action) throws Exception {
        var asked = new JsonObject();
        asked.addProperty("do", action);
        answers.println(asked);
        Check.that(JsonParser.parseString(lines.readLine()).getAsJsonObject().get("done").getAsBoolean(), action + " was refused");
    }

    static ClientBuilder builder(String url) {
        return PulsarClient.builder().serviceUrl(url).operationTimeout(10, TimeUnit.SECONDS);
    }

    /** Opens another client, which is closed at the end. */
    PulsarClient open(ClientBuilder builder) throws PulsarClientException {
        var made = builder.build();
        clients.add(made);
        return made;
    }

    PulsarClient client() throws PulsarClientException {
        if (client == null) {
            client = open(builder(text("service_url")));
        }
        return client;
    }

    /** Opens a producer that sends each message in an entry of its own. */
    ProducerBuilder<byte[]> producing() throws PulsarClientException {
        return client().newProducer().topic(topic()).enableBatching(false);
    }

    Producer<byte[]> producer() throws PulsarClientException {
        return producing().create();
    }

    /** Opens a producer that sends batches of ten messages. */
    Producer<byte[]> batches() throws PulsarClientException {
        return producing().enableBatching(true).batchingMaxMessages(10)
                .batchingMaxPublishDelay(10, TimeUnit.SECONDS).create();
    }

    ConsumerBuilder<byte[]> consuming(SubscriptionType type) throws PulsarClientException {
        return consuming(client(), type);
    }

    ConsumerBuilder<byte[]> consuming(PulsarClient client, SubscriptionType type) {
        return client.newConsumer(Schema.BYTES).topic(topic()).subscriptionName("s").subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    Consumer<byte[]> consumer(SubscriptionType type) throws PulsarClientException {
        return consuming(type).subscribe();
    }

    Consumer<byte[]> consumer() throws PulsarClientException {
        return consumer(SubscriptionType.Exclusive);
    }

    /** Closes all clients without waiting for the end of their threads. */
    @Override
    public void close() {
        clients.forEach(PulsarClient::closeAsync);
    }
}

package pulsarium.foreign;

import com.google.gson.JsonObject;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;

/** The broker, what the scenario was asked to do, and what it tells beside its success; its topic is new. */
record Context(PulsarClient client, String serviceUrl, String adminUrl, JsonObject arguments, JsonObject told) {
    String text(String name) {
        return arguments.get(name).getAsString();
    }

    int number(String name) {
        return arguments.get(name).getAsInt();
    }

    boolean flag(String name) {
        return arguments.get(name).getAsBoolean();
    }

    String topic() {
        return arguments.has("topic") ? text("topic") : "";
    }

    /** A further topic of the scenario. */
    String topic(String suffix) {
        return topic() + "-" + suffix;
    }

    /** The subscription type the scenario is run with. */
    SubscriptionType type() {
        return SubscriptionType.valueOf(text("subscription"));
    }

    /** A producer that sends each message by itself. */
    ProducerBuilder<byte[]> producer() {
        return client.newProducer().topic(topic()).enableBatching(false);
    }

    Producer<byte[]> newProducer() throws PulsarClientException {
        return producer().create();
    }

    ConsumerBuilder<byte[]> consumer(SubscriptionType type) {
        return client.newConsumer(Schema.BYTES).topic(topic()).subscriptionName("s").subscriptionType(type);
    }

    Consumer<byte[]> newConsumer(SubscriptionType type) throws PulsarClientException {
        return consumer(type).subscribe();
    }

    void createPartitioned(String topic, int partitions) throws Exception {
        admin("PUT", path(topic) + "/partitions", Integer.toString(partitions));
    }

    void grow(String topic, int partitions) throws Exception {
        admin("POST", path(topic) + "/partitions", Integer.toString(partitions));
    }

    String stats(String topic) throws Exception {
        return admin("GET", path(topic) + "/stats", "");
    }

    void compact(String topic) throws Exception {
        admin("PUT", path(topic) + "/compaction", "");
    }

    /** The state of the last compaction, as JSON. */
    String compaction(String topic) throws Exception {
        return admin("GET", path(topic) + "/compaction", "");
    }

    /** Sets a policy of the scenario's own namespace; `value` is JSON. */
    void policy(String name, String value) throws Exception {
        admin("POST", "/admin/v2/namespaces/" + text("namespace") + "/" + name, value);
    }

    /** A topic in the namespace that is the scenario's own. */
    String ownTopic() {
        return "persistent://" + text("namespace") + "/t";
    }

    private static String path(String topic) {
        return "/admin/v2/" + topic.replaceFirst("://", "/");
    }

    private String admin(String method, String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(adminUrl + path))
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        Check.that(answer.statusCode() / 100 == 2, method + " " + path + ": " + answer.statusCode() + " " + answer.body());
        return answer.body();
    }
}

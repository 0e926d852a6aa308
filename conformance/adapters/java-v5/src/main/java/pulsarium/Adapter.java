package pulsarium;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.pulsar.client.api.v5.Checkpoint;
import org.apache.pulsar.client.api.v5.CheckpointConsumer;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.Transaction;
import org.apache.pulsar.client.api.v5.config.BackoffPolicy;
import org.apache.pulsar.client.api.v5.config.ProducerAccessMode;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.config.TransactionPolicy;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** The conformance kit's adapter for Pulsar's V5 Java client. */
public final class Adapter {
    private interface Operation {
        void run(JsonNode request, ObjectNode ok) throws Exception;
    }

    /** Receives with a limit, from any kind of consumer. */
    private interface Receive {
        Message<String> next(Duration limit) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration REDELIVERY = Duration.ofMillis(100);
    private static final Duration OPERATION = Duration.ofSeconds(15);
    private static final Map<String, String> KINDS = Map.ofEntries(
            Map.entry("NotFoundException", "NotFound"),
            Map.entry("TopicDoesNotExistException", "NotFound"),
            Map.entry("AuthenticationException", "Authentication"),
            Map.entry("AuthorizationException", "Authorization"),
            Map.entry("TimeoutException", "Timeout"),
            Map.entry("AlreadyClosedException", "AlreadyClosed"),
            Map.entry("ProducerBusyException", "ProducerBusy"),
            Map.entry("ProducerFencedException", "Fenced"),
            Map.entry("ConsumerBusyException", "ConsumerBusy"),
            Map.entry("IncompatibleSchemaException", "IncompatibleSchema"),
            Map.entry("TopicTerminatedException", "TopicTerminated"),
            Map.entry("ConnectException", "Connect"),
            Map.entry("NotConnectedException", "Connect"),
            Map.entry("ProducerQueueIsFullError", "ProducerQueueFull"),
            Map.entry("ProducerQueueFullException", "ProducerQueueFull"),
            Map.entry("MemoryBufferIsFullError", "MemoryBufferFull"),
            Map.entry("MemoryBufferFullException", "MemoryBufferFull"),
            Map.entry("TransactionConflictException", "TransactionConflict"),
            Map.entry("InvalidTxnStatusException", "TransactionConflict"),
            Map.entry("TransactionHasOperationFailedException", "TransactionConflict"),
            Map.entry("CryptoException", "Crypto"),
            Map.entry("InvalidConfigurationException", "InvalidConfiguration"),
            Map.entry("InvalidServiceURLException", "InvalidServiceURL"));

    private final PrintStream out;
    private final Map<String, Object> things = new ConcurrentHashMap<>();
    private final Map<String, MessageId> ids = new ConcurrentHashMap<>();
    private final Map<String, Operation> operations = new TreeMap<>();

    private Adapter(PrintStream out) {
        this.out = out;
        operations.put("open", (r, ok) -> keep(r, PulsarClient.builder()
                .serviceUrl(r.get("url").asText())
                .operationTimeout(OPERATION)
                .transactionPolicy(TransactionPolicy.builder().timeout(Duration.ofSeconds(60)).build())
                .build()));
        operations.put("producer", this::producer);
        operations.put("send", this::send);
        operations.put("flush", (r, ok) -> this.<Producer<String>>thing(r, "producer").async().flush().join());
        operations.put("last-sequence", (r, ok) ->
                ok.put("sequence", this.<Producer<String>>thing(r, "producer").lastSequenceId()));
        operations.put("stream", (r, ok) -> keep(r, client(r).newStreamConsumer(Schema.string())
                .topic(r.get("topic").asText())
                .subscriptionName(r.get("subscription").asText())
                .consumerName(r.get("name").asText())
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                .subscribe()));
        operations.put("namespace-stream", (r, ok) -> keep(r, client(r).newStreamConsumer(Schema.string())
                .namespace(r.get("namespace").asText(), properties(r))
                .subscriptionName(r.get("subscription").asText())
                .consumerName(r.get("name").asText())
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                .subscribe()));
        operations.put("queue", (r, ok) -> keep(r, client(r).newQueueConsumer(Schema.string())
                .topic(r.get("topic").asText())
                .subscriptionName(r.get("subscription").asText())
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST)
                .negativeAckRedeliveryBackoff(BackoffPolicy.exponential(REDELIVERY, REDELIVERY.multipliedBy(2)))
                .subscribe()));
        operations.put("checkpoint-consumer", this::reader);
        operations.put("receive", this::receive);
        operations.put("acknowledge", this::acknowledge);
        operations.put("negative-acknowledge", (r, ok) ->
                this.<QueueConsumer<String>>thing(r, "consumer").negativeAcknowledge(ids.get(r.get("message").asText())));
        operations.put("checkpoint", (r, ok) -> ok.put("checkpoint", Base64.getEncoder()
                .encodeToString(this.<CheckpointConsumer<String>>thing(r, "consumer").checkpoint().toByteArray())));
        operations.put("transaction", (r, ok) -> keep(r, client(r).newTransaction()));
        operations.put("commit", (r, ok) -> this.<Transaction>thing(r, "transaction").commit());
        operations.put("abort", (r, ok) -> this.<Transaction>thing(r, "transaction").abort());
        operations.put("close", (r, ok) -> this.<AutoCloseable>thing(r, "handle").close());
    }

    private void producer(JsonNode request, ObjectNode ok) throws Exception {
        var builder = client(request).newProducer(Schema.string()).topic(request.get("topic").asText());
        if (request.has("name")) {
            builder.producerName(request.get("name").asText());
        }
        if (request.has("access")) {
            builder.accessMode(switch (request.get("access").asText()) {
                case "exclusive" -> ProducerAccessMode.EXCLUSIVE;
                case "exclusive-with-fencing" -> ProducerAccessMode.EXCLUSIVE_WITH_FENCING;
                case "wait-for-exclusive" -> ProducerAccessMode.WAIT_FOR_EXCLUSIVE;
                default -> ProducerAccessMode.SHARED;
            });
        }
        keep(request, builder.create());
    }

    private void send(JsonNode request, ObjectNode ok) throws Exception {
        Producer<String> producer = thing(request, "producer");
        Transaction transaction = request.has("transaction") ? thing(request, "transaction") : null;
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (JsonNode each : request.get("messages")) {
            var message = producer.async().newMessage().value(each.get("value").asText());
            if (each.has("key")) {
                message.key(each.get("key").asText());
            }
            if (transaction != null) {
                message.transaction(transaction);
            }
            sent.add(message.send());
        }
        ArrayNode told = ok.putArray("ids");
        for (CompletableFuture<MessageId> each : sent) {
            told.add(known(each.join()));
        }
    }

    private void reader(JsonNode request, ObjectNode ok) throws Exception {
        String start = request.get("start").asText();
        Checkpoint from = switch (start) {
            case "earliest" -> Checkpoint.earliest();
            case "latest" -> Checkpoint.latest();
            default -> Checkpoint.fromByteArray(Base64.getDecoder().decode(start));
        };
        var builder = client(request).newCheckpointConsumer(Schema.string())
                .topic(request.get("topic").asText()).startPosition(from);
        if (request.has("group")) {
            builder.consumerGroup(request.get("group").asText());
        }
        if (request.has("name")) {
            builder.consumerName(request.get("name").asText());
        }
        keep(request, builder.create());
    }

    private void receive(JsonNode request, ObjectNode ok) throws Exception {
        Object consumer = things.get(request.get("consumer").asText());
        Receive receive = receiving(consumer);
        ArrayNode told = ok.putArray("messages");
        long end = System.nanoTime() + (long) (request.get("seconds").asDouble() * 1e9);
        int count = request.get("count").asInt();
        while (told.size() < count) {
            long left = end - System.nanoTime();
            Message<String> message = left <= 0 ? null : receive.next(Duration.ofNanos(left));
            if (message == null) {
                return;
            }
            ObjectNode each = told.addObject().put("value", message.value()).put("id", known(message.id()));
            message.key().ifPresent(key -> each.put("key", key));
        }
    }

    @SuppressWarnings("unchecked")
    private static Receive receiving(Object consumer) {
        if (consumer instanceof StreamConsumer<?> stream) {
            return limit -> ((StreamConsumer<String>) stream).receive(limit);
        }
        if (consumer instanceof QueueConsumer<?> queue) {
            return limit -> ((QueueConsumer<String>) queue).receive(limit);
        }
        return limit -> ((CheckpointConsumer<String>) consumer).receive(limit);
    }

    private void acknowledge(JsonNode request, ObjectNode ok) throws Exception {
        Object consumer = things.get(request.get("consumer").asText());
        MessageId id = ids.get(request.get("message").asText());
        Transaction transaction = request.has("transaction") ? thing(request, "transaction") : null;
        if (consumer instanceof StreamConsumer<?> stream) {
            if (transaction == null) {
                stream.acknowledgeCumulative(id);
            } else {
                stream.acknowledgeCumulative(id, transaction);
            }
        } else if (transaction == null) {
            ((QueueConsumer<?>) consumer).acknowledge(id);
        } else {
            ((QueueConsumer<?>) consumer).acknowledge(id, transaction);
        }
    }

    private static Map<String, String> properties(JsonNode request) {
        Map<String, String> found = new HashMap<>();
        request.get("properties").fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    /** Keeps an id, because a stream consumer accepts only the ids that it delivered. */
    private String known(MessageId id) {
        String text = Integer.toHexString(System.identityHashCode(id)) + "-" + ids.size();
        ids.put(text, id);
        return text;
    }

    private PulsarClient client(JsonNode request) {
        return thing(request, "client");
    }

    private void keep(JsonNode request, Object thing) {
        things.put(request.get("as").asText(), thing);
    }

    @SuppressWarnings("unchecked")
    private <T> T thing(JsonNode request, String field) {
        return (T) things.get(request.get(field).asText());
    }

    private void answer(JsonNode request) {
        ObjectNode line = JSON.createObjectNode();
        line.set("id", request.get("id"));
        String name = request.get("do").asText();
        Operation operation = operations.get(name);
        if (name.equals("hello")) {
            ObjectNode ok = line.putObject("ok").put("protocol", 2).put("client", "Pulsar-Java-V5");
            ok.put("version", String.valueOf(PulsarClient.class.getPackage().getImplementationVersion()));
            ok.putArray("topics").add("scalable");
            ArrayNode told = ok.putArray("operations");
            operations.keySet().forEach(told::add);
        } else if (operation == null) {
            line.put("unsupported", "no operation " + name);
        } else {
            ObjectNode ok = JSON.createObjectNode();
            try {
                operation.run(request, ok);
                line.set("ok", ok);
            } catch (Throwable error) {
                line.putObject("error").put("kind", kind(error)).put("text", String.valueOf(error));
            }
        }
        synchronized (out) {
            out.println(line);
        }
    }

    private static String kind(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            String found = KINDS.get(each.getClass().getSimpleName());
            if (found != null) {
                return found;
            }
        }
        return "Other";
    }

    public static void main(String[] arguments) throws Exception {
        Adapter adapter = new Adapter(new PrintStream(System.out, true, StandardCharsets.UTF_8));
        System.setOut(System.err);
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            workers.submit(() -> adapter.answer(request));
        }
        System.exit(0);
    }
}

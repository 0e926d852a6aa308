package pulsarium;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.ConsumerCryptoFailureAction;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;
import pulsarium.Adapter.Lack;
import pulsarium.Adapter.Operation;

/** The operations of the kit's protocol, with what they opened. */
final class Operations {
    static final Gson GSON = new Gson();
    private static final int OPERATION_SECONDS = 15;
    private static final int DISCOVERY_SECONDS = 5; // how often a client looks for new partitions and topics
    private static final int CLOSE_MILLISECONDS = 300;
    private static final Map<String, String> ACCESS = Map.of("shared", "Shared", "exclusive", "Exclusive",
            "exclusive-with-fencing", "ExclusiveWithFencing", "wait-for-exclusive", "WaitForExclusive");
    private static final Map<String, SubscriptionInitialPosition> STARTS = Map.of(
            "earliest", SubscriptionInitialPosition.Earliest, "latest", SubscriptionInitialPosition.Latest);

    /** A client. Transactions get another one, because a client with transactions opens only beside a coordinator. */
    private static final class Client implements AutoCloseable {
        private final ClientBuilder builder;
        private final PulsarClient plain;
        private PulsarClient transactional;

        Client(ClientBuilder builder) throws PulsarClientException {
            this.builder = builder;
            plain = builder.build();
        }

        synchronized PulsarClient transactional() throws PulsarClientException {
            if (transactional == null) {
                transactional = builder.clone().enableTransaction(true).build();
            }
            return transactional;
        }

        /** Closes what the client has open. The ends of its threads take seconds more, which need no patience. */
        @Override
        public synchronized void close() throws Exception {
            List<CompletableFuture<Void>> closing = new ArrayList<>(List.of(plain.closeAsync()));
            if (transactional != null) {
                closing.add(transactional.closeAsync());
            }
            for (CompletableFuture<Void> each : closing) {
                try {
                    each.get(CLOSE_MILLISECONDS, TimeUnit.MILLISECONDS);
                } catch (TimeoutException late) {
                    continue;
                }
            }
        }
    }

    /** A producer, and the schema of its values. */
    private record Publisher(Producer<Object> producer, Codec codec) implements AutoCloseable {
        @Override
        public void close() throws PulsarClientException {
            producer.close();
        }
    }

    private final Map<String, AutoCloseable> things = new ConcurrentHashMap<>();
    private final Map<String, Transaction> transactions = new ConcurrentHashMap<>();
    /** Messages and their ids by the names that the kit knows. */
    private final Map<String, Object> known = new ConcurrentHashMap<>(
            Map.of("earliest", MessageId.earliest, "latest", MessageId.latest));

    private final AtomicLong numbers = new AtomicLong();

    /** Returns the operations by name. */
    static Map<String, Operation> all() {
        Operations our = new Operations();
        Map<String, Operation> all = new TreeMap<>();
        all.put("open", our::open);
        all.put("close", our::close);
        all.put("producer", our::producer);
        all.put("send", our::send);
        all.put("flush", (r, ok) -> our.publisher(r).producer().flush());
        all.put("last-sequence", (r, ok) ->
                ok.addProperty("sequence", our.publisher(r).producer().getLastSequenceId()));
        all.put("consumer", our::consumer);
        all.put("reader", our::reader);
        all.put("receive", our::receive);
        all.put("receive-batch", (r, ok) -> {
            Source source = our.source(r, "consumer");
            List<Message<Object>> got = new ArrayList<>();
            source.consumer().batchReceive().forEach(got::add);
            ok.add("messages", our.told(got, source.codec()));
        });
        all.put("acknowledge", our::acknowledge);
        all.put("acknowledge-cumulative",
                (r, ok) -> our.source(r, "consumer").consumer().acknowledgeCumulative(our.id(r.text("message"))));
        all.put("negative-acknowledge",
                (r, ok) -> our.source(r, "consumer").consumer().negativeAcknowledge(our.id(r.text("message"))));
        all.put("redeliver", (r, ok) -> our.source(r, "consumer").consumer().redeliverUnacknowledgedMessages());
        all.put("reconsume-later", (r, ok) -> our.source(r, "consumer").consumer().reconsumeLater(
                (Message<?>) our.known.get(r.text("message")), r.number("delay"), TimeUnit.MILLISECONDS));
        all.put("seek", our::seek);
        all.put("unsubscribe", (r, ok) -> our.source(r, "consumer").consumer().unsubscribe());
        all.put("last-message-id",
                (r, ok) -> ok.add("place", Source.place(our.source(r, "consumer").lastMessageId())));
        all.put("has-message",
                (r, ok) -> ok.addProperty("available", our.source(r, "reader").reader().hasMessageAvailable()));
        all.put("table-view", (r, ok) -> our.keep(r,
                our.client(r).newTableViewBuilder(Schema.BYTES).topic(r.text("topic")).create()));
        all.put("table", our::table);
        all.put("partitions", (r, ok) -> ok.add("topics",
                GSON.toJsonTree(our.client(r).getPartitionsForTopic(r.text("topic")).get())));
        all.put("transaction", (r, ok) -> our.transactions.put(r.text("as"),
                our.<Client>thing(r.text("client")).transactional().newTransaction()
                        .withTransactionTimeout(1, TimeUnit.MINUTES).build().get()));
        all.put("commit", (r, ok) -> our.transaction(r).commit().get());
        all.put("abort", (r, ok) -> our.transaction(r).abort().get());
        return all;
    }

    private void open(Request request, JsonObject ok) throws Exception {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(request.text("url"))
                .operationTimeout(OPERATION_SECONDS, TimeUnit.SECONDS);
        request.maybe("token", token -> builder.authentication(AuthenticationFactory.token(token.getAsString())));
        request.maybe("trust", path ->
                builder.tlsTrustCertsFilePath(path.getAsString()).enableTlsHostnameVerification(true));
        keep(request, new Client(builder));
    }

    private void close(Request request, JsonObject ok) throws Exception {
        thing(request.text("handle")).close();
    }

    private void producer(Request request, JsonObject ok) throws Exception {
        Codec codec = Codec.of(request);
        ProducerBuilder<Object> builder = client(request).newProducer(codec.schema()).topic(request.text("topic"))
                .enableBatching(request.has("batch")).autoUpdatePartitionsInterval(DISCOVERY_SECONDS, TimeUnit.SECONDS);
        request.maybe("batch", count ->
                builder.batchingMaxMessages(count.getAsInt()).batchingMaxPublishDelay(1, TimeUnit.MINUTES));
        request.maybe("name", name -> builder.producerName(name.getAsString()));
        request.maybe("access", mode -> builder.accessMode(accessMode(mode.getAsString())));
        request.maybe("compression", type -> builder.compressionType(CompressionType.valueOf(type.getAsString())));
        builder.enableChunking(request.flag("chunk"));
        if (request.has("encrypt")) {
            Request key = request.object("encrypt");
            builder.addEncryptionKey(key.text("name")).cryptoKeyReader(new KeyFile(key.text("public")));
        }
        keep(request, new Publisher(builder.create(), codec));
    }

    private static ProducerAccessMode accessMode(String name) {
        return Arrays.stream(ProducerAccessMode.values()).filter(each -> each.name().equals(ACCESS.get(name)))
                .findAny().orElseThrow(() -> new Lack("no access mode " + name));
    }

    private void send(Request request, JsonObject ok) throws Exception {
        Publisher to = publisher(request);
        Transaction transaction = request.has("transaction") ? transaction(request) : null;
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (Request each : request.objects("messages")) {
            TypedMessageBuilder<Object> message = transaction == null
                    ? to.producer().newMessage() : to.producer().newMessage(transaction);
            String value = each.has("value") ? each.text("value") : "";
            message.value(each.flag("null") ? null : to.codec().encoded(value));
            each.maybe("key", key -> message.key(key.getAsString()));
            each.maybe("ordering-key", key -> message.orderingKey(key.getAsString().getBytes(StandardCharsets.UTF_8)));
            if (each.has("properties")) {
                message.properties(each.texts("properties"));
            }
            each.maybe("event-time", time -> message.eventTime(time.getAsLong()));
            each.maybe("delay", delay -> message.deliverAfter(delay.getAsLong(), TimeUnit.MILLISECONDS));
            each.maybe("sequence", number -> message.sequenceId(number.getAsLong()));
            each.allRead();
            sent.add(message.sendAsync());
        }
        to.producer().flushAsync(); // its error is an error of a message too
        JsonArray ids = new JsonArray();
        for (CompletableFuture<MessageId> each : sent) {
            ids.add(name(each.get()));
        }
        ok.add("ids", ids);
    }

    private void consumer(Request request, JsonObject ok) throws Exception {
        Codec codec = Codec.of(request);
        ConsumerBuilder<Object> builder = client(request).newConsumer(codec.schema())
                .subscriptionName(request.text("subscription"))
                .subscriptionType(SubscriptionType.valueOf(request.text("type")))
                .subscriptionInitialPosition(STARTS.get(request.text("start")))
                .autoUpdatePartitionsInterval(DISCOVERY_SECONDS, TimeUnit.SECONDS)
                .patternAutoDiscoveryPeriod(DISCOVERY_SECONDS, TimeUnit.SECONDS)
                .negativeAckRedeliveryDelay(request.has("nack-delay") ? request.number("nack-delay") : 100,
                        TimeUnit.MILLISECONDS);
        request.maybe("topics", topics ->
                topics.getAsJsonArray().forEach(each -> builder.topic(each.getAsString())));
        request.maybe("pattern", pattern -> builder.topicsPattern(pattern.getAsString()));
        request.maybe("name", name -> builder.consumerName(name.getAsString()));
        request.maybe("compacted", value -> builder.readCompacted(value.getAsBoolean()));
        request.maybe("queue", size -> builder.receiverQueueSize(size.getAsInt()));
        request.maybe("decrypt", path -> builder.cryptoKeyReader(new KeyFile(path.getAsString())));
        request.maybe("crypto-failure", action -> builder.cryptoFailureAction(failureAction(action)));
        request.maybe("ack-timeout", time -> builder.ackTimeout(time.getAsLong(), TimeUnit.MILLISECONDS));
        request.maybe("retry", value -> builder.enableRetry(value.getAsBoolean()));
        request.maybe("batch-index", value -> builder.enableBatchIndexAcknowledgment(value.getAsBoolean()));
        request.maybe("receipt", value -> builder.isAckReceiptEnabled(value.getAsBoolean()));
        request.maybe("priority", level -> builder.priorityLevel(level.getAsInt()));
        request.maybe("hash-ranges", ranges -> builder.keySharedPolicy(sticky(ranges.getAsJsonArray())));
        if (request.has("dead-letter")) {
            Request policy = request.object("dead-letter");
            DeadLetterPolicy.DeadLetterPolicyBuilder letters =
                    DeadLetterPolicy.builder().maxRedeliverCount(policy.number("max"));
            policy.maybe("topic", topic -> letters.deadLetterTopic(topic.getAsString()));
            builder.deadLetterPolicy(letters.build());
        }
        if (request.has("batch-receive")) {
            Request limits = request.object("batch-receive");
            int milliseconds = (int) (limits.get("seconds").getAsDouble() * 1000);
            builder.batchReceivePolicy(BatchReceivePolicy.builder().maxNumMessages(limits.number("count"))
                    .maxNumBytes(-1).timeout(milliseconds, TimeUnit.MILLISECONDS).build());
        }
        keep(request, new Source(builder.subscribe(), null, codec, hasNoQueue(request)));
    }

    private static KeySharedPolicy sticky(JsonArray ranges) {
        List<Range> found = new ArrayList<>();
        for (JsonElement each : ranges) {
            JsonArray ends = each.getAsJsonArray();
            found.add(Range.of(ends.get(0).getAsInt(), ends.get(1).getAsInt()));
        }
        return KeySharedPolicy.stickyHashRange().ranges(found);
    }

    private void reader(Request request, JsonObject ok) throws Exception {
        Codec codec = Codec.of(request);
        ReaderBuilder<Object> builder = client(request).newReader(codec.schema())
                .topic(request.text("topic")).startMessageId(id(request.text("start")));
        if (request.flag("inclusive")) {
            builder.startMessageIdInclusive();
        }
        request.maybe("compacted", value -> builder.readCompacted(value.getAsBoolean()));
        request.maybe("queue", size -> builder.receiverQueueSize(size.getAsInt()));
        request.maybe("decrypt", path -> builder.cryptoKeyReader(new KeyFile(path.getAsString())));
        request.maybe("crypto-failure", action -> builder.cryptoFailureAction(failureAction(action)));
        if (hasNoQueue(request)) {
            throw new Lack("readers have a queue");
        }
        keep(request, new Source(null, builder.create(), codec, false));
    }

    private static ConsumerCryptoFailureAction failureAction(JsonElement name) {
        return ConsumerCryptoFailureAction.valueOf(name.getAsString().toUpperCase());
    }

    private static boolean hasNoQueue(Request request) {
        return request.has("queue") && request.number("queue") == 0;
    }

    private void receive(Request request, JsonObject ok) throws Exception {
        Source source = source(request, "consumer");
        int count = request.number("count");
        long end = System.nanoTime() + (long) (request.get("seconds").getAsDouble() * 1e9);
        List<Message<Object>> got = new ArrayList<>();
        while (got.size() < count) {
            Message<Object> message = source.next(end - System.nanoTime());
            if (message == null) {
                break;
            }
            got.add(message);
        }
        ok.add("messages", told(got, source.codec()));
    }

    private JsonArray told(List<Message<Object>> messages, Codec codec) {
        JsonArray told = new JsonArray();
        for (Message<Object> each : messages) {
            JsonObject message = Source.told(each, codec);
            message.addProperty("id", name(each));
            told.add(message);
        }
        return told;
    }

    private void acknowledge(Request request, JsonObject ok) throws Exception {
        Source source = source(request, "consumer");
        MessageId id = id(request.text("message"));
        if (request.has("transaction")) {
            source.consumer().acknowledgeAsync(id, transaction(request)).get();
        } else {
            source.consumer().acknowledge(id);
        }
    }

    private void seek(Request request, JsonObject ok) throws Exception {
        Source source = source(request, "consumer");
        if (request.has("time")) {
            source.seek(request.get("time").getAsLong());
        } else {
            source.seek(id(request.text("start")));
        }
    }

    private void table(Request request, JsonObject ok) throws Exception {
        TableView<byte[]> view = thing(request.text("view"));
        JsonObject entries = new JsonObject();
        view.forEach((key, value) -> entries.addProperty(key, new String(value, StandardCharsets.UTF_8)));
        ok.add("entries", entries);
    }

    // what the operations share

    private String name(Object messageOrId) {
        String name = String.valueOf(numbers.incrementAndGet());
        known.put(name, messageOrId);
        return name;
    }

    private MessageId id(String name) {
        Object found = known.get(name);
        return found instanceof Message<?> message ? message.getMessageId() : (MessageId) found;
    }

    private void keep(Request request, AutoCloseable thing) {
        things.put(request.text("as"), thing);
    }

    @SuppressWarnings("unchecked")
    private <T extends AutoCloseable> T thing(String handle) throws PulsarClientException {
        AutoCloseable found = things.get(handle);
        if (found == null) {
            throw new PulsarClientException.AlreadyClosedException("nothing is open as " + handle);
        }
        return (T) found;
    }

    private PulsarClient client(Request request) throws PulsarClientException {
        return this.<Client>thing(request.text("client")).plain;
    }

    private Publisher publisher(Request request) throws PulsarClientException {
        return thing(request.text("producer"));
    }

    private Source source(Request request, String field) throws PulsarClientException {
        return thing(request.text(field));
    }

    private Transaction transaction(Request request) throws PulsarClientException {
        Transaction found = transactions.get(request.text("transaction"));
        if (found == null) {
            throw new PulsarClientException.AlreadyClosedException("no transaction " + request.text("transaction"));
        }
        return found;
    }
}

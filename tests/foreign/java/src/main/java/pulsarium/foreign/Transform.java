package pulsarium.foreign;

import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/**
 * A consume-transform-produce loop under transactions: each takes some numbers of the input, sends them to both outputs
 * and acknowledges them. Whatever fails is aborted and its numbers asked for again, so each is in both outputs once.
 *
 * <p>It runs beside the lines of the test, which says "start", "commit", "progress", "drain" and "end". The namespace
 * deduplicates: without that, what a producer sends again after a reconnect is twice in one transaction.
 */
final class Transform {
    private static final int WORKERS = 2;
    private static final int AHEAD = 60;
    private static final int LIMIT_MS = 1500;
    private static Transform running;

    private final Context context;
    private final PulsarClient client;
    private final Producer<byte[]> input;
    private final List<Producer<byte[]>> outputs;
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicInteger begun = new AtomicInteger();
    private final AtomicInteger committed = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private final Set<String> seen = ConcurrentHashMap.newKeySet();
    private volatile boolean feeding = true;
    private volatile boolean working = true;
    private volatile int sent;

    static void register(Map<String, Scenario> all) {
        all.put("transform", Transform::run);
    }

    private static void run(Context context) throws Exception {
        switch (context.text("action")) {
            case "start" -> running = new Transform(context);
            case "commit" -> Check.that(await(running.committed, context), "no transaction committed");
            case "progress" -> await(running.begun, context);
            case "drain" -> running.drain(context.told());
            case "end" -> running.end();
            default -> throw new IllegalArgumentException(context.text("action"));
        }
    }

    private Transform(Context context) throws Exception {
        this.context = context;
        client = opened(() -> PulsarClient.builder().serviceUrl(context.serviceUrl()).enableTransaction(true)
                .startingBackoffInterval(50, TimeUnit.MILLISECONDS).maxBackoffInterval(200, TimeUnit.MILLISECONDS)
                .operationTimeout(LIMIT_MS, TimeUnit.MILLISECONDS).build());
        input = producer(context.topic());
        outputs = List.of(producer(context.topic("a")), producer(context.topic("b")));
        for (int number = 0; number < WORKERS; number++) {
            var consumer = opened(() -> client.newConsumer().topic(context.topic()).subscriptionName("s")
                    .subscriptionType(SubscriptionType.valueOf(context.text("subscription")))
                    .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).receiverQueueSize(20).subscribe());
            var chance = new Random(number);
            start(() -> work(consumer, chance));
        }
        start(this::feed);
    }

    /** Without a time-out, which transactions ask for: what was sent is sent again until there is a receipt. */
    private Producer<byte[]> producer(String topic) throws Exception {
        return opened(() -> client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS).enableBatching(true)
                .batchingMaxPublishDelay(1, TimeUnit.MILLISECONDS).blockIfQueueFull(true).create());
    }

    /** Tries again: the client's time-out is that of transactions, and a busy machine may take longer to open something. */
    private static <T> T opened(Callable<T> open) throws Exception {
        var end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Check.SECONDS);
        while (true) {
            try {
                return open.call();
            } catch (PulsarClientException late) {
                Check.that(System.nanoTime() < end, "not opened in time: " + late);
            }
        }
    }

    private void start(Scenario.Part part) {
        var thread = new Thread(() -> {
            try {
                part.run();
            } catch (Exception failure) {
                failure.printStackTrace();
            }
        });
        thread.setDaemon(true);
        thread.start();
        threads.add(thread);
    }

    private void feed() throws Exception {
        while (feeding) {
            if (sent - seen.size() < AHEAD) {
                input.sendAsync(Check.bytes(Integer.toString(sent)));
                sent++;
            } else {
                TimeUnit.MILLISECONDS.sleep(1);
            }
        }
    }

    private void work(Consumer<byte[]> consumer, Random chance) throws Exception {
        while (working) {
            var first = consumer.receive(100, TimeUnit.MILLISECONDS);
            if (first == null) {
                continue;
            }
            var messages = new ArrayList<>(List.of(first));
            for (int more = chance.nextInt(4); more > 0; more--) {
                var message = consumer.receive(1, TimeUnit.MILLISECONDS);
                if (message != null) {
                    messages.add(message);
                }
            }
            transact(consumer, messages, chance.nextInt(10) == 0);
        }
        consumer.close();
    }

    private void transact(Consumer<byte[]> consumer, List<Message<byte[]>> messages, boolean change) {
        begun.incrementAndGet();
        var ends = false;
        try {
            var transaction = soon(client.newTransaction()
                    .withTransactionTimeout(context.number("timeout"), TimeUnit.MILLISECONDS).build());
            try {
                var parts = new ArrayList<CompletableFuture<?>>();
                for (var message : messages) {
                    seen.add(Check.text(message));
                    for (var output : outputs) {
                        parts.add(output.newMessage(transaction).value(message.getData()).sendAsync());
                    }
                    parts.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
                }
                soon(CompletableFuture.allOf(parts.toArray(new CompletableFuture<?>[0])));
                if (!change) {
                    soon(transaction.commit());
                    ends = true;
                }
            } finally {
                if (!ends) {
                    soon(transaction.abort());
                }
            }
        } catch (Exception failure) {
            // Perhaps it is committed nevertheless: then its numbers do not come again.
            failed.incrementAndGet();
            System.err.println("transaction: " + failure);
        }
        if (ends) {
            committed.incrementAndGet();
        } else {
            messages.forEach(consumer::negativeAcknowledge);
        }
    }

    private static <T> T soon(CompletableFuture<T> future) throws Exception {
        return future.get(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** Until so many transactions more were counted, or some time has passed: whether they were. */
    private static boolean await(AtomicInteger counter, Context asked) throws Exception {
        int wanted = counter.get() + asked.number("count");
        var end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(asked.number("limit"));
        while (counter.get() < wanted && System.nanoTime() < end) {
            TimeUnit.MILLISECONDS.sleep(1);
        }
        return counter.get() >= wanted;
    }

    private void tell(JsonObject told) {
        told.addProperty("sent", sent);
        told.addProperty("begun", begun.get());
        told.addProperty("committed", committed.get());
        told.addProperty("failed", failed.get());
    }

    /** No more input; what there is is stored. */
    private void drain(JsonObject told) throws Exception {
        feeding = false;
        threads.get(WORKERS).join();
        Check.get(input.flushAsync());
        tell(told);
    }

    private void end() throws Exception {
        working = false;
        for (var thread : threads) {
            thread.join();
        }
        client.closeAsync();
    }
}

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;

/**
 * Number the entries of a log. One writer leads; the other fences it and takes over when the log does not grow.
 *
 * <p>The bug: a fenced writer opens its producer again, and goes on from its own count.
 */
class IgnoredFencing {
    static final int ENTRIES = 8;
    static final int PATIENCE_MS = 300;
    static final int SECONDS = 60;

    static class Writer {
        final String name;
        final PulsarClient client;
        Producer<String> producer; // null in a writer that waits
        CompletableFuture<MessageId> sent;
        int next;

        Writer(String name, PulsarClient client) {
            this.name = name;
            this.client = client;
        }

        void lead() throws Exception {
            open();
            next = Runs.again(() -> entries(client)).size();
        }

        void open() throws Exception {
            producer = Runs.again(() -> client.newProducer(Schema.STRING).topic("log").enableBatching(false)
                    .accessMode(ProducerAccessMode.ExclusiveWithFencing).sendTimeout(2, TimeUnit.SECONDS).create());
        }

        boolean isWriting() {
            return producer != null && next < ENTRIES;
        }

        void send() {
            sent = producer.sendAsync(next + " " + name);
        }

        /** Write the next entry, or look for the receipt of the last one. Return whether the log has grown. */
        boolean write(boolean mended) throws Exception {
            if (sent == null && next < ENTRIES) send();
            if (sent == null || !sent.isDone()) return false;
            boolean fenced = sent.isCompletedExceptionally();
            sent = null;
            if (!fenced) {
                next++;
            } else if (mended) {
                producer = null; // the other writer leads now, and counts on from the log
            } else {
                open();
                send();
            }
            return !fenced;
        }
    }

    static void write(Runs.Clients clients, boolean mended) throws Exception {
        var writers = List.of(new Writer("A", clients.open()), new Writer("B", clients.open()));
        Runs.again(() -> { // without a subscription, the broker may delete the log
            writers.get(0).client.newConsumer().topic("log").subscriptionName("archive").subscribe().close();
            return null;
        });
        long grown = 0;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (writers.stream().noneMatch(each -> each.next == ENTRIES) || writers.stream().anyMatch(Writer::isWriting)) {
            if (System.nanoTime() > end) throw new Runs.Broken("the log was not complete in " + SECONDS + " seconds");
            for (var writer : writers) {
                boolean idle = System.nanoTime() - grown > TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
                if (writer.producer == null && idle) writer.lead();
                else if (writer.producer == null || !writer.write(mended)) continue;
                grown = System.nanoTime();
            }
            Thread.sleep(1);
        }
        Runs.again(() -> entries(writers.get(0).client));
    }

    /** Return the writer of each entry. An entry that its writer sent again after a lost receipt counts once. */
    static Map<String, String> entries(PulsarClient client) throws Exception {
        Map<String, String> writers = new HashMap<>();
        try (var reader = client.newReader(Schema.STRING).topic("log").startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                String[] entry = reader.readNext().getValue().split(" ");
                String other = writers.put(entry[0], entry[1]);
                if (other != null && !other.equals(entry[1]))
                    throw new Runs.Broken("entry " + entry[0] + " was written by " + other + " and by " + entry[1]);
            }
        }
        return writers;
    }

    public static void main(String[] args) throws Exception {
        Runs.main(args, IgnoredFencing::write);
    }
}

package pulsarium.matrix;

import static pulsarium.matrix.Check.consume;
import static pulsarium.matrix.Check.equal;
import static pulsarium.matrix.Check.nothingMore;
import static pulsarium.matrix.Check.receive;
import static pulsarium.matrix.Check.send;
import static pulsarium.matrix.Check.text;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import pulsarium.matrix.Main.Scenario;

/** Scenarios of transactions: publishing and acknowledging. */
final class Transactions {
    private Transactions() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("transactions", Transactions::publish);
        all.put("transaction-ack", Transactions::acknowledge);
    }

    private static PulsarClient client(Cell cell) throws Exception {
        return cell.open(Cell.builder(cell.text("service_url")).enableTransaction(true));
    }

    private static Transaction begin(PulsarClient client) throws Exception {
        return get(client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build());
    }

    private static void end(Transaction transaction, boolean commits) throws Exception {
        get(commits ? transaction.commit() : transaction.abort());
    }

    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(Check.SECONDS, TimeUnit.SECONDS);
    }

    private static void publish(Cell cell) throws Exception {
        var client = client(cell);
        var consumer = cell.consuming(client, SubscriptionType.Exclusive).subscribe();
        var producer = client.newProducer().topic(cell.topic()).enableBatching(false).create();
        for (var text : List.of("dropped", "kept")) {
            var transaction = begin(client);
            producer.newMessage(transaction).value(Check.bytes(text)).send();
            end(transaction, text.equals("kept"));
        }
        equal(consume(consumer, 1), List.of("kept"));
        nothingMore(consumer);
    }

    private static void acknowledge(Cell cell) throws Exception {
        var client = client(cell);
        var consumer = cell.consuming(client, SubscriptionType.Shared).subscribe();
        send(cell.producer(), List.of("again", "done"));
        for (var message : receive(consumer, 2)) {
            var transaction = begin(client);
            get(consumer.acknowledgeAsync(message.getMessageId(), transaction));
            end(transaction, text(message).equals("done"));
        }
        equal(consume(consumer, 1), List.of("again"));
        nothingMore(consumer);
    }
}

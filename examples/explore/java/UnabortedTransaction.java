import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Invoice each order in a transaction. The bug: after an error the worker does not abort the transaction. */
class UnabortedTransaction {
    static final int ORDERS = 4;

    /** A client that invoices, with the orders that it reads and the invoices that it writes. */
    record Worker(PulsarClient client, Consumer<String> orders, Producer<String> invoices) {
        static Worker open(Runs.Clients clients) throws Exception {
            var client = clients.open();
            var orders = Runs.again(() -> client.newConsumer(Schema.STRING).topic("orders").subscriptionName("invoicing")
                    .subscriptionType(SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe());
            var invoices = Runs.again(() -> client.newProducer(Schema.STRING).topic("invoices").sendTimeout(0, TimeUnit.SECONDS).create());
            return new Worker(client, orders, invoices);
        }

        Transaction begin() throws Exception {
            return client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build().get();
        }
    }

    static void invoice(Runs.Clients clients, boolean mended) throws Exception {
        var worker = Worker.open(clients);
        var client = clients.open();
        var booked = Runs.again(() -> client.newConsumer(Schema.STRING).topic("invoices").subscriptionName("accounting").subscribe());
        var shop = Runs.again(() -> client.newProducer(Schema.STRING).topic("orders").enableBatching(false).create());
        for (int order = 0; order < ORDERS; order++) shop.send("" + order);

        Set<String> seen = new HashSet<>();
        int seconds = mended ? 30 : 10; // without the bug a busy machine is given more time; with it each failure takes so long
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (seen.size() < ORDERS) {
            if (System.nanoTime() > end)
                throw new Runs.Broken("after " + seconds + " seconds only the invoices of these orders are visible: " + seen);
            var order = worker.orders.receive(20, TimeUnit.MILLISECONDS);
            if (order != null) {
                Transaction transaction = null;
                try {
                    transaction = worker.begin();
                    worker.invoices.newMessage(transaction).value(order.getValue()).send();
                    worker.orders.acknowledgeAsync(order.getMessageId(), transaction).get();
                    transaction.commit().get();
                } catch (PulsarClientException | ExecutionException error) {
                    if (transaction == null) { // the client may keep a dead connection to the coordinator: another client does not
                        worker.client.closeAsync();
                        worker = Worker.open(clients);
                    } else {
                        if (mended) transaction.abort().exceptionally(over -> null).get();
                        worker.orders.negativeAcknowledge(order);
                    }
                    end += TimeUnit.SECONDS.toNanos(5); // what a timeout costs
                }
            }
            for (var each = booked.receive(20, TimeUnit.MILLISECONDS); each != null; each = booked.receive(20, TimeUnit.MILLISECONDS)) {
                seen.add(each.getValue());
                booked.acknowledge(each);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Runs.main(args, UnabortedTransaction::invoice);
    }
}

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;

/** Invoice each order in a transaction. The bug: after an error the worker does not abort the transaction. */
class UnabortedTransaction {
    static final int ORDERS = 4;
    static final int SECONDS = 15;

    static void invoice(Runs.Clients clients, boolean mended) throws Exception {
        var client = clients.open();
        var orders = Runs.again(() -> client.newConsumer(Schema.STRING).topic("orders").subscriptionName("invoicing")
                .subscriptionType(SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe());
        var invoices = Runs.again(() -> client.newProducer(Schema.STRING).topic("invoices").sendTimeout(0, TimeUnit.SECONDS).create());
        var booked = Runs.again(() -> client.newConsumer(Schema.STRING).topic("invoices").subscriptionName("accounting").subscribe());
        var shop = Runs.again(() -> client.newProducer(Schema.STRING).topic("orders").enableBatching(false).create());
        for (int order = 0; order < ORDERS; order++) shop.send("" + order);

        Set<String> seen = new HashSet<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (seen.size() < ORDERS) {
            if (System.nanoTime() > end)
                throw new Runs.Broken("after " + SECONDS + " seconds only the invoices of these orders are visible: " + seen);
            var order = orders.receive(20, TimeUnit.MILLISECONDS);
            if (order != null) {
                var transaction = Runs.again(() -> client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build().get());
                try {
                    invoices.newMessage(transaction).value(order.getValue()).send();
                    orders.acknowledgeAsync(order.getMessageId(), transaction).get();
                    transaction.commit().get();
                } catch (PulsarClientException | ExecutionException error) {
                    if (mended) transaction.abort().exceptionally(over -> null).get();
                    orders.negativeAcknowledge(order);
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

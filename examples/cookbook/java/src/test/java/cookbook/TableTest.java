package cookbook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.pulsar.client.admin.LongRunningProcessStatus.Status;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import pulsarium.junit.PulsariumTest;
import pulsarium.junit.Topic;

@PulsariumTest
class TableTest {
    @Test
    void aTableHasTheNewestPriceOfEachFruit(PulsarClient client, PulsarAdmin admin, @Topic("prices") String topic)
            throws Exception {
        try (var producer = client.newProducer(Schema.STRING).topic(topic).create()) {
            producer.newMessage().key("apple").value("1.20").send();
            producer.newMessage().key("melon").value("2.50").send();
            producer.newMessage().key("apple").value("1.40").send();
        }
        admin.topics().triggerCompaction(topic);
        while (admin.topics().compactionStatus(topic).status == Status.RUNNING) {
            Thread.sleep(50);
        }
        try (var table = client.newTableView(Schema.STRING).topic(topic).create()) {
            assertEquals(2, table.size());
            assertEquals("1.40", table.get("apple"));
        }
        assertEquals(2, admin.topics().getInternalStats(topic).compactedLedger.entries);
    }
}

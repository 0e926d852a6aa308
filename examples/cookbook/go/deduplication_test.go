package cookbook_test

import (
	"slices"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

var lines = []string{"3 apples", "2 pears", "1 melon"}

// publish publishes the lines of a file. The number of the line is the sequence id.
func publish(t *testing.T, client pulsar.Client, topic string) {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "orders.csv", DisableBatching: true})
	check(t, err)
	defer producer.Close()
	for number := producer.LastSequenceID() + 1; number < int64(len(lines)); number++ {
		_, err := producer.Send(limited(t), &pulsar.ProducerMessage{Payload: []byte(lines[number]), SequenceID: &number})
		check(t, err)
	}
}

func TestASecondRunAndALostReceiptMakeNoDuplicates(t *testing.T) {
	broker := pulsarium.Start(t, "--set", "brokerDeduplicationEnabled=true")
	client := connect(t, broker)
	topic := broker.Topic("orders")

	lost := broker.Fault("close", "SEND", pulsarium.Which{"stage": "after", "skip": 1}) // the second line is stored
	publish(t, client, topic)
	publish(t, client, topic)

	if lost.Hits() != 1 {
		t.Fatal("no receipt was lost")
	}
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	check(t, err)
	var stored []string
	for reader.HasNext() {
		message, err := reader.Next(limited(t))
		check(t, err)
		stored = append(stored, string(message.Payload()))
	}
	if !slices.Equal(stored, lines) {
		t.Fatal(stored)
	}
}

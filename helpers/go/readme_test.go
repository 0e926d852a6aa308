package pulsarium_test

import (
	"context"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

func TestAnOrderIsStoredWhenItsReceiptIsLost(t *testing.T) {
	broker := pulsarium.Start(t)
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: broker.ServiceURL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := broker.Topic("orders")
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	fault := broker.Fault("close", "SEND", pulsarium.Which{"stage": "after"})
	if _, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("3 apples")}); err != nil {
		t.Fatal(err)
	}
	fault.Wait(1)
	message, err := consumer.Receive(context.Background())
	if err != nil || string(message.Payload()) != "3 apples" {
		t.Fatal(message, err)
	}
}

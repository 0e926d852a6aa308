package pulsarium_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

func TestAReminderArrivesAfterAWeek(t *testing.T) {
	broker := pulsarium.Start(t)
	producer, consumer := orders(t, broker)
	week := 7 * 24 * time.Hour
	send(t, producer, pulsar.ProducerMessage{Payload: []byte("pay"), DeliverAfter: week})
	before := broker.Clock.Now()
	broker.Clock.Advance(week + time.Minute)
	if passed := broker.Clock.Now().Sub(before); passed < week {
		t.Fatalf("the clock advanced by %s only", passed)
	}
	expect(t, consumer, "pay")
}

func TestEachTestHasANamespaceOfItsOwn(t *testing.T) {
	first, second := pulsarium.Start(t), pulsarium.Start(t)
	if first.AdminURL != second.AdminURL || first.Topic("orders") == second.Topic("orders") {
		t.Fatal(first, second)
	}
	fault := first.Fault("drop", "SEND")
	producer, consumer := orders(t, second)
	send(t, producer, pulsar.ProducerMessage{Payload: []byte("three apples")})
	expect(t, consumer, "three apples")
	if hits := fault.Hits(); hits != 0 {
		t.Fatalf("the fault of another namespace acted %d times", hits)
	}
}

func TestThisProcessDies(t *testing.T) {
	if os.Getenv("PULSARIUM_TEST_DIES") == "" {
		t.Skip("PULSARIUM_TEST_DIES is not set")
	}
	pulsarium.Start(t).Fault("drop", "SEND")
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.Kill()
	select {}
}

func orders(t *testing.T, broker *pulsarium.Broker) (pulsar.Producer, pulsar.Consumer) {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: broker.ServiceURL})
	check(t, err)
	t.Cleanup(client.Close)
	topic := broker.Topic("orders")
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "billing", Type: pulsar.Shared, // only a shared subscription delays messages
	})
	check(t, err)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	check(t, err)
	return producer, consumer
}

func send(t *testing.T, producer pulsar.Producer, message pulsar.ProducerMessage) {
	t.Helper()
	_, err := producer.Send(limited(t), &message)
	check(t, err)
}

func expect(t *testing.T, consumer pulsar.Consumer, payload string) {
	t.Helper()
	message, err := consumer.Receive(limited(t))
	check(t, err)
	if string(message.Payload()) != payload {
		t.Fatalf("%q came, not %q", message.Payload(), payload)
	}
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

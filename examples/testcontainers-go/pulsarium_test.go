package example

import (
	"context"
	"os"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/pulsar"
)

// image is what `docker build -t pulsarium .` makes in a checkout of Pulsarium.
func image() string {
	if name := os.Getenv("PULSARIUM_IMAGE"); name != "" {
		return name
	}
	return "pulsarium"
}

func connect(t *testing.T, options client.ClientOptions, customizers ...testcontainers.ContainerCustomizer) client.Client {
	t.Helper()
	container, err := pulsar.Run(context.Background(), image(), customizers...)
	testcontainers.CleanupContainer(t, container)
	check(t, err)
	options.URL, err = container.BrokerURL(context.Background())
	check(t, err)
	connected, err := client.NewClient(options)
	check(t, err)
	t.Cleanup(connected.Close)
	return connected
}

func TestAMessageReachesItsConsumer(t *testing.T) {
	connected := connect(t, client.ClientOptions{})
	consumer, producer := orders(t, connected)
	_, err := producer.Send(context.Background(), &client.ProducerMessage{Payload: []byte("3 apples")})
	check(t, err)
	expect(t, consumer, "3 apples")
}

func TestATransactionIsSeenWhenItIsCommitted(t *testing.T) {
	connected := connect(t, client.ClientOptions{EnableTransaction: true}, pulsar.WithTransactions())
	consumer, producer := orders(t, connected)
	transaction, err := connected.NewTransaction(time.Minute)
	check(t, err)
	_, err = producer.Send(context.Background(), &client.ProducerMessage{Payload: []byte("3 apples"), Transaction: transaction})
	check(t, err)
	select {
	case <-consumer.Chan():
		t.Fatal("a message of an open transaction came")
	case <-time.After(200 * time.Millisecond):
	}
	check(t, transaction.Commit(context.Background()))
	expect(t, consumer, "3 apples")
}

func orders(t *testing.T, connected client.Client) (client.Consumer, client.Producer) {
	t.Helper()
	consumer, err := connected.Subscribe(client.ConsumerOptions{Topic: "orders", SubscriptionName: "billing"})
	check(t, err)
	t.Cleanup(consumer.Close)
	producer, err := connected.CreateProducer(client.ProducerOptions{Topic: "orders"})
	check(t, err)
	t.Cleanup(producer.Close)
	return consumer, producer
}

func expect(t *testing.T, consumer client.Consumer, payload string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	message, err := consumer.Receive(ctx)
	check(t, err)
	if string(message.Payload()) != payload {
		t.Fatalf("%q came, not %q", message.Payload(), payload)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

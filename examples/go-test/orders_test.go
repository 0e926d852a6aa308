package orders

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func TestAnOrderArrives(t *testing.T) {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: os.Getenv("PULSAR_SERVICE_URL")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := "orders-" + t.Name()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("three apples")}); err != nil {
		t.Fatal(err)
	}
	message, err := consumer.Receive(ctx)
	if err != nil || string(message.Payload()) != "three apples" {
		t.Fatal(message, err)
	}
}

package main

import (
	"context"
	"fmt"

	"github.com/apache/pulsar-client-go/pulsar"
)

func main() {
	client, _ := pulsar.NewClient(pulsar.ClientOptions{URL: "pulsar://localhost:6650"})
	defer client.Close()
	consumer, _ := client.Subscribe(pulsar.ConsumerOptions{Topic: "hello-go", SubscriptionName: "readme"})
	producer, _ := client.CreateProducer(pulsar.ProducerOptions{Topic: "hello-go"})
	producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("Hello from Go")})
	message, _ := consumer.Receive(context.Background())
	fmt.Println(string(message.Payload()))
	consumer.Ack(message)
}

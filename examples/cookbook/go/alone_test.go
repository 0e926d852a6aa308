package cookbook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

func TestEachTestHasItsOwnTopicTimeAndFaults(t *testing.T) {
	for _, days := range []int{1, 7, 30} {
		t.Run(fmt.Sprint(days), func(t *testing.T) {
			t.Parallel()
			broker := pulsarium.Start(t) // the same broker in each test, and another namespace
			client := connect(t, broker)
			topic := broker.Topic("reminders")
			consumer, err := client.Subscribe(pulsar.ConsumerOptions{
				Topic: topic, SubscriptionName: "mail", Type: pulsar.Shared,
			})
			check(t, err)
			producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
			check(t, err)
			cut := broker.Fault("close", "SEND")
			wait := time.Duration(days) * 24 * time.Hour

			_, err = producer.Send(limited(t), &pulsar.ProducerMessage{Payload: []byte("pay"), DeliverAfter: wait})
			check(t, err)
			broker.Clock.Advance(wait)

			message, err := consumer.Receive(limited(t))
			check(t, err)
			if string(message.Payload()) != "pay" || cut.Hits() != 1 {
				t.Fatal(message, cut.Hits())
			}
		})
	}
}

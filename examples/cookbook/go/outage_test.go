package cookbook_test

import (
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

func TestOrdersSurviveABadNetwork(t *testing.T) {
	broker := pulsarium.Start(t)
	client := connect(t, broker)
	topic := broker.Topic("orders")
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "billing"})
	check(t, err)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	check(t, err)
	cut := broker.Fault("close", "SEND", pulsarium.Which{"count": 2}) // before the broker has the message
	action := map[string]string{"kind": "answer", "error": "ServiceNotReady"}
	refused := broker.Fault(action, "LOOKUP", pulsarium.Which{"count": 2})

	for _, order := range []string{"3 apples", "2 pears"} {
		_, err := producer.Send(limited(t), &pulsar.ProducerMessage{Payload: []byte(order)})
		check(t, err)
		message, err := consumer.Receive(limited(t))
		check(t, err)
		if string(message.Payload()) != order {
			t.Fatalf("%q came in place of %q", message.Payload(), order)
		}
	}

	cut.Wait(2)
	refused.Wait(2)
}

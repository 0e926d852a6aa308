package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// reopen closes a Shared consumer and opens it again at once, on the same connection, while negative acknowledgements
// are due and messages come in. Each time the new consumer must get every message that is not acknowledged.
func reopen(env *environment) {
	const delay = 20 * time.Millisecond
	producer := env.single()
	defer producer.Close()
	number, owed := 0, map[string]bool{}
	for round := range env.Count {
		// A small queue leaves messages in the topic, a large one takes them all into the consumer that closes.
		consumer := env.consumer(pulsar.ConsumerOptions{
			Type: pulsar.Shared, NackRedeliveryDelay: delay, ReceiverQueueSize: []int{1, 10, 1000}[round%3],
		})
		for range env.Messages {
			payload := fmt.Sprintf("%06d", number)
			number, owed[payload] = number+1, true
			producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: []byte(payload)},
				func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { must(err) })
		}
		for len(owed) > env.Messages/2 {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			message, err := consumer.Receive(ctx)
			cancel()
			if err != nil {
				failf("round %d: %d messages do not come: %v; %s", round, len(owed), err, env.state())
			}
			if rand.N(3) == 0 {
				consumer.Nack(message)
			} else {
				must(consumer.Ack(message))
				delete(owed, string(message.Payload()))
			}
		}
		time.Sleep(rand.N(2 * delay))
		consumer.Close()
	}
}

// state is what the broker knows about the subscription of a consumer that gets nothing.
func (env *environment) state() string {
	topic := env.Topic[len("persistent://"):]
	query := url.Values{"topic": {env.Topic}, "subscription": {"s"}}
	all := ""
	for _, path := range []string{"/lab/why?" + query.Encode(), "/admin/v2/persistent/" + topic + "/stats"} {
		response, err := http.Get(env.adminURL + path)
		if err != nil {
			return err.Error()
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		all += string(body) + "\n"
	}
	return all
}

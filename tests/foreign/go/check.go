package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	patience = 90 * time.Second
	// quiet is how long a consumer must stay without a message before "nothing more comes" is believed.
	quiet = 300 * time.Millisecond
)

// failure is what a scenario panics with when something did not go as it must.
type failure string

func failf(format string, values ...any) {
	panic(failure(fmt.Sprintf(format, values...)))
}

func must(err error) {
	if err != nil {
		failf("%v", err)
	}
}

func value[T any](got T, err error) T {
	must(err)
	return got
}

func equal(what string, got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		failf("%s: got %.2000v, wanted %.2000v", what, got, wanted)
	}
}

func refused(what string, err error) {
	if err == nil {
		failf("%s was not refused", what)
	}
}

func texts(prefix string, from, to int) []string {
	all := []string{}
	for number := from; number < to; number++ {
		all = append(all, fmt.Sprintf("%s%04d", prefix, number))
	}
	return all
}

func (env *environment) producer(options pulsar.ProducerOptions) pulsar.Producer {
	options.Topic = env.Topic
	return value(env.client.CreateProducer(options))
}

func (env *environment) consumer(options pulsar.ConsumerOptions) pulsar.Consumer {
	if options.Topic == "" && options.TopicsPattern == "" {
		options.Topic = env.Topic
	}
	options.SubscriptionName = "s"
	return value(env.client.Subscribe(options))
}

// single is a producer that sends each message by itself.
func (env *environment) single() pulsar.Producer {
	return env.producer(pulsar.ProducerOptions{DisableBatching: true})
}

type receipt struct {
	number int
	id     pulsar.MessageID
	err    error
}

// send publishes without waiting for each; the message ids come in order.
func send(producer pulsar.Producer, payloads []string) []pulsar.MessageID {
	receipts := make(chan receipt, len(payloads))
	for number, payload := range payloads {
		message := &pulsar.ProducerMessage{Payload: []byte(payload)}
		producer.SendAsync(context.Background(), message, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			receipts <- receipt{number, id, err}
		})
	}
	must(producer.FlushWithCtx(context.Background()))
	ids := make([]pulsar.MessageID, len(payloads))
	deadline := time.After(patience)
	for count := range payloads {
		select {
		case got := <-receipts:
			must(got.err)
			ids[got.number] = got.id
		case <-deadline:
			failf("%d of %d receipts", count, len(payloads))
		}
	}
	return ids
}

func receive(consumer pulsar.Consumer, count int) []pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	messages := []pulsar.Message{}
	for len(messages) < count {
		message, err := consumer.Receive(ctx)
		if err != nil {
			failf("%d of %d messages: %v", len(messages), count, err)
		}
		messages = append(messages, message)
	}
	return messages
}

// consume returns the texts of the next messages, each acknowledged.
func consume(consumer pulsar.Consumer, count int) []string {
	got := []string{}
	for _, message := range receive(consumer, count) {
		must(consumer.Ack(message))
		got = append(got, string(message.Payload()))
	}
	return got
}

func nothingMore(consumer pulsar.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	if message, err := consumer.Receive(ctx); err == nil {
		failf("one too many: %s %s", message.ID(), message.Payload())
	}
}

func (env *environment) createPartitioned(topic string, partitions int) {
	body := value(json.Marshal(partitions))
	url := env.adminURL + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/partitions"
	request := value(http.NewRequest(http.MethodPut, url, bytes.NewReader(body)))
	request.Header.Set("Content-Type", "application/json")
	answer := value(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		failf("PUT %s: %d %s", url, answer.StatusCode, value(io.ReadAll(answer.Body)))
	}
}

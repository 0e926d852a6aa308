package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	patience = 20 * time.Second
	// quiet is the time without a message after which no more messages are expected.
	quiet = 300 * time.Millisecond
)

func failf(format string, values ...any) {
	panic(fmt.Sprintf(format, values...))
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

func that(holds bool, what string) {
	if !holds {
		failf("%s", what)
	}
}

func equal(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		failf("got %.500v, wanted %.500v", got, wanted)
	}
}

func refused(what string, err error) {
	that(err != nil, what+" was not refused")
}

func texts(from, to int) []string {
	all := []string{}
	for number := from; number < to; number++ {
		all = append(all, fmt.Sprintf("a%04d", number))
	}
	return all
}

func (c *cell) producer(options pulsar.ProducerOptions) pulsar.Producer {
	return value(c.tryProducer(options))
}

// tryProducer makes producers of one message an entry, unless `options` say how large a batch is.
func (c *cell) tryProducer(options pulsar.ProducerOptions) (pulsar.Producer, error) {
	if options.Topic == "" {
		options.Topic = c.Topic
	}
	options.DisableBatching = options.BatchingMaxMessages == 0
	return c.client.CreateProducer(options)
}

func (c *cell) single() pulsar.Producer {
	return c.producer(pulsar.ProducerOptions{})
}

// batches makes a producer whose batches are of ten messages.
func (c *cell) batches() pulsar.Producer {
	return c.producer(pulsar.ProducerOptions{BatchingMaxMessages: 10, BatchingMaxPublishDelay: 10 * time.Second})
}

func (c *cell) consumer(options pulsar.ConsumerOptions) pulsar.Consumer {
	return value(c.tryConsumer(options))
}

func (c *cell) tryConsumer(options pulsar.ConsumerOptions) (pulsar.Consumer, error) {
	if options.Topic == "" && options.TopicsPattern == "" && options.Topics == nil {
		options.Topic = c.Topic
	}
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	return c.client.Subscribe(options)
}

func (c *cell) exclusive() pulsar.Consumer {
	return c.consumer(pulsar.ConsumerOptions{})
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
			failf("only %d of %d receipts arrived", count, len(payloads))
		}
	}
	return ids
}

// sendOne publishes one message and waits for its receipt.
func sendOne(producer pulsar.Producer, message *pulsar.ProducerMessage) {
	value(producer.Send(context.Background(), message))
}

func within(limit time.Duration, consumer pulsar.Consumer) pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if err != nil {
		return nil
	}
	return message
}

func receive(consumer pulsar.Consumer, count int) []pulsar.Message {
	messages := []pulsar.Message{}
	for len(messages) < count {
		message := within(patience, consumer)
		if message == nil {
			failf("only %d of %d messages arrived", len(messages), count)
		}
		messages = append(messages, message)
	}
	return messages
}

func text(message pulsar.Message) string {
	return string(message.Payload())
}

func textsOf(messages []pulsar.Message) []string {
	got := []string{}
	for _, message := range messages {
		got = append(got, text(message))
	}
	return got
}

// consume returns the texts of the next messages, each acknowledged.
func consume(consumer pulsar.Consumer, count int) []string {
	messages := receive(consumer, count)
	for _, message := range messages {
		must(consumer.Ack(message))
	}
	return textsOf(messages)
}

func nothingMore(consumer pulsar.Consumer) {
	if message := within(quiet, consumer); message != nil {
		failf("an unexpected message arrived: %s %.60s", message.ID(), message.Payload())
	}
}

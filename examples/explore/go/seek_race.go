package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const events = 8
const patience = 20 * time.Second // the client waits longer before each attempt to return

// rebuild sums up the events of an account, halfway from the beginning again.
//
// The bug: the next event is taken for the first one, though the seek may have failed.
func rebuild(client pulsar.Client, mended bool) error {
	subscribe := func(name string) (pulsar.Consumer, error) {
		return again(func() (pulsar.Consumer, error) {
			return client.Subscribe(pulsar.ConsumerOptions{
				Topic:                       "account",
				SubscriptionName:            name,
				SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
			})
		})
	}
	if _, err := subscribe("archive"); err != nil { // without it, the broker may delete what "sum" has acknowledged
		return err
	}
	consumer, err := subscribe("sum")
	if err != nil {
		return err
	}
	producer, err := again(func() (pulsar.Producer, error) {
		return client.CreateProducer(pulsar.ProducerOptions{Topic: "account", DisableBatching: true})
	})
	if err != nil {
		return err
	}
	for number := range events {
		payload := binary.BigEndian.AppendUint32(nil, uint32(number))
		if _, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload}); err != nil {
			return err
		}
	}

	if err := read(consumer, events/2, mended); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := consumer.SeekByTime(time.UnixMilli(0))
		if err == nil || !mended {
			break // the bug: without the error, nobody knows where the consumer is
		}
		if time.Now().After(end) {
			return err
		}
	}
	return read(consumer, events, mended)
}

// read reads the events 0 to count. A redelivered event is known already.
func read(consumer pulsar.Consumer, count uint32, mended bool) error {
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for next := uint32(0); next < count; {
		message, err := consumer.Receive(limit)
		if err != nil {
			return fmt.Errorf("event %d did not come in %v", next, patience)
		}
		event := binary.BigEndian.Uint32(message.Payload())
		if event > next && mended {
			continue // from before the seek: the broker delivers the event again
		}
		if event > next {
			return fmt.Errorf("the account lacks event %d: event %d came after the seek", next, event)
		}
		if event == next {
			next++
		}
		consumer.Ack(message)
	}
	return nil
}

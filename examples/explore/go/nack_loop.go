package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const payments = 6

// book books each payment once. The bug: a payment that is booked already is an error, and goes back to the broker for ever.
func book(client pulsar.Client, mended bool) error {
	consumer, err := again(func() (pulsar.Consumer, error) {
		return client.Subscribe(pulsar.ConsumerOptions{
			Topic:                       "payments",
			SubscriptionName:            "ledger",
			Type:                        pulsar.Shared,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
			NackRedeliveryDelay:         20 * time.Millisecond,
		})
	})
	if err != nil {
		return err
	}
	producer, err := again(func() (pulsar.Producer, error) {
		return client.CreateProducer(pulsar.ProducerOptions{Topic: "payments", DisableBatching: true})
	})
	if err != nil {
		return err
	}
	for number := range payments {
		message := pulsar.ProducerMessage{Key: fmt.Sprint(number), Payload: []byte("10")}
		if _, err := producer.Send(context.Background(), &message); err != nil {
			return err
		}
	}

	booked := map[string]bool{}
	refused := map[string]int{}
	end := time.Now().Add(time.Minute) // the client waits longer before each attempt to return
	for time.Now().Before(end) {
		quiet, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
		message, err := consumer.Receive(quiet)
		cancel()
		if err != nil && len(booked) == payments {
			return nil // every payment is booked, and none comes again
		} else if err != nil {
			continue
		}
		payment := message.Key()
		if booked[payment] && !mended {
			refused[payment]++
			if refused[payment] == 5 {
				return fmt.Errorf("payment %s came back 5 times, and was refused each time", payment)
			}
			consumer.Nack(message)
			continue
		}
		booked[payment] = true
		consumer.Ack(message)
	}
	return fmt.Errorf("%d of %d payments were booked in a minute", len(booked), payments)
}

package main

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func refusing() pulsar.ConsumerOptions {
	return pulsar.ConsumerOptions{Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond}
}

func sharedNack(c *cell) {
	consumer := c.consumer(refusing())
	send(c.single(), texts(0, 10))
	for _, message := range receive(consumer, 10) {
		if text(message) == "a0004" {
			consumer.Nack(message)
		} else {
			must(consumer.Ack(message))
		}
	}
	equal(consume(consumer, 1), []string{"a0004"})
	nothingMore(consumer)
}

func redeliveryCount(c *cell) {
	consumer := c.consumer(refusing())
	send(c.single(), []string{"again"})
	counts := []uint32{}
	for range 3 {
		message := receive(consumer, 1)[0]
		counts = append(counts, message.RedeliveryCount())
		consumer.Nack(message)
	}
	equal(counts, []uint32{0, 1, 2})
}

func cumulativeAck(c *cell) {
	consumer := c.exclusive()
	send(c.single(), texts(0, 10))
	must(consumer.AckCumulative(receive(consumer, 6)[5]))
	consumer.Close()
	again := c.exclusive()
	equal(consume(again, 4), texts(6, 10))
	nothingMore(again)
}

func batchIndexAck(c *cell) {
	options := pulsar.ConsumerOptions{Type: pulsar.Shared, EnableBatchIndexAcknowledgment: true}
	consumer := c.consumer(options)
	send(c.batches(), texts(0, 10))
	left := []string{}
	for place, message := range receive(consumer, 10) {
		if place%2 == 0 {
			must(consumer.Ack(message))
		} else {
			left = append(left, text(message))
		}
	}
	consumer.Close()
	again := c.consumer(options)
	equal(consume(again, 5), left)
	nothingMore(again)
}

func ackReceipt(c *cell) {
	consumer := c.consumer(pulsar.ConsumerOptions{AckWithResponse: true})
	send(c.single(), texts(0, 10))
	consume(consumer, 5)
	consumer.Close()
	again := c.exclusive()
	equal(consume(again, 5), texts(5, 10))
	nothingMore(again)
}

func deadLetter(c *cell) {
	dead := c.Topic + "-s-DLQ"
	letters := c.consumer(pulsar.ConsumerOptions{Topic: dead})
	options := refusing()
	options.DLQ = &pulsar.DLQPolicy{MaxDeliveries: 3, DeadLetterTopic: dead}
	consumer := c.consumer(options)
	send(c.single(), []string{"dead"})
	for range 3 {
		consumer.Nack(receive(consumer, 1)[0])
	}
	nothingMore(consumer)
	equal(consume(letters, 1), []string{"dead"})
}

func retryLetter(c *cell) {
	consumer := c.consumer(pulsar.ConsumerOptions{
		Type: pulsar.Shared, RetryEnable: true,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 5, RetryLetterTopic: c.Topic + "-s-RETRY", DeadLetterTopic: c.Topic + "-s-DLQ"},
	})
	send(c.single(), []string{"later"})
	consumer.ReconsumeLater(receive(consumer, 1)[0], 500*time.Millisecond)
	message := receive(consumer, 1)[0]
	equal(text(message)+message.Properties()["RECONSUMETIMES"], "later1")
}

func unsubscribe(c *cell) {
	consumer := c.exclusive()
	send(c.single(), texts(0, 5))
	equal(consume(consumer, 5), texts(0, 5))
	must(consumer.Unsubscribe())
	equal(consume(c.exclusive(), 5), texts(0, 5))
}

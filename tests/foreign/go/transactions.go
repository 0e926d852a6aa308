package main

import (
	"context"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// transactional has a client of its own, and it is the scenario's.
func (env *environment) transactional() {
	env.client = value(pulsar.NewClient(pulsar.ClientOptions{
		URL: env.serviceURL, EnableTransaction: true, OperationTimeout: patience, Logger: env.logger,
	}))
}

func (env *environment) begin(timeout time.Duration) pulsar.Transaction {
	return value(env.client.NewTransaction(timeout))
}

// on is a producer without batches: this client mixes transactions in them, and leaves the last one's id on all later.
func (env *environment) on(topic string) pulsar.Producer {
	return value(env.client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, SendTimeout: -1, DisableBatching: true,
	}))
}

func sendIn(producer pulsar.Producer, transaction pulsar.Transaction, payloads []string) {
	for _, payload := range payloads {
		message := &pulsar.ProducerMessage{Payload: []byte(payload), Transaction: transaction}
		value(producer.Send(context.Background(), message))
	}
}

func commit(transaction pulsar.Transaction) { must(transaction.Commit(context.Background())) }

func abort(transaction pulsar.Transaction) { must(transaction.Abort(context.Background())) }

func transactionCommit(env *environment) {
	env.transactional()
	defer env.client.Close()
	consumer, producer := env.consumer(pulsar.ConsumerOptions{}), env.on(env.Topic)
	dropped := env.begin(time.Minute)
	sendIn(producer, dropped, texts("dropped", 0, 5))
	nothingMore(consumer)
	abort(dropped)
	kept := env.begin(time.Minute)
	sendIn(producer, kept, texts("kept", 0, 5))
	nothingMore(consumer)
	commit(kept)
	equal("what is committed", consume(consumer, 5), texts("kept", 0, 5))
	nothingMore(consumer)
}

// transactionTopics: one transaction on two topics, all or nothing.
func transactionTopics(env *environment) {
	env.transactional()
	defer env.client.Close()
	topics := []string{env.Topic, env.Topic + "-other"}
	for _, prefix := range []string{"dropped", "kept"} {
		transaction := env.begin(time.Minute)
		for _, topic := range topics {
			producer := env.on(topic)
			sendIn(producer, transaction, texts(prefix, 0, 4))
			producer.Close()
		}
		if prefix == "kept" {
			commit(transaction)
		} else {
			abort(transaction)
		}
	}
	for _, topic := range topics {
		consumer := env.consumer(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		equal(topic, consume(consumer, 4), texts("kept", 0, 4))
		nothingMore(consumer)
		consumer.Close()
	}
}

// transactionAck: what was acknowledged in an aborted transaction comes again, in a committed one never.
func transactionAck(env *environment) {
	env.transactional()
	defer env.client.Close()
	consumer := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	producer := env.single()
	send(producer, texts("a", 0, 10))
	kept, dropped := env.begin(time.Minute), env.begin(time.Minute)
	for number, message := range receive(consumer, 10) {
		transaction := kept
		if number < 5 {
			transaction = dropped
		}
		must(consumer.AckWithTxn(message, transaction))
	}
	nothingMore(consumer)
	commit(kept)
	nothingMore(consumer)
	abort(dropped)
	equal("again", slices.Sorted(slices.Values(consume(consumer, 5))), texts("a", 0, 5))
	nothingMore(consumer)
}

func transactionConflict(env *environment) {
	env.transactional()
	defer env.client.Close()
	consumer := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	send(env.single(), texts("a", 0, 1))
	message := receive(consumer, 1)[0]
	first, second := env.begin(time.Minute), env.begin(time.Minute)
	must(consumer.AckWithTxn(message, first))
	refused("acknowledging in a second transaction", consumer.AckWithTxn(message, second))
	commit(first)
	nothingMore(consumer)
}

// transactionTimeout: nobody ends it, so the broker does.
func transactionTimeout(env *environment) {
	env.transactional()
	defer env.client.Close()
	consumer := env.consumer(pulsar.ConsumerOptions{Type: pulsar.Shared})
	output := env.consumer(pulsar.ConsumerOptions{Topic: env.Topic + "-out"})
	published := env.on(env.Topic + "-out")
	send(env.single(), texts("a", 0, 1))
	transaction := env.begin(10 * time.Second) // in which the next two lines are done
	sendIn(published, transaction, texts("dropped", 0, 2))
	must(consumer.AckWithTxn(receive(consumer, 1)[0], transaction))
	send(published, texts("plain", 0, 2))
	equal("behind it", consume(output, 2), texts("plain", 0, 2))
	equal("again", consume(consumer, 1), texts("a", 0, 1))
	refused("a commit", transaction.Commit(context.Background()))
	nothingMore(output)
}

// transactionEnded: a transaction that is over takes nothing more.
func transactionEnded(env *environment) {
	env.transactional()
	defer env.client.Close()
	producer := env.on(env.Topic)
	transaction := env.begin(time.Minute)
	sendIn(producer, transaction, texts("a", 0, 1))
	commit(transaction)
	refused("an abort", transaction.Abort(context.Background()))
	_, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte("b"), Transaction: transaction})
	refused("a message", err)
}

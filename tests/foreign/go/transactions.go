package main

import (
	"context"
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

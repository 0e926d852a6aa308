package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

const (
	workers = 2
	ahead   = 60
	soon    = 1500 * time.Millisecond
)

// transformer is a consume-transform-produce loop under transactions: each takes some numbers of the input, sends them
// to both outputs and acknowledges them. What fails is aborted and its numbers asked for again, so each is in both
// outputs once. It runs beside the lines of the test, which says "start", "commit", "progress", "drain" and "end". The
// namespace deduplicates: without that, what a producer sends again after a reconnect is twice in one transaction.
type transformer struct {
	client  pulsar.Client
	outputs []pulsar.Producer
	timeout time.Duration

	begun, committed, failed, sent atomic.Int64

	mutex sync.Mutex
	seen  map[string]bool

	feeding, working context.Context
	stopFeeding      context.CancelFunc
	stopWorking      context.CancelFunc
	fed, worked      sync.WaitGroup
}

var running *transformer

func transform(env *environment) {
	switch env.Action {
	case "start":
		running = newTransformer(env)
	case "commit":
		if !await(&running.committed, env) {
			failf("no %d transactions committed in %d ms", env.Count, env.Limit)
		}
	case "progress":
		await(&running.begun, env)
	case "drain":
		running.stopFeeding()
		running.fed.Wait()
		env.counts = running.counts()
	case "end":
		running.stopWorking()
		running.worked.Wait()
		running.client.Close()
	default:
		failf("no action %s", env.Action)
	}
}

type quickly struct{}

func (quickly) Next() time.Duration       { return 100 * time.Millisecond }
func (quickly) IsMaxBackoffReached() bool { return false }
func (quickly) Reset()                    {}

func newTransformer(env *environment) *transformer {
	client := opened(func() (pulsar.Client, error) {
		return pulsar.NewClient(pulsar.ClientOptions{
			URL: env.serviceURL, EnableTransaction: true, OperationTimeout: soon, ConnectionTimeout: soon, Logger: env.logger,
		})
	})
	t := &transformer{client: client, timeout: time.Duration(env.Timeout) * time.Millisecond, seen: map[string]bool{}}
	t.feeding, t.stopFeeding = context.WithCancel(context.Background())
	t.working, t.stopWorking = context.WithCancel(context.Background())
	input := t.producer(env.Topic)
	t.outputs = []pulsar.Producer{t.producer(env.Topic + "-a"), t.producer(env.Topic + "-b")}
	for number := range workers {
		consumer := opened(func() (pulsar.Consumer, error) {
			return client.Subscribe(pulsar.ConsumerOptions{
				Topic: env.Topic, SubscriptionName: "s", Type: subscriptionTypes[env.Subscription], ReceiverQueueSize: 20,
				NackRedeliveryDelay: 100 * time.Millisecond, BackOffPolicyFunc: func() backoff.Policy { return quickly{} },
			})
		})
		t.worked.Add(1)
		go t.work(consumer, rand.New(rand.NewSource(int64(number))))
	}
	t.fed.Add(1)
	go t.feed(input)
	return t
}

// producer has no time-out, which transactions ask for, and no batches, in which this client mixes transactions.
func (t *transformer) producer(topic string) pulsar.Producer {
	return opened(func() (pulsar.Producer, error) {
		return t.client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, SendTimeout: -1, DisableBatching: true,
			BackOffPolicyFunc: func() backoff.Policy { return quickly{} },
		})
	})
}

// opened tries again: the client's time-outs are those of transactions, and a busy machine may take longer to open
// something.
func opened[T any](open func() (T, error)) T {
	for end := time.Now().Add(patience); ; {
		if found, err := open(); err == nil || time.Now().After(end) {
			return value(found, err)
		}
	}
}

func (t *transformer) feed(input pulsar.Producer) {
	defer t.fed.Done()
	defer input.Close()
	var stored sync.WaitGroup
	for t.feeding.Err() == nil {
		t.mutex.Lock()
		seen := len(t.seen)
		t.mutex.Unlock()
		if t.sent.Load()-int64(seen) >= ahead {
			<-time.After(time.Millisecond)
			continue
		}
		stored.Add(1)
		message := &pulsar.ProducerMessage{Payload: []byte(strconv.FormatInt(t.sent.Load(), 10))}
		input.SendAsync(context.Background(), message, func(pulsar.MessageID, *pulsar.ProducerMessage, error) { stored.Done() })
		t.sent.Add(1)
	}
	stored.Wait()
}

func (t *transformer) work(consumer pulsar.Consumer, chance *rand.Rand) {
	defer t.worked.Done()
	defer consumer.Close()
	for t.working.Err() == nil {
		first := receiveWithin(consumer, 100*time.Millisecond)
		if first == nil {
			continue
		}
		messages := []pulsar.Message{first}
		for range chance.Intn(4) {
			if more := receiveWithin(consumer, time.Millisecond); more != nil {
				messages = append(messages, more)
			}
		}
		t.mutex.Lock()
		for _, message := range messages {
			t.seen[string(message.Payload())] = true
		}
		t.mutex.Unlock()
		t.begun.Add(1)
		err := t.transact(consumer, messages, chance.Intn(10) == 0)
		switch {
		case err == nil:
			t.committed.Add(1)
			continue
		case !errors.Is(err, errChanged):
			// Perhaps it is committed nevertheless: then its numbers do not come again.
			t.failed.Add(1)
			fmt.Fprintln(os.Stderr, "transaction:", err)
		}
		for _, message := range messages {
			consumer.Nack(message)
		}
	}
}

var errChanged = errors.New("changed its mind")

func (t *transformer) transact(consumer pulsar.Consumer, messages []pulsar.Message, change bool) error {
	transaction, err := t.client.NewTransaction(t.timeout)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := t.fill(limit, consumer, messages, transaction); err != nil {
		return errors.Join(err, transaction.Abort(limit))
	}
	if change {
		return errors.Join(errChanged, transaction.Abort(limit))
	}
	return transaction.Commit(limit)
}

// fill does all that belongs to a transaction, and waits for it: a commit does not look at what failed.
func (t *transformer) fill(
	limit context.Context, consumer pulsar.Consumer, messages []pulsar.Message, transaction pulsar.Transaction,
) error {
	receipts := make(chan error, len(messages)*len(t.outputs))
	for _, message := range messages {
		for _, output := range t.outputs {
			copied := &pulsar.ProducerMessage{Payload: message.Payload(), Transaction: transaction}
			output.SendAsync(limit, copied, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { receipts <- err })
		}
	}
	for _, message := range messages {
		if err := consumer.AckWithTxn(message, transaction); err != nil {
			return err
		}
	}
	for range cap(receipts) {
		select {
		case err := <-receipts:
			if err != nil {
				return err
			}
		case <-limit.Done():
			return limit.Err()
		}
	}
	return nil
}

func receiveWithin(consumer pulsar.Consumer, limit time.Duration) pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if err != nil {
		return nil
	}
	return message
}

// await waits until so many transactions more were counted, or some time has passed; it says whether they were.
func await(counter *atomic.Int64, env *environment) bool {
	wanted := counter.Load() + int64(env.Count)
	end := time.Now().Add(time.Duration(env.Limit) * time.Millisecond)
	for counter.Load() < wanted && time.Now().Before(end) {
		<-time.After(time.Millisecond)
	}
	return counter.Load() >= wanted
}

func (t *transformer) counts() *counts {
	return &counts{Sent: t.sent.Load(), Begun: t.begun.Load(), Committed: t.committed.Load(), Failed: t.failed.Load()}
}

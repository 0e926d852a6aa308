package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
)

var (
	types = map[string]pulsar.SubscriptionType{
		"Exclusive": pulsar.Exclusive, "Shared": pulsar.Shared, "Failover": pulsar.Failover, "Key_Shared": pulsar.KeyShared,
	}
	starts = map[string]pulsar.SubscriptionInitialPosition{
		"earliest": pulsar.SubscriptionPositionEarliest, "latest": pulsar.SubscriptionPositionLatest,
	}
	failures = map[string]int{
		"": crypto.ConsumerCryptoFailureActionFail, "fail": crypto.ConsumerCryptoFailureActionFail,
		"discard": crypto.ConsumerCryptoFailureActionDiscard, "consume": crypto.ConsumerCryptoFailureActionConsume,
	}
)

// source is a consumer or a reader.
type source struct {
	consumer pulsar.Consumer
	reader   pulsar.Reader
	schema   string
}

func (s *source) Close() {
	if s.reader != nil {
		s.reader.Close()
	} else {
		s.consumer.Close()
	}
}

func (s *source) next(ctx context.Context) (pulsar.Message, error) {
	if s.reader != nil {
		return s.reader.Next(ctx)
	}
	return s.consumer.Receive(ctx)
}

func decryption(r *request) *pulsar.MessageDecryptionInfo {
	if r.Decrypt == "" && r.CryptoFailure == "" {
		return nil
	}
	info := &pulsar.MessageDecryptionInfo{ConsumerCryptoFailureAction: choose(failures, r.CryptoFailure)}
	if r.Decrypt != "" {
		info.KeyReader = crypto.NewFileKeyReader("", r.Decrypt)
	}
	return info
}

func (a *adapter) consumer(client *client, r *request) (reply, error) {
	options := pulsar.ConsumerOptions{
		Topics: r.Topics, TopicsPattern: r.Pattern, SubscriptionName: r.Subscription, Type: choose(types, r.Type),
		SubscriptionInitialPosition: choose(starts, r.Start), Name: r.Name, Schema: schemaOf(r.Schema),
		ReadCompacted: r.Compacted, Decryption: decryption(r), RetryEnable: r.Retry,
		EnableBatchIndexAcknowledgment: r.BatchIndex, AckWithResponse: r.Receipt,
		NackRedeliveryDelay: 100 * time.Millisecond, AutoDiscoveryPeriod: discovery,
	}
	if len(r.Topics) == 1 {
		options.Topic, options.Topics = r.Topics[0], nil
	}
	if r.NackDelay != nil {
		options.NackRedeliveryDelay = time.Duration(*r.NackDelay) * time.Millisecond
	}
	if r.Queue != nil {
		options.ReceiverQueueSize, options.EnableZeroQueueConsumer = *r.Queue, *r.Queue == 0
	}
	if r.HashRanges != nil {
		policy, err := pulsar.NewKeySharedPolicySticky(slices.Concat(r.HashRanges...))
		if err != nil {
			return nil, err
		}
		options.KeySharedPolicy = policy
	}
	if r.DeadLetter != nil {
		options.DLQ = &pulsar.DLQPolicy{MaxDeliveries: r.DeadLetter.Max, DeadLetterTopic: r.DeadLetter.Topic}
		if !r.Retry { // the client counts deliveries, and the kit redeliveries; both count later ones alike
			options.DLQ.MaxDeliveries++
		}
	}
	consumer, err := client.Subscribe(options)
	if err == nil {
		a.keep(r.As, &source{consumer: consumer, schema: r.Schema})
	}
	return nil, err
}

func (a *adapter) reader(client *client, r *request) (reply, error) {
	start, _ := a.known(r.Start)
	options := pulsar.ReaderOptions{
		Topic: r.Topic, StartMessageID: start, StartMessageIDInclusive: r.Inclusive, Schema: schemaOf(r.Schema),
		ReadCompacted: r.Compacted, Decryption: decryption(r),
	}
	if r.Queue != nil {
		if *r.Queue == 0 {
			return nil, lack("readers have a queue")
		}
		options.ReceiverQueueSize = *r.Queue
	}
	reader, err := client.CreateReader(options)
	if err == nil {
		a.keep(r.As, &source{reader: reader, schema: r.Schema})
	}
	return nil, err
}

func (a *adapter) receive(from *source, r *request) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Seconds*float64(time.Second)))
	defer cancel()
	told := []reply{}
	for len(told) < r.Count {
		message, err := from.next(ctx)
		if ctx.Err() != nil && message == nil {
			break
		}
		if err != nil {
			return nil, err
		}
		each, err := a.told(message, from.schema)
		if err != nil {
			return nil, err
		}
		told = append(told, each)
	}
	return reply{"messages": told}, nil
}

func (a *adapter) acknowledge(from *source, r *request) (reply, error) {
	id, message := a.known(r.Message)
	if r.Transaction != "" {
		begun, err := find[*transaction](a, r.Transaction)
		if err != nil {
			return nil, err
		}
		return nil, from.consumer.AckWithTxn(message, begun.Transaction)
	}
	return nil, from.consumer.AckID(id)
}

func (a *adapter) acknowledgeCumulative(from *source, r *request) (reply, error) {
	id, _ := a.known(r.Message)
	return nil, from.consumer.AckIDCumulative(id)
}

func (a *adapter) negativeAcknowledge(from *source, r *request) (reply, error) {
	id, _ := a.known(r.Message)
	from.consumer.NackID(id)
	return nil, nil
}

func (a *adapter) reconsumeLater(from *source, r *request) (reply, error) {
	_, message := a.known(r.Message)
	from.consumer.ReconsumeLater(message, time.Duration(r.Delay)*time.Millisecond)
	return nil, nil
}

func (a *adapter) seek(from *source, r *request) (reply, error) {
	err := a.sought(from, r)
	if err != nil && strings.Contains(err.Error(), "for partition topic") {
		err = lack("seeks to a message need a single partition")
	}
	return nil, err
}

func (a *adapter) sought(from *source, r *request) error {
	id, _ := a.known(r.Start)
	switch {
	case r.Time != nil && from.reader != nil:
		return from.reader.SeekByTime(time.UnixMilli(*r.Time))
	case r.Time != nil:
		return from.consumer.SeekByTime(time.UnixMilli(*r.Time))
	case from.reader != nil:
		return from.reader.Seek(id)
	}
	return from.consumer.Seek(id)
}

func (a *adapter) unsubscribe(from *source, r *request) (reply, error) {
	return nil, from.consumer.Unsubscribe()
}

func (a *adapter) lastMessageID(from *source, r *request) (reply, error) {
	if from.reader != nil {
		id, err := from.reader.GetLastMessageID()
		if err != nil {
			return nil, err
		}
		return reply{"place": placeOf(id)}, nil
	}
	ids, err := from.consumer.GetLastMessageIDs()
	if err != nil {
		return nil, err
	}
	return reply{"place": placeOf(ids[0])}, nil
}

func (a *adapter) hasMessage(from *source, _ *request) (reply, error) {
	return reply{"available": from.reader.HasNext()}, nil
}

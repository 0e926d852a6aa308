package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"
)

var (
	access = map[string]pulsar.ProducerAccessMode{
		"": pulsar.ProducerAccessModeShared, "shared": pulsar.ProducerAccessModeShared,
		"exclusive":          pulsar.ProducerAccessModeExclusive,
		"wait-for-exclusive": pulsar.ProducerAccessModeWaitForExclusive,
	}
	compressions = map[string]pulsar.CompressionType{
		"": pulsar.NoCompression, "LZ4": pulsar.LZ4, "ZLIB": pulsar.ZLib, "ZSTD": pulsar.ZSTD, "SNAPPY": pulsar.SNAPPY,
	}
)

type publisher struct {
	pulsar.Producer
	schema string
}

func (a *adapter) producer(client *client, r *request) (reply, error) {
	options := pulsar.ProducerOptions{
		Topic: r.Topic, Name: r.Name, Schema: schemaOf(r.Schema), ProducerAccessMode: choose(access, r.Access),
		CompressionType: choose(compressions, r.Compression), EnableChunking: r.Chunk,
		PartitionsAutoDiscoveryInterval: discovery,
		DisableBatching:                 r.Batch == 0, BatchingMaxMessages: r.Batch, BatchingMaxPublishDelay: time.Minute,
	}
	if r.Encrypt != nil {
		options.Encryption = &pulsar.ProducerEncryptionInfo{
			KeyReader: crypto.NewFileKeyReader(r.Encrypt.Public, ""), Keys: []string{r.Encrypt.Name},
		}
	}
	producer, err := client.CreateProducer(options)
	if err == nil {
		a.keep(r.As, &publisher{producer, r.Schema})
	}
	return nil, err
}

func (a *adapter) send(producer *publisher, r *request) (reply, error) {
	ids, errs := make([]string, len(r.Messages)), make([]error, len(r.Messages))
	var in pulsar.Transaction
	if r.Transaction != "" {
		begun, err := find[*transaction](a, r.Transaction)
		if err != nil {
			return nil, err
		}
		in = begun.Transaction
	}
	var waiting sync.WaitGroup
	for number, each := range r.Messages {
		message, err := message(each, producer.schema)
		if err != nil {
			return nil, err
		}
		message.Transaction = in
		waiting.Add(1)
		producer.SendAsync(context.Background(), message, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			defer waiting.Done()
			if errs[number] = err; err == nil {
				ids[number] = a.kept(id, nil)
			}
		})
	}
	err := producer.FlushWithCtx(context.Background())
	waiting.Wait()
	return reply{"ids": ids}, errors.Join(append(errs, err)...)
}

func message(each record, schema string) (*pulsar.ProducerMessage, error) {
	message := &pulsar.ProducerMessage{
		Key: each.Key, OrderingKey: each.OrderingKey, Properties: each.Properties, SequenceID: each.Sequence,
		DeliverAfter: time.Duration(each.Delay) * time.Millisecond,
	}
	if each.EventTime != nil {
		message.EventTime = time.UnixMilli(*each.EventTime)
	}
	switch schema {
	case "":
		message.Payload = []byte(each.Value)
	case "text":
		message.Value = each.Value
	default:
		var value person
		if err := json.Unmarshal([]byte(each.Value), &value); err != nil {
			return nil, err
		}
		message.Value = value
	}
	return message, nil
}

func (a *adapter) flush(producer *publisher, r *request) (reply, error) {
	return nil, producer.FlushWithCtx(context.Background())
}

func (a *adapter) lastSequence(producer *publisher, r *request) (reply, error) {
	return reply{"sequence": producer.LastSequenceID()}, nil
}

package main

import (
	"encoding/json"
	"math/big"

	"github.com/apache/pulsar-client-go/pulsar"
)

const definition = `{"type": "record", "name": "Person", "fields": [
	{"name": "name", "type": "string"}, {"name": "age", "type": "int"}]}`

// person is the record of scenarios with schemas, as its definition says.
type person struct {
	Name string `json:"name" avro:"name"`
	Age  int    `json:"age" avro:"age"`
}

// plain is the schema of table views, which need one. The broker does not see it.
type plain struct{}

func (plain) GetSchemaInfo() *pulsar.SchemaInfo { return nil }
func (plain) Validate([]byte) error             { return nil }
func (plain) Encode(value any) ([]byte, error)  { return []byte(value.(string)), nil }

func (plain) Decode(data []byte, value any) error {
	*value.(*string) = string(data)
	return nil
}

func schemaOf(name string) pulsar.Schema {
	switch name {
	case "text":
		return pulsar.NewStringSchema(nil)
	case "json":
		return pulsar.NewJSONSchema(definition, nil)
	case "avro":
		return pulsar.NewAvroSchema(definition, nil)
	}
	return choose(map[string]pulsar.Schema{"": nil}, name)
}

// told is what a message has.
func (a *adapter) told(message pulsar.Message, schema string) (reply, error) {
	value, err := valueOf(message, schema)
	if err != nil {
		return nil, err
	}
	id := message.ID()
	told := map[string]any{
		"id": a.kept(id, message), "value": value, "topic": message.Topic(), "place": placeOf(id),
		"redeliveries": message.RedeliveryCount(), "publisher": message.ProducerName(),
	}
	if message.Key() != "" {
		told["key"] = message.Key()
	}
	if message.OrderingKey() != "" {
		told["ordering-key"] = message.OrderingKey()
	}
	if len(message.Properties()) > 0 {
		told["properties"] = message.Properties()
	}
	if time := message.EventTime().UnixMilli(); time > 0 {
		told["event-time"] = time
	}
	if index := message.Index(); index != nil {
		told["index"] = *index
	}
	if version := message.SchemaVersion(); len(version) > 0 {
		told["schema-version"] = new(big.Int).SetBytes(version)
	}
	return told, nil
}

func valueOf(message pulsar.Message, schema string) (string, error) {
	switch schema {
	case "":
		return string(message.Payload()), nil
	case "text":
		var text *string
		if err := message.GetSchemaValue(&text); err != nil {
			return "", err
		}
		return *text, nil
	}
	var value person
	if err := message.GetSchemaValue(&value); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// placeOf is ledger, entry and batch index. The client gives the index 0 to messages outside of batches too.
func placeOf(id pulsar.MessageID) []int64 {
	index := int64(id.BatchIdx())
	if index == 0 && id.BatchSize() <= 1 {
		index = -1
	}
	return []int64{id.LedgerID(), id.EntryID(), index}
}

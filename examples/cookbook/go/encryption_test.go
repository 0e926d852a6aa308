package cookbook_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/crypto"

	"github.com/OWNER/pulsarium/helpers/go"
)

func TestOnlyTheOwnerOfTheKeyReadsAnOrder(t *testing.T) {
	broker := pulsarium.Start(t)
	client := connect(t, broker)
	topic, keys := broker.Topic("orders"), keys(t)
	owner, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "billing", Decryption: &pulsar.MessageDecryptionInfo{KeyReader: keys},
	})
	check(t, err)
	stranger, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "audit",
		Decryption: &pulsar.MessageDecryptionInfo{ConsumerCryptoFailureAction: crypto.ConsumerCryptoFailureActionConsume},
	})
	check(t, err)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, Encryption: &pulsar.ProducerEncryptionInfo{KeyReader: keys, Keys: []string{"orders"}},
	})
	check(t, err)

	_, err = producer.Send(limited(t), &pulsar.ProducerMessage{Payload: []byte("3 apples")})
	check(t, err)

	message, err := owner.Receive(limited(t))
	check(t, err)
	if string(message.Payload()) != "3 apples" {
		t.Fatalf("the owner reads %q", message.Payload())
	}
	message, err = stranger.Receive(limited(t))
	check(t, err)
	if bytes.Contains(message.Payload(), []byte("apples")) {
		t.Fatalf("a stranger reads %q", message.Payload())
	}
}

func keys(t *testing.T) crypto.KeyReader {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	check(t, err)
	folder := t.TempDir()
	names := []string{filepath.Join(folder, "public.pem"), filepath.Join(folder, "private.pem")}
	for i, block := range []*pem.Block{
		{Type: "PUBLIC KEY", Bytes: public}, {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
	} {
		check(t, os.WriteFile(names[i], pem.EncodeToMemory(block), 0o600))
	}
	return crypto.NewFileKeyReader(names[0], names[1])
}

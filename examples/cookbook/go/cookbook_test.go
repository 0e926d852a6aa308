package cookbook_test

import (
	"context"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/OWNER/pulsarium/helpers/go"
)

// connect connects a client that ends with the test.
func connect(t *testing.T, broker *pulsarium.Broker) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: broker.ServiceURL})
	check(t, err)
	t.Cleanup(client.Close)
	return client
}

// limited returns a context that ends after 30 seconds.
func limited(t *testing.T) context.Context {
	t.Helper()
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return limit
}

// check ends the test with an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

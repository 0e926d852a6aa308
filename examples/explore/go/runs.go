// Applications with a bug, for `pulsarium explore`: nack-loop and seek-race.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

type application func(client pulsar.Client, mended bool) error

var applications = map[string]application{"nack-loop": book, "seek-race": rebuild}

func main() {
	app, known := applications[os.Args[1]]
	if !known {
		fmt.Fprintln(os.Stderr, "there are nack-loop and seek-race")
		os.Exit(2)
	}
	mended := slices.Contains(os.Args, "--mended")
	if !slices.Contains(os.Args, "--persistent") {
		if err := run(app, os.Getenv("PULSAR_SERVICE_URL"), mended); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var broker struct{ ServiceURL string }
		err := json.Unmarshal(lines.Bytes(), &broker)
		if err == nil {
			err = run(app, broker.ServiceURL, mended)
		}
		if err == nil {
			fmt.Println("ok")
		} else {
			fmt.Println("failed", strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}

// again repeats a call that may fail while the broker is not ready.
func again[T any](call func() (T, error)) (T, error) {
	for range 9 {
		if result, err := call(); err == nil {
			return result, nil
		}
	}
	return call()
}

// run runs the application once, and returns why it failed.
func run(app application, url string, mended bool) error {
	logger := logrus.New()
	logger.SetLevel(logrus.ErrorLevel)
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: url, Logger: log.NewLoggerWithLogrus(logger)})
	if err != nil {
		return err
	}
	defer client.Close()
	return app(client, mended)
}

package pulsarium

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const startLimit = 60 * time.Second

var engines = []string{"docker", "podman"}

// process is a broker, which ends when the pipe on its standard input does: with this process at the latest.
type process struct {
	serviceURL, adminURL string
	stdin                io.Closer // a pipe that nothing refers to would be closed
}

var (
	starting  sync.Mutex
	processes = map[string]*process{} // by options
)

// running returns the broker with these options, and starts it when this test binary has none.
func running(options []string) (*process, error) {
	given := &process{serviceURL: os.Getenv("PULSARIUM_SERVICE_URL"), adminURL: os.Getenv("PULSARIUM_ADMIN_URL")}
	if len(options) == 0 && given.serviceURL != "" && given.adminURL != "" {
		return given, nil
	}
	starting.Lock()
	defer starting.Unlock()
	key := strings.Join(options, "\x00")
	if found := processes[key]; found != nil {
		return found, nil
	}
	command, err := serve()
	if err != nil {
		return nil, err
	}
	started, err := start(append(command, options...))
	if err == nil {
		processes[key] = started
	}
	return started, err
}

// serve returns the command of a broker: "pulsarium" or what PULSARIUM names, else a container of the image.
func serve() ([]string, error) {
	named := os.Getenv("PULSARIUM")
	command := strings.Fields(named)
	if named == "" {
		command = []string{"pulsarium"}
	}
	if _, err := exec.LookPath(command[0]); err == nil {
		return append(command, "serve", "--with-parent", "--log-level", "warning", "--port", "0", "--http-port", "0"), nil
	}
	if named != "" {
		return nil, fmt.Errorf("PULSARIUM names %s, which is not a command: correct or unset the variable", named)
	}
	for _, engine := range engines {
		if _, err := exec.LookPath(engine); err == nil {
			return serveInContainer(engine)
		}
	}
	return nil, errors.New("no broker can start: put the command pulsarium on the PATH, or name it in PULSARIUM; " +
		"or install docker or podman, with the image pulsarium")
}

// serveInContainer returns the command of a container with the same ports inside and outside, as clients are told them.
func serveInContainer(engine string) ([]string, error) {
	image := os.Getenv("PULSARIUM_IMAGE")
	if image == "" {
		image = "pulsarium"
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	httpPort, err := freePort()
	if err != nil {
		return nil, err
	}
	return []string{
		engine, "run", "--rm", "--interactive",
		"--publish", "127.0.0.1:" + port + ":" + port, "--publish", "127.0.0.1:" + httpPort + ":" + httpPort, image,
		"pulsarium", "serve", "--with-parent", "--log-level", "warning", "--host", "0.0.0.0",
		"--set", "advertisedAddress=127.0.0.1", "--port", port, "--http-port", httpPort,
	}, nil
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

// start runs a command, and returns once it has printed "pulsarium ready" and the URLs.
func start(command []string) (*process, error) {
	running := exec.Command(command[0], command[1:]...)
	var log bytes.Buffer
	running.Stderr = &log
	stdin, err := running.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := running.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := running.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be executed: %w", command[0], err)
	}
	late := time.AfterFunc(startLimit, func() { running.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) >= 4 && words[0] == "pulsarium" && words[1] == "ready" {
			go func() {
				io.Copy(io.Discard, stdout)
				running.Wait()
			}()
			return &process{fromOutside(words[2]), fromOutside(words[3]), stdin}, nil
		}
	}
	stdin.Close()
	running.Wait()
	return nil, fmt.Errorf("%s ended before it served, or was not ready in %s:\n%s%s", strings.Join(command, " "), startLimit, log.String(), advice(command[0]))
}

// advice returns what to do when a program serves no broker.
func advice(program string) string {
	if slices.Contains(engines, program) {
		return "a container needs the image: type `" + program + " build -t pulsarium .` in a checkout of Pulsarium, " +
			"or put the command pulsarium on the PATH"
	}
	return ""
}

// fromOutside returns a URL that leads to a broker, which listens on 0.0.0.0 in a container.
func fromOutside(url string) string {
	return strings.Replace(url, "0.0.0.0", "127.0.0.1", 1)
}

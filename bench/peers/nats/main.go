// Command nats-fan-out publishes messages and consumes them, as the peer of a measurement: the client is NATS' own.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	subject = "fan.out"
	stream  = "FANOUT"
	// How long a consumer waits for all messages before it says that some are missing.
	patience = 60 * time.Second
)

type account struct {
	BeganUs  int64 `json:"began_us"`
	EndedUs  int64 `json:"ended_us"`
	Messages int   `json:"messages"`
	Bytes    int   `json:"bytes"`
	// Microseconds from a message's publication to its arrival, for messages that carry a stamp.
	LatencyUs []int64 `json:"latency_us,omitempty"`
}

func main() {
	if len(os.Args) != 6 && len(os.Args) != 7 {
		fail(fmt.Errorf("usage: nats-fan-out publish|consume core|jetstream|stamped URL MESSAGES BYTES [PER_SECOND]"))
	}
	role, kind, url := os.Args[1], os.Args[2], os.Args[3]
	messages, bytes := number(os.Args[4]), number(os.Args[5])
	connection, err := nats.Connect(url, nats.Timeout(10*time.Second))
	fail(err)
	defer connection.Close()
	var done account
	switch role + " " + kind {
	case "publish core":
		done = publishCore(connection, messages, bytes)
	case "publish jetstream":
		done = publishJetStream(connection, messages, bytes)
	case "publish stamped":
		if len(os.Args) != 7 {
			fail(fmt.Errorf("stamped messages are published at a rate: name it behind BYTES"))
		}
		done = publishStamped(connection, messages, bytes, number(os.Args[6]))
	case "consume stamped":
		done = consumeStamped(connection, messages)
	case "consume core":
		done = consumeCore(connection, messages)
	case "consume jetstream":
		done = consumeJetStream(connection, messages)
	default:
		fail(fmt.Errorf("there is no %s %s", role, kind))
	}
	fail(json.NewEncoder(os.Stdout).Encode(done))
}

func publishCore(connection *nats.Conn, messages, bytes int) account {
	payload := make([]byte, bytes)
	began := time.Now()
	for range messages {
		fail(connection.Publish(subject, payload))
	}
	fail(connection.FlushTimeout(patience))
	return account{BeganUs: began.UnixMicro(), EndedUs: time.Now().UnixMicro(), Messages: messages, Bytes: messages * bytes}
}

// Each message is due by a clock and carries the moment of its publication.
func publishStamped(connection *nats.Conn, messages, bytes, perSecond int) account {
	payload := make([]byte, bytes)
	began := time.Now()
	for message := range messages {
		due := began.Add(time.Duration(message) * time.Second / time.Duration(perSecond))
		time.Sleep(time.Until(due))
		binary.LittleEndian.PutUint64(payload, uint64(time.Now().UnixMicro()))
		fail(connection.Publish(subject, payload))
	}
	fail(connection.FlushTimeout(patience))
	return account{BeganUs: began.UnixMicro(), EndedUs: time.Now().UnixMicro(), Messages: messages, Bytes: messages * bytes}
}

func publishJetStream(connection *nats.Conn, messages, bytes int) account {
	streams, err := jetstream.New(connection)
	fail(err)
	config := jetstream.StreamConfig{Name: stream, Subjects: []string{subject}}
	_, err = streams.CreateStream(context.Background(), config)
	fail(err)
	payload := make([]byte, bytes)
	began := time.Now()
	for range messages {
		_, err := streams.PublishAsync(subject, payload, jetstream.WithStallWait(patience))
		fail(err)
	}
	select {
	case <-streams.PublishAsyncComplete():
	case <-time.After(patience):
		fail(fmt.Errorf("the server did not acknowledge every message"))
	}
	return account{BeganUs: began.UnixMicro(), EndedUs: time.Now().UnixMicro(), Messages: messages, Bytes: messages * bytes}
}

// The subscription stands before the word is given, since core NATS keeps nothing.
func consumeCore(connection *nats.Conn, messages int) account {
	// Room for all, so that the client drops none.
	arrivals := make(chan *nats.Msg, messages)
	_, err := connection.ChanSubscribe(subject, arrivals)
	fail(err)
	fail(connection.Flush())
	awaitWord()
	return count(messages, func() int { return len((<-arrivals).Data) })
}

// The client's own thread notes the arrival, so that nothing waits in a queue behind it.
func consumeStamped(connection *nats.Conn, messages int) account {
	latencies := make(chan int64, messages)
	_, err := connection.Subscribe(subject, func(message *nats.Msg) {
		latencies <- time.Now().UnixMicro() - int64(binary.LittleEndian.Uint64(message.Data))
	})
	fail(err)
	fail(connection.Flush())
	awaitWord()
	stamped := make([]int64, 0, messages)
	done := count(messages, func() int {
		stamped = append(stamped, <-latencies)
		return 0
	})
	done.LatencyUs = stamped
	return done
}

// An ordered consumer is the cheapest of JetStream that loses nothing: it keeps its place itself and acknowledges nothing.
func consumeJetStream(connection *nats.Conn, messages int) account {
	streams, err := jetstream.New(connection)
	fail(err)
	awaitWord()
	consumer, err := streams.OrderedConsumer(context.Background(), stream, jetstream.OrderedConsumerConfig{})
	fail(err)
	iterator, err := consumer.Messages(jetstream.PullMaxMessages(5000))
	fail(err)
	defer iterator.Stop()
	return count(messages, func() int {
		message, err := iterator.Next()
		fail(err)
		return len(message.Data())
	})
}

func count(messages int, next func() int) account {
	done := account{BeganUs: time.Now().UnixMicro()}
	for done.Messages < messages {
		done.Bytes += next()
		done.Messages++
	}
	done.EndedUs = time.Now().UnixMicro()
	return done
}

// awaitWord tells the measurement that the consumer stands, and waits for the word to begin.
func awaitWord() {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	fail(err)
	// One timer for all: a timer per message would be load of its own.
	time.AfterFunc(patience, func() { fail(fmt.Errorf("messages were still missing after %s", patience)) })
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	fail(err)
	return value
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats-fan-out:", err)
		os.Exit(1)
	}
}

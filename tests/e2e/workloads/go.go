// SPDX-License-Identifier: Apache-2.0

// Go names: a method of a pointer, a closure, a goroutine.
package main

import (
	"os"
	"strconv"
	"time"
)

type Engine struct{ sum uint64 }

//go:noinline
func (e *Engine) Turn(turns uint64) {
	for i := uint64(0); i < turns; i++ {
		e.sum = e.sum*31 + i
	}
}

//go:noinline
func drive(e *Engine, until time.Time) {
	for time.Now().Before(until) {
		e.Turn(10000000)
	}
}

func main() {
	seconds := 2.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := make(chan bool)
	go func() {
		drive(&Engine{}, until)
		done <- true
	}()
	<-done
}

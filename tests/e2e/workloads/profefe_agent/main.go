// SPDX-License-Identifier: Apache-2.0

// Works under profefe's own agent, which sends what it saw: profefe_agent URL SECONDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/profefe/profefe/agent"
)

//go:noinline
func knownLeaf(n uint64) (sum uint64) {
	for i := uint64(0); i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[2])
	failed := false
	a, err := agent.Start(os.Args[1], "go.shop", agent.WithCPUProfile(2*time.Second), agent.WithHeapProfile(),
		agent.WithMutexProfile(), agent.WithGoroutineProfile(), agent.WithLabels("region", "eu", "path", "a,b=c"),
		agent.WithLogger(func(format string, v ...interface{}) {
			failed = true
			fmt.Fprintf(os.Stderr, format+"\n", v...)
		}))
	if err != nil {
		panic(err)
	}
	sum := uint64(0)
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		sum += knownLeaf(1e6)
	}
	if a.Stop() != nil || failed || sum == 0 {
		os.Exit(1)
	}
}

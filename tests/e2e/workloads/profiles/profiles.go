// SPDX-License-Identifier: Apache-2.0
// Writes one profile of each kind that Go's runtime makes into the folder of its first argument, as NAME.pb.gz; the second
// argument varies the work.
package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func inner(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

//go:noinline
func outer(n int) int { return inner(n) + inner(n/2) }

func waitForEachOther() {
	var lock sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 50; j++ {
				lock.Lock()
				inner(20000)
				lock.Unlock()
			}
		}()
	}
	all.Wait()
}

func write(folder, name string) {
	file, err := os.Create(filepath.Join(folder, name+".pb.gz"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := pprof.Lookup(name).WriteTo(file, 0); err != nil {
		panic(err)
	}
}

func main() {
	folder := os.Args[1]
	many, _ := strconv.Atoi(os.Args[2])
	empty, _ := os.Create(filepath.Join(folder, "empty_block.pb.gz"))
	pprof.Lookup("block").WriteTo(empty, 0)
	empty.Close()
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	tracing, _ := os.Create(filepath.Join(folder, "trace.out"))
	trace.Start(tracing)
	cpu, _ := os.Create(filepath.Join(folder, "cpu.pb.gz"))
	pprof.StartCPUProfile(cpu)
	for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
		if many%2 == 0 {
			outer(20000)
		} else {
			inner(20000)
		}
	}
	pprof.StopCPUProfile()
	cpu.Close()
	// A busy machine may run the four one after the other: then nobody waits.
	for i := 0; i < 1000 && pprof.Lookup("mutex").Count() == 0; i++ {
		waitForEachOther()
	}
	trace.Stop()
	tracing.Close()
	for i := 0; i < 100*(1+many); i++ {
		kept = append(kept, make([]byte, 10000+i))
	}
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "block", "mutex", "goroutine", "threadcreate"} {
		write(folder, name)
	}
}

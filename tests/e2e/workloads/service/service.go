// SPDX-License-Identifier: Apache-2.0
// A Go service of the standard library alone, as people write them: serves /debug/pprof (address on standard output), does
// allocations and contention when asked, and with -push URL sends its own CPU profile the way profefe's agent does.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func allocateSome(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 4096))
	}
	kept = kept[:n/2]
}

//go:noinline
func spin(d time.Duration) int {
	sum := 0
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := 0; i < 10000; i++ {
			sum += i * i % 7
		}
	}
	return sum
}

//go:noinline
func contend(n int) {
	var lock sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < n; j++ {
				lock.Lock()
				time.Sleep(time.Millisecond)
				lock.Unlock()
			}
		}()
	}
	all.Wait()
}

// Heap profiles tell what was there at the last collection but one.
func work(w http.ResponseWriter, r *http.Request) {
	allocateSome(200)
	contend(5)
	spin(200 * time.Millisecond)
	runtime.GC()
	runtime.GC()
	fmt.Fprintln(w, "done")
}

func push(collector string) error {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return err
	}
	spin(time.Second)
	pprof.StopCPUProfile()
	labels := url.QueryEscape("team") + "=" + url.QueryEscape("a,b")
	query := url.Values{"service": {"go-service"}, "type": {"cpu"}, "labels": {labels}}
	answer, err := http.Post(collector+"/api/0/profiles?"+query.Encode(), "", &profile)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != 200 {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

func main() {
	collector := flag.String("push", "", "collector")
	seconds := flag.Int("seconds", 120, "end after")
	flag.Parse()
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	if *collector != "" {
		if err := push(*collector); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	http.HandleFunc("/work", work)
	http.HandleFunc("/away/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1"+r.URL.Path, http.StatusFound)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	time.AfterFunc(time.Duration(*seconds)*time.Second, func() { os.Exit(0) })
	http.Serve(listener, nil)
}

// SPDX-License-Identifier: Apache-2.0

// A goroutine with frames of different sizes. Built whole, stripped and position independent.
package main

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

//go:noinline
func leaf(x uint64) uint64 {
	for i := uint64(0); i < 4000000; i++ {
		x = x*31 + i
	}
	return x
}

//go:noinline
func three(x uint64) uint64 {
	var room [40]uint64
	room[x%40] = leaf(x)
	return room[(x+1)%40] + 1
}

//go:noinline
func two(x uint64) uint64 {
	return three(x) + three(x+1)
}

//go:noinline
func one(x uint64) {
	var room [9]uint64
	room[x%9] = two(x)
	sink += room[x%7]
}

func main() {
	seconds := 2
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	go func() {
		for x := uint64(1); ; x++ {
			one(x)
		}
	}()
	time.Sleep(time.Duration(seconds) * time.Second)
}

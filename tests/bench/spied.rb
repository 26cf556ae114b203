# SPDX-License-Identifier: Apache-2.0
# The load "work" of tests/e2e/ruby/loads.rb, each round timed: spied.rb LOADS. Says "ready" and ends when its input does. Then it
# writes three 64-bit numbers a round: when it ended (monotonic clock), its wall time, and its CPU time, in nanoseconds.

require ARGV[0]

rounds = String.new
$stdout.puts "ready"
$stdout.flush
$round = 0
wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
while $stdin.read_nonblock(1, exception: false)
  $round += 1
  work
  wall_before, cpu_before = wall, cpu
  wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  rounds << [wall, wall - wall_before, cpu - cpu_before].pack("q3")
end
$stdout.binmode
$stdout.write(rounds)

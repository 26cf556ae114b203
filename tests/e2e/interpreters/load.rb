# SPDX-License-Identifier: Apache-2.0
# load.rb sleep|work SECONDS: outer - middle - wait_here or burn, for that long. sleep prints how many nanoseconds it waited by
# its own clock, and how often.
def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def wait_here
  sleep(0.01)
end

def burn
  x = 1
  i = 0
  x = x * 31 % 65_521 while (i += 1) < 20_000
  x
end

def middle(kind)
  kind == "sleep" ? wait_here : burn
end

def outer(kind)
  start = now
  middle(kind)
  now - start
end

kind, seconds = ARGV
waited = times = 0
stop = now + seconds.to_f
while now < stop
  waited += outer(kind)
  times += 1
end
puts "#{(waited * 1e9).to_i} #{times}"

# SPDX-License-Identifier: Apache-2.0
# Methods that are made, run once and forgotten, so that their memory is used again: generated.rb SECONDS RATE
# The caller's file says which method it calls, as the name of the method itself does.

seconds, rate = ARGV[0].to_f, ARGV[1].to_i
$stdout.puts "ready"
$stdout.flush
$stdin.gets
number = 0
start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
loop do
  now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
  break if now > seconds
  if number > now * rate
    sleep(0.0005)
    next
  end
  number += 1
  made = eval("Class.new { def made_#{number}; n = 0; 1500.times { n += 1 }; n; end; def call_it; made_#{number}; end }", nil, "call_#{number}.rb", 1)
  made.new.call_it
  GC.start if number % 200 == 0
  GC.compact if number % 1000 == 0 && GC.respond_to?(:compact)
end
$stdout.puts number
$stdout.flush

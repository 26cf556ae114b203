# SPDX-License-Identifier: Apache-2.0
# Threads that wait where they say. One that is not named tells the stacks of all others.
require "json"

class Worker
  define_method(:made) { |n, &block| n.times { block.call } }

  def deep(n, &block)
    n.zero? ? [1].each { |_| made(1, &block) } : deep(n - 1, &block)
  end

  def caught
    raise "x"
  rescue RuntimeError
    eval("deep(5) { sleep }", binding, "evaluated", 7)
  end
end

def waits_in_fiber
  Fiber.new { Worker.new.deep(2) { sleep } }.resume
end

Thread.new { Worker.new.caught }.name = "rescued"
Thread.new { waits_in_fiber }.name = "fiber"
Thread.new { Queue.new.pop }.name = "queue"
Thread.new { Worker.new.deep(60) { Mutex.new.tap(&:lock).sleep } }.name = "deep"
Thread.new do
  sleep 1
  stacks = Thread.list.reject { |t| t == Thread.current }.map do |t|
    [t == Thread.main ? "main" : t.name, t.backtrace_locations.map { |l| [l.label, l.path, l.lineno] }]
  end
  puts "STACKS #{JSON.generate(stacks.to_h)}"
  $stdout.flush
  sleep
end
Worker.new.deep(3) { sleep }

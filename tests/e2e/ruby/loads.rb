# SPDX-License-Identifier: Apache-2.0
# A load whose stacks are known. Ruby 2.5 on.
#
#   loads.rb NAME record FILE    runs once under TracePoint, which notes the stack at every event
#   loads.rb NAME run SECONDS    says "ready", waits for a line, runs for that long, and says "done" and how many seconds of CPU
#                                it used, how many of these in the garbage collector
#
# A stack is a list of [name, file, line], leaf first. C functions have the file and line of their caller, as Ruby's own
# backtraces have them. Stacks of the main fiber end at work(), which both ways call; a fiber's at its first frame.

require "json"

def fib(n)
  return n if n < 2
  fib(n - 1) +
    fib(n - 2)
end

def deep(n)
  if n == 0
    leaf = 0
    40.times { |i| leaf += i }
    return leaf
  end
  deep(n - 1)
end

def recursion
  fib(9)
  deep(40)
end

class Made
  define_method(:twice) do |x|
    y = x * 2
    yield_to { |z| y += z }
    y
  end

  def yield_to
    yield 1
    yield 2
  end

  [1, 2, 3].each do |i|
    class_eval <<-CODE, "made.rb", 10
      def made_#{i}(x)
        y = x + #{i}
        y.to_s * 2
      end
    CODE
  end
end

def blocks
  made = Made.new
  6.times do |i|
    made.twice(i)
    made.made_1(i)
    made.made_2(i)
    made.made_3(i)
  end
  add = lambda { |a, b| a.to_s + b.to_s }
  [3, 1, 2].map { |x| add.call(x, x) }
  (1..10).each_with_object([]) do |x, out|
    out << x.to_s
  end
  { a: 1, b: 2 }.each { |k, v| k.to_s + v.to_s }
end

def failing(n)
  raise ArgumentError, "n" if n == 0
  failing(n - 1)
ensure
  n.to_s
end

def exceptions
  3.times do |i|
    begin
      failing(i)
    rescue ArgumentError => e
      e.message.upcase
    else
      i.to_s
    ensure
      i.succ
    end
  end
  catch(:done) do
    10.times { |i| throw :done if i == 7 }
  end
end

def fiber_work(n)
  n.times do |i|
    Fiber.yield i.to_s
  end
  :end
end

def fibers
  fiber = Fiber.new do
    fiber_work(4)
    fib(5)
  end
  5.times { fiber.resume }
  e = Enumerator.new do |y|
    3.times { |i| y << fib(i + 2) }
  end
  e.next
  e.next
end

def evals
  5.times do |i|
    eval("x = #{i}\nfib(x) + 1", binding, "evaluated.rb", 100)
  end
  Object.new.instance_eval { to_s.length }
end

def strings
  text = (1..60).map { |i| "word#{i % 7}" }.join(" ")
  text.gsub(/word(\d)/) { |m| m.upcase }
  text.split(" ").sort_by { |w| w.reverse }.uniq
  [5, 3, 9].sort { |a, b| a <=> b }
  text.scan(/w/).length
end

def collects
  GC.start if $round % 100 == 0
  GC.compact if $round % 400 == 0 && GC.respond_to?(:compact)
  Array.new(100) { |i| "x" * i }
end

PARTS = [:recursion, :blocks, :exceptions, :fibers, :evals, :strings, :collects].freeze

def work
  recursion
  blocks
  exceptions
  fibers
  evals
  strings
  collects
end

def pairs(n)
  n < 2 ? n : pairs(n - 1) + pairs(n - 2)
end

# Each thread runs its own stacks; one of them waits now and then.
def thread_work(n)
  n.times do |i|
    pairs(7)
    ("x" * 2000).hash
    sleep(0.0001) if i % 64 == 0
  end
end

def threads_run
  3.times.map { Thread.new { thread_work(150) } }.each(&:join)
end

# Ractors: TracePoint sees only its own one, so what is recorded runs in the main one.
def ractor_work(n)
  n.times do |i|
    pairs(7)
    [3, 1, 2].map { |x| x.to_s * 2 }
    ("x" * 2000).hash
  end
end

def ractors_run
  3.times.map { Ractor.new { ractor_work(150) } }.each(&:take)
end

# ---- the ways ----

$stacks = {}
$c_functions = Hash.new(0)

def note(locations, add)
  stack = locations.map { |l| [l.label, File.basename(l.path.to_s), l.lineno] }
  stack.unshift([add, stack[0][1], stack[0][2]]) if add && stack[0]
  $stacks[stack] = true
end

def record(file, name)
  tracer = TracePoint.new(:line, :call, :return, :c_call, :c_return, :b_call, :b_return, :raise, :class, :end) do |tp|
    # c_call comes before the frame, c_return behind it
    note(caller_locations(1), tp.event == :c_call || tp.event == :c_return ? tp.method_id.to_s : nil)
    note(caller_locations(1), nil)
  end
  $round = 0
  [0, 1, 100, 400].each do |round|
    $round = round
    if name == "threads" || name == "many"
      trace_threads(tracer)
    else
      tracer.enable { name == "ractors" ? ractor_work(2) : work }
    end
  end
  File.write(file, JSON.generate($stacks.keys))
end

def trace_threads(tracer)
  tracer.enable
  Thread.new { thread_work(2) }.join
  threads_run_short
  tracer.disable
end

def threads_run_short
  Thread.new { thread_work(1) }.join
end

def cpu_seconds
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

# From 3.1 on Ruby measures it anyway; before, its profiler does.
def gc_seconds
  GC.respond_to?(:total_time) ? GC.total_time / 1e9 : GC::Profiler.total_time
end

def run(seconds, name)
  GC::Profiler.enable unless GC.respond_to?(:total_time)
  $stdout.puts "ready"
  $stdout.flush
  $stdin.gets
  $round = 0
  start = cpu_seconds
  collected = gc_seconds
  while cpu_seconds - start < seconds
    $round += 1
    case name
    when "threads", "many" then threads_run
    when "ractors" then ractors_run
    else work
    end
  end
  $stdout.puts "done #{cpu_seconds - start} #{gc_seconds - collected}"
  $stdout.flush
  $stdin.gets
end

if ARGV[1] == "record"
  record(ARGV[2], ARGV[0])
elsif ARGV[1] == "run"
  run(ARGV[2].to_f, ARGV[0])
end

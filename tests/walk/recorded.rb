# SPDX-License-Identifier: Apache-2.0
# Waits in a stack that has one of each kind of frame; interpreter_record reads it there, tests/unit/recorded_test.c says what it is.
class Shop
  define_method(:made) { |n| deep(n) }

  def deep(n)
    n.zero? ? [1].each { |_| caught } : deep(n - 1)
  end

  def caught
    raise "x"
  rescue RuntimeError
    eval("wait_here", binding, "evaluated.rb", 7)
  end

  def wait_here
    puts "ready"
    $stdout.flush
    sleep
  end
end

Shop.new.made(2)

# SPDX-License-Identifier: Apache-2.0
# Methods of modules, classes and their singletons, blocks of them, functions in C; what the stack of the innermost one is:
#= <main>
#= go
#= Shop::Cart.start
#= block in <class:Cart>
#= Mixed#mixed
#= Util.helper
#= block in Mixed#mixed
#= Shop::Cart.build
#= block (2 levels) in Mixed#mixed
#= Shop::Cart#each_item
#= String#sub
#= block in Shop::Cart#each_item
#= block (3 levels) in Mixed#mixed
#= Array#map
#= block (4 levels) in Mixed#mixed
#= Object#spin

module Util
  module_function

  def helper
    yield
  end
end

module Mixed
  def mixed
    Util.helper { Shop::Cart.build { |c| c.each_item { [1].map { spin } } } }
  end
end

module Shop
  class Cart
    include Mixed

    def self.build
      yield new
    end

    def each_item
      "ab".sub(/a/) { yield; "x" }
    end

    define_method(:made) { mixed }

    class << self
      def start
        new.made
      end
    end
  end
end

def spin
  puts "ready"
  $stdout.flush
  i = 0
  i += 1 while i >= 0
end

Class.new(Shop::Cart) { def go() Shop::Cart.start end }.new.go

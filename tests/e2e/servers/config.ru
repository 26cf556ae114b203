# SPDX-License-Identifier: Apache-2.0
# A Sinatra application: recursion, blocks, C functions that call back, a template, JSON, a regular expression, an exception.
require 'json'
require 'sinatra/base'

module Shop
  def self.price(count)
    (1..count).sum { |i| (i * 7) % 13 }
  end

  def self.deep(depth)
    depth.zero? ? price(300) : deep(depth - 1)
  end

  def self.check(count)
    raise ArgumentError, 'odd' if count.odd?
    count
  rescue ArgumentError
    price(200)
  end
end

class App < Sinatra::Base
  set :environment, :production
  disable :logging, :protection, :show_exceptions
  get('/deep/:depth') { Shop.deep(params['depth'].to_i % 100).to_s }
  get('/page') { erb '<% 40.times do |i| %><p><%= Shop.price(i) %></p><% end %>' }
  get('/json') { JSON.generate((0...60).map { |i| { 'id' => i, 'price' => Shop.price(20) } }) }
  get('/text') { ('shop' * 200).gsub(/(s)h(op)/) { "#{$1}#{Shop.price(3)}" }.length.to_s }
  get('/check/:n') { Shop.check(params['n'].to_i).to_s }
end

run App

#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A Mojolicious application: recursion, closures, sort blocks, a template, JSON, s///e, an exception.
use Mojolicious::Lite -signatures;
no warnings 'recursion';

sub price ($count) { my $sum = 0; $sum += $_ * 7 % 13 for 1 .. $count; return $sum }
sub deep ($depth) { return $depth ? deep($depth - 1) : price(300) }
sub check ($n) { die "odd\n" if $n % 2; return $n }

app->log->level('fatal');
get '/deep/:depth' => sub ($c) { $c->render(text => deep($c->param('depth') % 100)) };
get '/page' => sub ($c) { $c->render(inline => "% for my \$i (1 .. 40) {\n<p><%= main::price(\$i) %></p>\n% }\n") };
get '/json' => sub ($c) { $c->render(json => [map { { id => $_, price => price(20) } } 0 .. 59]) };
get '/text' => sub ($c) { my $text = 'shop' x 200; $text =~ s/(s)h(op)/$1 . price(3)/ge; $c->render(text => length $text) };
get '/check/:n' => sub ($c) { my $ok = eval { check($c->param('n')) }; $c->render(text => $ok // price(200)) };
get '/sort' => sub ($c) { $c->render(text => join ',', sort { price($a) <=> price($b) } map { $_ * 37 % 19 } 1 .. 30) };
app->start;

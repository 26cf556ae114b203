# SPDX-License-Identifier: Apache-2.0
# A load whose legal stacks can be told from its text: a line that calls says whom behind "#>"; perl_oracle.py reads that.
# usage: perl load.pl SECONDS [THREADS]
use strict;
use warnings;
use List::Util qw(first reduce);
use Time::HiRes qw(time);

our ($end, $sum) = (0, 0);

sub burn {
	my ($turns) = @_;
	my $x = 0;
	for my $i (1 .. $turns) {
		$x += $i * $i % 7;
	}
	$sum += $x;
	return $x;
}

sub recurse {
	my ($depth) = @_;
	burn(20); #> main::burn
	recurse($depth - 1) if $depth > 0; #> main::recurse
	return $depth;
}

sub by_value {
	burn(10); #> main::burn
	return $a <=> $b;
}

sub sorting {
	my @list = map { ($_ * 7919) % 101 } 1 .. 20;
	my @one = sort { weigh($a) <=> weigh($b) } @list; #> main::weigh
	my @two = sort by_value @list; #> main::by_value
	return scalar @one + @two;
}

sub weigh {
	my ($n) = @_;
	burn(8); #> main::burn
	return $n;
}

sub listing {
	my @m = map { weigh($_) } 1 .. 8; #> main::weigh
	my @g = grep { weigh($_) % 2 } 1 .. 8; #> main::weigh
	my $f = first { weigh($_) > 5 } 1 .. 8; #> main::__ANON__,main::weigh
	my $r = reduce { weigh($a) + $b } 1 .. 8; #> main::__ANON__,main::weigh
	return $f + $r;
}

package Shape;

our $AUTOLOAD;

sub new {
	my ($class) = @_;
	main::burn(5); #> main::burn
	return bless {}, $class;
}

sub area {
	my ($self) = @_;
	return $self->helper(3); #> Shape::helper
}

sub helper {
	my ($self, $n) = @_;
	return main::burn($n * 10); #> main::burn
}

sub AUTOLOAD {
	my ($self) = @_;
	return main::burn(15); #> main::burn
}

sub DESTROY {
}

package Dying;

sub new {
	return bless [], shift;
}

sub DESTROY {
	main::burn(30); #> main::burn
}

package Number;
use overload '+' => \&add, '""' => sub { main::burn(12); "n" }; #> main::burn

sub add {
	my ($x, $y) = @_;
	main::burn(20); #> main::burn
	return $x;
}

package Tied;

sub TIESCALAR {
	return bless [], shift;
}

sub FETCH {
	main::burn(20); #> main::burn
	return 7;
}

sub STORE {
	main::burn(20); #> main::burn
}

package main;

sub objects {
	my $s = Shape->new; #> Shape::new
	$s->area; #> Shape::area
	$s->nothing_here; #> Shape::AUTOLOAD
	for (1 .. 3) {
		my $d = Dying->new; #> Dying::new
		undef $d; #> (eval),Dying::DESTROY
	}
	my $n = bless [], 'Number';
	my $t = $n + 1; #> Number::add
	my $text = "$n"; #> Number::__ANON__
	tie my $tied, 'Tied'; #> Tied::TIESCALAR
	$t = $tied; #> Tied::FETCH
	$tied = 5; #> Tied::STORE
	return $text;
}

sub texts {
	my $text = "a1b2c3";
	$text =~ s/(\d)/weigh($1)/ge; #> main::weigh
	return $text;
}

sub failing {
	burn(10); #> main::burn
	die "planned\n";
}

sub catching {
	for (1 .. 3) {
		my $good = eval { failing(); 1 }; #> (eval),main::failing
		burn(5) unless $good; #> main::burn
	}
	return;
}

sub in_text {
	my $name = "made_" . int(rand 1000);
	eval "sub $name { burn(25); } $name(); 1" or die $@; #> (eval)
	delete $main::{$name};
	return;
}

sub looping {
	for my $i (1 .. 3) {
		for my $j (1 .. 3) {
			burn(6) if $i != $j; #> main::burn
		}
	}
	return;
}

sub round {
	recurse(12); #> main::recurse
	sorting(); #> main::sorting
	listing(); #> main::listing
	objects(); #> main::objects
	texts(); #> main::texts
	catching(); #> main::catching
	in_text(); #> main::in_text
	looping(); #> main::looping
	return;
}

sub work {
	while (time() < $end) {
		round(); #> main::round
	}
	return;
}

$end = time() + ($ARGV[0] // 5);
my $threads = $ARGV[1] // 0;
if ($threads) {
	require threads;
	my @all = map { threads->create(\&work) } 1 .. $threads; #> (eval),main::work
	$_->join for @all;
} else {
	work(); #> main::work
}

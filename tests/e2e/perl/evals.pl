# SPDX-License-Identifier: Apache-2.0
# Subs that live for a moment: each string eval makes a package with two of them, whose names share a number that never
# comes again, calls them and frees them. usage: perl evals.pl SECONDS
use strict;
use warnings;
use Time::HiRes qw(time);

my ($end, $sum, $n) = (time() + ($ARGV[0] // 5), 0, 0);

sub burn {
	my ($turns) = @_;
	for my $i (1 .. $turns) {
		$sum += $i * $i % 7;
	}
	return;
}

while (time() < $end) {
	$n++;
	eval "package Made::N$n; sub outer_$n { inner_$n(); } sub inner_$n { main::burn(150); } outer_$n(); 1" or die $@;
	no strict 'refs';
	undef &{"Made::N${n}::$_"} for "outer_$n", "inner_$n";
	%{"Made::N${n}::"} = ();
	delete $Made::{"N${n}::"};
}
print "$n\n";

# SPDX-License-Identifier: Apache-2.0
# load.pl sleep|work SECONDS: outer - middle - wait_here or burn, for that long. sleep prints how many nanoseconds it waited by
# its own clock, and how often.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub wait_here {
	usleep(10_000);
	return;
}

sub burn {
	my $x = 1;
	for my $i (1 .. 20_000) {
		$x = $x * 31 % 65_521;
	}
	return $x;
}

sub middle {
	my ($kind) = @_;
	$kind eq 'sleep' ? wait_here() : burn();
	return;
}

sub outer {
	my ($kind) = @_;
	my $start = now();
	middle($kind);
	return now() - $start;
}

my ($kind, $seconds) = @ARGV;
my ($waited, $times, $stop) = (0, 0, now() + $seconds);
while (now() < $stop) {
	$waited += outer($kind);
	$times++;
}
printf "%d %d\n", $waited * 1e9, $times;

# SPDX-License-Identifier: Apache-2.0
# Waits in a stack that has one of each kind of frame; interpreter_record reads it there, tests/unit/recorded_test.c says what it is.
use strict;
use warnings;
use List::Util ();

package Shop;
our $AUTOLOAD;
sub AUTOLOAD { return if $AUTOLOAD =~ /DESTROY/; return deep(2) }
sub deep {
    my ($n) = @_;
    return deep($n - 1) if $n;
    my @sorted = sort { compare() } 2, 1;
    return @sorted;
}

sub compare {
    my $anonymous = sub { return eval "main::wait_here()" };
    return List::Util::first { $anonymous->() } 1;
}

package main;

sub wait_here {
    $| = 1;
    print "ready\n";
    sleep 1000;
}

bless({}, 'Shop')->anything;

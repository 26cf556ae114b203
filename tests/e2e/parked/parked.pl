# SPDX-License-Identifier: Apache-2.0
# Waits where it says, in its first thread and, where there are threads, in another one.
use strict;
use warnings;
use List::Util ();

my $threads = eval { require threads; 1 };

# What caller() says, and the line where it waits.
sub park {
    my ($who) = @_;
    my @stack = (['main::park', __FILE__, __LINE__ + 9]);
    for (my $i = 0; my @frame = caller($i); $i++) {
        my @by = caller($i + 1);
        last if !@by && $who eq 'thread'; # a copy of the statement that made the thread
        push @stack, [@by ? $by[3] : '(main program)', $frame[1], $frame[2]];
    }
    my $text = join ',', map { sprintf '["%s","%s",%d]', @$_ } @stack;
    $| = 1;
    print qq(STACKS {"$who":[$text]}\n);
    sleep 1000;
}

package Shop;
our $AUTOLOAD;
sub new { return bless {}, shift }
sub AUTOLOAD { my ($self, $who, $n) = @_; return if $AUTOLOAD =~ /DESTROY/; return $self->deep($who, $n) }

sub deep {
    my ($self, $who, $n) = @_;
    return $self->deep($who, $n - 1) if $n;
    my @sorted = sort { compare($who) } 2, 1;
    return @sorted;
}

sub compare {
    my ($who) = @_;
    my $anonymous = sub { return eval { main::park($who) } };
    return List::Util::first { $anonymous->() } 1;
}

package main;
threads->create(sub { Shop->new->anything('thread', 20) }) if $threads;
sleep 1;
Shop->new->anything('main', 40);

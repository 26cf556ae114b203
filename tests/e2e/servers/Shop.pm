# SPDX-License-Identifier: Apache-2.0
# A response handler of mod_perl: recursion, a sort block, s///e, a closure, an exception that is caught.
package Shop;
use strict;
use warnings;
no warnings 'recursion';
use Apache2::RequestRec ();
use Apache2::RequestIO  ();
use Apache2::Const -compile => 'OK';

sub price { my ($count) = @_; my $sum = 0; $sum += $_ * 7 % 13 for 1 .. $count; return $sum }
sub deep  { my ($depth) = @_; return $depth ? deep($depth - 1) : price(300) }
sub odd   { my ($n) = @_; die "odd\n" if $n % 2; return price(200) }

sub handler {
    my ($r) = @_;
    my ($what, $n) = $r->uri =~ m{^/perl/(\w+)/?(\d*)};
    my $add  = sub { price($_[0]) + 1 };
    my $text = 'shop' x 200;
    my $out =
        $what eq 'deep'  ? deep($n % 100)
      : $what eq 'check' ? (eval { odd($n) } // $add->(100))
      : $what eq 'sort'  ? join(',', sort { price($a) <=> price($b) } map { $_ * 37 % 19 } 1 .. 30)
      :                    ($text =~ s/(s)h(op)/$1 . price(3)/ger);
    $r->content_type('text/plain');
    $r->print($out);
    return Apache2::Const::OK;
}
1;

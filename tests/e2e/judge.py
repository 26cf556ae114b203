# SPDX-License-Identifier: Apache-2.0
"""Bounds on rates, shares and waits, judged so that nobody has to try a second time.

A machine shared with others makes single measurements worse, never better than they can be. So what is measured is cost in
CPU time or a number of samples, and it is measured again until a confidence interval lies on one side of the bound. A bound
fails only when it is refuted: the whole interval lies beyond it. Each look at the interval can err, so the chance of an error
(ERROR, of the whole judgement) is divided by the most looks that there can be (Bonferroni).
"""
import math
import statistics

ERROR = 0.01


def rounds_to_show(most, error=0.05):
    """So many rounds without a failure show that a round fails with a chance of at most @most: (1 - most)^n <= error."""
    return math.ceil(math.log(error) / math.log(1 - most))


def quantile_of_t(error, freedom):
    """The value that Student's t exceeds with chance @error on one side: a series in 1/freedom around the normal one (Abramowitz and
    Stegun, 26.7.5); for 1 and 2 degrees of freedom, where the series is bad, the closed forms."""
    if freedom == 1:
        return math.tan(math.pi * (0.5 - error))
    if freedom == 2:
        return (1 - 2 * error) * math.sqrt(2 / (4 * error * (1 - error)))
    z = statistics.NormalDist().inv_cdf(1 - error)
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
             (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160)
    return z + sum(term / freedom ** (n + 1) for n, term in enumerate(terms))


def share_interval(hits, count, error=ERROR):
    """Wilson's score interval of a share; @error on each side. Samples have to be of different events."""
    if not count:
        return 0.0, 1.0
    z = statistics.NormalDist().inv_cdf(1 - error)
    middle = (hits + z * z / 2) / (count + z * z)
    room = z / (count + z * z) * math.sqrt(hits * (count - hits) / count + z * z / 4)
    return max(middle - room, 0.0), min(middle + room, 1.0)


def at_most(hits, count, most):
    """Whether @hits of @count can be where the true share is @most: not when so many or more come with a chance below ERROR (binomial)."""
    if hits > count:
        return False
    chances = (math.exp(math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(most) + (count - k) * math.log1p(-most)) for k in range(hits))
    return 1 - sum(chances) >= ERROR


class Verdict:
    """refuted: the bound is not kept. shown: it is. Neither: the cap came first. str() has the figures for a result line."""

    def __init__(self, low, high, least, most, count):
        self.low, self.high, self.count = low, high, count
        self.refuted = (least is not None and high < least) or (most is not None and low > most)
        self.shown = (least is None or low >= least) and (most is None or high <= most)
        self.bounds = " and ".join(f"at {word} {bound:.4g}" for word, bound in (("least", least), ("most", most)) if bound is not None)

    @property
    def well(self):
        return not self.refuted

    def __str__(self):
        state = "refuted" if self.refuted else "shown" if self.shown else "not refuted"
        return f"{self.low:.4g} to {self.high:.4g} in {self.count}, {self.bounds}: {state}"


def mean_is(measure, least=None, most=None, fewest=3, cap=10):
    """Takes measurements until the mean's interval is clear of the bound, at least @fewest and at most @cap. measure() returns one."""
    values = []
    while True:
        values.append(measure())
        if len(values) < fewest:
            continue
        middle = statistics.fmean(values)
        room = quantile_of_t(ERROR / (cap - fewest + 1), len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        verdict = Verdict(middle - room, middle + room, least, most, len(values))
        if verdict.refuted or verdict.shown or len(values) >= cap:
            return verdict


def share_is(more, least=None, most=None, cap=10):
    """Takes rounds until the interval of a share is clear of the bound. more() returns (hits, count) of one round, of events that do
    not depend on each other."""
    hits = count = 0
    for round_number in range(1, cap + 1):
        h, n = more()
        hits, count = hits + h, count + n
        low, high = share_interval(hits, count, ERROR / cap)
        verdict = Verdict(low, high, least, most, count)
        if verdict.refuted or verdict.shown or round_number == cap:
            return verdict


def best_of(measure, most, cap=5):
    """A cost that only others can make larger (a wait, a latency): the smallest of up to @cap measurements. Return: (is it at most
    @most, the values). The bound is refuted when every measurement is beyond it."""
    values = []
    while len(values) < cap and (not values or min(values) > most):
        values.append(measure())
    return min(values) <= most, values

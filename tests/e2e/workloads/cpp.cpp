// SPDX-License-Identifier: Apache-2.0
// C++ names: namespaces, templates, an operator, an anonymous namespace.
#include <vector>

#include "work.h"

namespace shop::cart {

template <typename T, int N> struct Matrix {
	NOINLINE T multiply(const std::vector<T> &by) const;
};

template <typename T, int N> NOINLINE T Matrix<T, N>::multiply(const std::vector<T> &by) const
{
	burn(N * 1000000ul);
	return by[0];
}

struct Total {
	NOINLINE int operator()(int from, const char *) const
	{
		burn(30000000);
		return from;
	}
};

} // namespace shop::cart

namespace {
NOINLINE void hidden_work()
{
	burn(30000000);
	STAY;
}
} // namespace

int main(int argc, char **argv)
{
	const double deadline = now_s() + seconds_of(argc, argv, 2);
	const std::vector<double> numbers(1);

	while (now_s() < deadline) {
		shop::cart::Matrix<double, 40>().multiply(numbers);
		shop::cart::Total()(1, "");
		hidden_work();
	}
	return 0;
}

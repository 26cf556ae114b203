/* SPDX-License-Identifier: Apache-2.0 */
/* known_outer > known_middle, eight times > known_leaf, where nearly all time goes. Writes a file when the first round is done.
 * Run with known_leaf not inlined: a loop that was inlined has the debug information of the next safepoint, which may be its caller's. */
import java.io.FileOutputStream;

public class Java {
	static int seed = 1;

	static int known_leaf() {
		int x = seed;
		for (int i = 0; i < 200000; i++)
			x ^= x << 13 ^ x >>> 17 ^ x << 5;
		return x;
	}

	static int known_middle(int depth) {
		return depth > 1 ? known_middle(depth - 1) : known_leaf();
	}

	static int known_outer() {
		return known_middle(8);
	}

	public static void main(String[] args) throws Exception {
		seed = known_outer();
		new FileOutputStream(args[0]).close();
		while (true)
			seed = known_outer() | 1;
	}
}

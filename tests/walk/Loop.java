// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Work in interpreted and compiled code, in the virtual machine and in libraries, until it is ended from outside. */
public class Loop {
	static int fibonacci(int n) {
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	}

	public static void main(String[] arguments) {
		Random random = new Random(1);
		byte[] in = new byte[20000], out = new byte[30000];
		long sum = 0;

		while (sum != 42) {
			CRC32 crc = new CRC32();
			Deflater deflater = new Deflater();
			List<String> list = new ArrayList<>();

			sum += fibonacci(15);
			random.nextBytes(in);
			crc.update(in);
			deflater.setInput(in);
			deflater.finish();
			sum += crc.getValue() + deflater.deflate(out);
			deflater.end();
			for (int i = 0; i < 2000; i++)
				list.add("s" + random.nextInt());
			Collections.sort(list);
			sum += list.hashCode();
		}
	}
}

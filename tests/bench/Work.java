// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.lang.management.*;
import java.util.*;

/* For each line that comes the same work; says the CPU seconds it took, and how many paces that was, as repeat() of
 * tests/e2e/python/recorder.py does. Work ROUNDS */
public class Work {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final double PIECE_SECONDS = 0.001;
    static long kept;

    static double cpuSeconds() {
        return THREADS.getCurrentThreadCpuTime() / 1e9;
    }

    static int depth(int n, Map<Integer, Integer> seen) {
        return n == 0 ? seen.merge(7, 1, Integer::sum) : depth(n - 1, seen) + 1;
    }

    /* Some 10 us: text, a map, calls 20 deep. */
    static void round(int n) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 40; i++)
            text.append(i * n).append(',');
        Map<Integer, Integer> seen = new HashMap<>();
        for (int i = 0; i < 60; i++)
            seen.merge((i * n) % 17, 1, Integer::sum);
        kept += text.length() + depth(20, seen);
    }

    static void rounds(int count) {
        for (int i = 0; i < count; i++)
            round(i);
    }

    /* CPU seconds of the fastest of a few short pieces: how fast the machine is at this moment. A sample reaches one of them at most. */
    static double pace() {
        double best = 1;
        for (int i = 0; i < 5; i++) {
            double begin = cpuSeconds();
            rounds(4);
            best = Math.min(best, cpuSeconds() - begin);
        }
        return best;
    }

    public static void main(String[] a) throws IOException {
        int count = Integer.parseInt(a[0]);
        for (double begin = cpuSeconds(); cpuSeconds() - begin < 3;)  // until the compilers are done
            rounds(1000);
        int atOnce = Math.max(10, (int) (4 * PIECE_SECONDS / pace()));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null && !line.isEmpty();) {
            double seconds = 0, paces = 0, before = pace();
            for (int first = 0; first < count; first += atOnce) {
                double begin = cpuSeconds();
                rounds(Math.min(atOnce, count - first));
                double taken = cpuSeconds() - begin, after = pace();
                seconds += taken;
                paces += 2 * taken / (before + after);
                before = after;
            }
            System.out.printf(Locale.ROOT, "%.6f %.3f%n", seconds, paces);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.function.IntUnaryOperator;

/* Classes come and go: each has a loader and a name of its own, runs for a moment and is garbage, and its memory is that of the next ones.
 * Class Unload$TN_NUMBER's method mN calls Truth.tN, of a class that stays, so each name can be checked. Unload PER_SECOND; with Redefine as agent that runs beside it. */
public class Unload {
    public static class T0_000000 implements IntUnaryOperator {
        static int m0(int n) { return Truth.t0(n); }
        public int applyAsInt(int n) { return m0(n); }
    }

    public static class T1_000000 implements IntUnaryOperator {
        static int m1(int n) { return Truth.t1(n); }
        public int applyAsInt(int n) { return m1(n); }
    }

    public static class T2_000000 implements IntUnaryOperator {
        static int m2(int n) { return Truth.t2(n); }
        public int applyAsInt(int n) { return m2(n); }
    }

    public static class T3_000000 implements IntUnaryOperator {
        static int m3(int n) { return Truth.t3(n); }
        public int applyAsInt(int n) { return m3(n); }
    }

    public static class T4_000000 implements IntUnaryOperator {
        static int m4(int n) { return Truth.t4(n); }
        public int applyAsInt(int n) { return m4(n); }
    }

    public static class T5_000000 implements IntUnaryOperator {
        static int m5(int n) { return Truth.t5(n); }
        public int applyAsInt(int n) { return m5(n); }
    }

    public static class T6_000000 implements IntUnaryOperator {
        static int m6(int n) { return Truth.t6(n); }
        public int applyAsInt(int n) { return m6(n); }
    }

    public static class T7_000000 implements IntUnaryOperator {
        static int m7(int n) { return Truth.t7(n); }
        public int applyAsInt(int n) { return m7(n); }
    }

    public static class Truth {
        public static int t0(int n) { return work(n); }
        public static int t1(int n) { return work(n); }
        public static int t2(int n) { return work(n); }
        public static int t3(int n) { return work(n); }
        public static int t4(int n) { return work(n); }
        public static int t5(int n) { return work(n); }
        public static int t6(int n) { return work(n); }
        public static int t7(int n) { return work(n); }

        static int work(int n) {
            int sum = 0;
            for (int i = 0; i < 3000; i++)
                sum += i * n;
            return sum;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] file) {
            return defineClass(null, file, 0, file.length);
        }
    }

    static final String[] NAMES = new String[8];
    static final byte[][] FILES = new byte[NAMES.length][];

    static byte[] classFile(String name) throws IOException {
        InputStream in = Unload.class.getResourceAsStream("Unload$" + name + ".class");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int b; (b = in.read()) >= 0; )
            out.write(b);
        return out.toByteArray();
    }

    /** The class file with another number in the class's name, wherever that stands. */
    static byte[] numbered(byte[] from, String name, int number) {
        byte[] out = from.clone(), old = name.getBytes(StandardCharsets.US_ASCII);
        byte[] digits = String.format("%06d", number % 1_000_000).getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at + old.length <= out.length; at++) {
            int same = 0;
            while (same < old.length && out[at + same] == old[same])
                same++;
            if (same == old.length)
                System.arraycopy(digits, 0, out, at + old.length - digits.length, digits.length);
        }
        return out;
    }

    static int run(int number) throws ReflectiveOperationException {
        int which = number % NAMES.length, sum = 0;
        Class<?> made = new Loader().define(numbered(FILES[which], NAMES[which], number));
        IntUnaryOperator it = (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
        for (int i = 0; i < 60; i++)
            sum += it.applyAsInt(i);
        return sum;
    }

    public static void main(String[] a) throws Exception {
        int perSecond = Integer.parseInt(a[0]), sum = 0;
        for (int i = 0; i < NAMES.length; i++) {
            NAMES[i] = "T" + i + "_000000";
            FILES[i] = classFile(NAMES[i]);
        }
        Thread collector = new Thread(() -> {
            try {
                for (;; Thread.sleep(250))
                    System.gc();
            } catch (InterruptedException e) {
                return;
            }
        });
        collector.setDaemon(true);
        collector.start();
        if (Redefine.instrumentation != null) // with its agent
            new Thread(() -> {
                try {
                    Redefine.main(new String[] { "100" });
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }).start();
        long begin = System.nanoTime();
        for (int i = 1; ; i++) {
            sum += run(i);
            if (i % 1000 == 0)
                System.out.println(i + " in " + (System.nanoTime() - begin) / 1_000_000 + " ms " + sum);
            long wait = begin + i * 1_000_000_000L / perSecond - System.nanoTime();
            if (wait > 1_000_000)
                Thread.sleep(wait / 1_000_000);
        }
    }
}

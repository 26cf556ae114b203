// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.lang.management.*;
import java.nio.charset.StandardCharsets;
import java.util.function.IntUnaryOperator;

/* Classes come and go: each has a loader and a name of its own, runs for a moment and is garbage, and its memory is that of the next ones.
 * Class Unload$TN_NUMBER's method mN calls Truth.tN, of a class that stays, and six frames of Digits, which stays too, say NUMBER above it: so each
 * name can be checked. Unload PER_SECOND REDEFINED_PER_SECOND: the latter with Redefine as agent. Each class works as long
 * as the rate has time for; one of 17 is called often enough to be compiled. */
public class Unload {
    public static IntUnaryOperator made; // by the class initialiser of the newest one: reflection would cost more than the class
    static int turns = 3000, sum;

    public static class T0_000000 implements IntUnaryOperator {
        static { made = new T0_000000(); }
        static int m0(int n) { return Truth.t0(n); }
        public int applyAsInt(int n) { return m0(n); }
    }

    public static class T1_000000 implements IntUnaryOperator {
        static { made = new T1_000000(); }
        static int m1(int n) { return Truth.t1(n); }
        public int applyAsInt(int n) { return m1(n); }
    }

    public static class T2_000000 implements IntUnaryOperator {
        static { made = new T2_000000(); }
        static int m2(int n) { return Truth.t2(n); }
        public int applyAsInt(int n) { return m2(n); }
    }

    public static class T3_000000 implements IntUnaryOperator {
        static { made = new T3_000000(); }
        static int m3(int n) { return Truth.t3(n); }
        public int applyAsInt(int n) { return m3(n); }
    }

    public static class T4_000000 implements IntUnaryOperator {
        static { made = new T4_000000(); }
        static int m4(int n) { return Truth.t4(n); }
        public int applyAsInt(int n) { return m4(n); }
    }

    public static class T5_000000 implements IntUnaryOperator {
        static { made = new T5_000000(); }
        static int m5(int n) { return Truth.t5(n); }
        public int applyAsInt(int n) { return m5(n); }
    }

    public static class T6_000000 implements IntUnaryOperator {
        static { made = new T6_000000(); }
        static int m6(int n) { return Truth.t6(n); }
        public int applyAsInt(int n) { return m6(n); }
    }

    public static class T7_000000 implements IntUnaryOperator {
        static { made = new T7_000000(); }
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
            for (int i = 0; i < turns; i++)
                sum += i * n;
            return sum;
        }
    }

    /** The number of the class that runs below, a frame for each decimal digit. */
    static class Digits {
        static int next(int number, int unit, IntUnaryOperator it, int calls) {
            if (unit == 0) {
                int sum = 0;
                for (int i = 0; i < calls; i++)
                    sum += it.applyAsInt(i);
                return sum;
            }
            switch (number / unit % 10) {
            case 0: return d0(number, unit, it, calls);
            case 1: return d1(number, unit, it, calls);
            case 2: return d2(number, unit, it, calls);
            case 3: return d3(number, unit, it, calls);
            case 4: return d4(number, unit, it, calls);
            case 5: return d5(number, unit, it, calls);
            case 6: return d6(number, unit, it, calls);
            case 7: return d7(number, unit, it, calls);
            case 8: return d8(number, unit, it, calls);
            default: return d9(number, unit, it, calls);
            }
        }

        static int d0(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d1(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d2(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d3(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d4(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d5(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d6(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d7(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d8(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
        static int d9(int number, int unit, IntUnaryOperator it, int calls) { return next(number, unit / 10, it, calls); }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] file) {
            return defineClass(null, file, 0, file.length);
        }

        /** Without a search: interpreted, that takes longer than all else. */
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            return name.equals("Unload$Truth") ? Truth.class : name.equals("Unload") ? Unload.class : Class.forName(name, false, null);
        }
    }

    static final String[] NAMES = new String[8];
    static final byte[][] FILES = new byte[NAMES.length][];
    static final int[][] PLACES = new int[NAMES.length][]; // where the class's number stands in its file

    static byte[] classFile(String name) throws IOException {
        InputStream in = Unload.class.getResourceAsStream("Unload$" + name + ".class");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int b; (b = in.read()) >= 0; )
            out.write(b);
        return out.toByteArray();
    }

    static int[] places(byte[] file, String name) {
        byte[] old = name.getBytes(StandardCharsets.US_ASCII);
        int[] found = new int[file.length];
        int count = 0;
        for (int at = 0; at + old.length <= file.length; at++) {
            int same = 0;
            while (same < old.length && file[at + same] == old[same])
                same++;
            if (same == old.length)
                found[count++] = at + old.length - 6;
        }
        return java.util.Arrays.copyOf(found, count);
    }

    /** The class file with another number in the class's name. */
    static byte[] numbered(byte[] from, int[] places, int number) {
        byte[] out = from.clone();
        for (int place : places)
            for (int i = 5, left = number; i >= 0; i--, left /= 10)
                out[place + i] = (byte) ('0' + left % 10);
        return out;
    }

    static int run(int number) throws ReflectiveOperationException {
        int which = number % NAMES.length;
        Class<?> c = new Loader().define(numbered(FILES[which], PLACES[which], number));
        Class.forName(c.getName(), true, c.getClassLoader());
        return Digits.next(number, 100_000, made, number % 17 == 0 ? 400 : 60);
    }

    public static void main(String[] a) throws Exception {
        int perSecond = Integer.parseInt(a[0]);
        for (int i = 0; i < NAMES.length; i++) {
            NAMES[i] = "T" + i + "_000000";
            FILES[i] = classFile(NAMES[i]);
            PLACES[i] = places(FILES[i], NAMES[i]);
        }
        ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
        Thread collector = new Thread(() -> {
            try {
                for (;; Thread.sleep(250)) {
                    System.gc();
                    System.out.println(System.nanoTime() / 1_000_000 + " ms: classes loaded " + classes.getTotalLoadedClassCount() + " unloaded " + classes.getUnloadedClassCount() + " sum " + sum);
                }
            } catch (InterruptedException e) {
                return;
            }
        });
        collector.setDaemon(true);
        collector.start();
        if (Redefine.instrumentation != null) // with its agent
            new Thread(() -> {
                try {
                    Redefine.main(new String[] { a[1] });
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }).start();
        long begin = System.nanoTime();
        for (int i = 1; ; i++) {
            sum += run(i % 1_000_000);
            long wait = begin + i * 1_000_000_000L / perSecond - System.nanoTime();
            turns = wait < -100_000_000 ? Math.max(turns / 2, 50) : Math.min(turns + turns / 16 + 1, 10_000);
            if (wait > 1_000_000)
                Thread.sleep(wait / 1_000_000);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.lang.instrument.*;
import java.nio.ByteBuffer;

/* A class whose methods are alike is redefined all the time, with its methods in another order: the VM puts them where others have lain.
 * Method mN calls Truth.tN, which is never redefined, so each name can be checked. Runs as -javaagent too. Redefine PER_SECOND. */
public class Redefine {
    static Instrumentation instrumentation;
    static int count;

    public static void premain(String argument, Instrumentation i) {
        instrumentation = i;
    }

    static class Target {
        static int m0(int n) { return Truth.t0(n); }
        static int m1(int n) { return Truth.t1(n); }
        static int m2(int n) { return Truth.t2(n); }
        static int m3(int n) { return Truth.t3(n); }
        static int m4(int n) { return Truth.t4(n); }
        static int m5(int n) { return Truth.t5(n); }
        static int m6(int n) { return Truth.t6(n); }
        static int m7(int n) { return Truth.t7(n); }
    }

    static class Truth {
        static int t0(int n) { return work(n); }
        static int t1(int n) { return work(n); }
        static int t2(int n) { return work(n); }
        static int t3(int n) { return work(n); }
        static int t4(int n) { return work(n); }
        static int t5(int n) { return work(n); }
        static int t6(int n) { return work(n); }
        static int t7(int n) { return work(n); }

        static int work(int n) {
            int sum = 0;
            for (int i = 0; i < 3000; i++)
                sum += i * n;
            return sum;
        }
    }

    static int call(int n) {
        switch (n & 7) {
        case 0: return Target.m0(n);
        case 1: return Target.m1(n);
        case 2: return Target.m2(n);
        case 3: return Target.m3(n);
        case 4: return Target.m4(n);
        case 5: return Target.m5(n);
        case 6: return Target.m6(n);
        default: return Target.m7(n);
        }
    }

    /** Where members begin and end, from where their number stands. */
    static int[] members(ByteBuffer c, int at) {
        int[] ends = new int[c.getChar(at) + 1];
        ends[0] = at + 2;
        for (int i = 1; i < ends.length; i++) {
            int to = ends[i - 1] + 6, attributes = c.getChar(to);
            to += 2;
            for (; attributes > 0; attributes--)
                to += 6 + c.getInt(to + 2);
            ends[i] = to;
        }
        return ends;
    }

    static int behindConstants(ByteBuffer c) {
        int at = 10;
        for (int i = 1; i < c.getChar(8); i++) {
            int tag = c.get(at);
            i += tag == 5 || tag == 6 ? 1 : 0;
            at += tag == 1 ? 3 + c.getChar(at + 1) : tag == 5 || tag == 6 ? 9 : tag == 7 || tag == 8 || tag == 16 || tag == 19 || tag == 20 ? 3 : tag == 15 ? 4 : 5;
        }
        return at;
    }

    /** The class file with its methods in another order. */
    static byte[] turned(byte[] from, int by) {
        ByteBuffer c = ByteBuffer.wrap(from);
        int at = behindConstants(c) + 6;
        at += 2 + 2 * c.getChar(at);
        int[] fields = members(c, at), methods = members(c, fields[fields.length - 1]);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int count = methods.length - 1;
        out.write(from, 0, methods[0]);
        for (int i = 0; i < count; i++) {
            int which = (i + by) % count;
            out.write(from, methods[which], methods[which + 1] - methods[which]);
        }
        out.write(from, methods[count], from.length - methods[count]);
        return out.toByteArray();
    }

    static byte[] classFile() throws IOException {
        InputStream in = Redefine.class.getResourceAsStream("Redefine$Target.class");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int b; (b = in.read()) >= 0; )
            out.write(b);
        return out.toByteArray();
    }

    public static void main(String[] a) throws Exception {
        int perSecond = Integer.parseInt(a[0]);
        byte[] file = classFile();
        Thread worker = new Thread(() -> {
            for (int n = 0; ; n++)
                count += call(n / 20);
        });
        worker.setDaemon(true);
        worker.start();
        System.out.println("up");
        long begin = System.nanoTime();
        for (int i = 1; ; i++) {
            instrumentation.redefineClasses(new ClassDefinition(Target.class, turned(file, i % 7)));
            long wait = begin + i * 1_000_000_000L / perSecond - System.nanoTime();
            if (i % 25 == 0)
                System.out.println(System.nanoTime() / 1_000_000 + " ms: redefined " + i);
            if (wait > 0)
                Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
        }
    }
}

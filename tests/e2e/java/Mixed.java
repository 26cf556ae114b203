// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.lang.reflect.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.locks.*;
import java.util.zip.*;

/* What calls in and out of compiled code: exceptions, proxies, reflection, zip, files, locks, static initialisers. Mixed
 * MILLISECONDS FOLDER: works so long. */
public class Mixed {
    interface Store { String get(String key); }

    static class Maps implements InvocationHandler {
        private final Map<String, String> rows = new HashMap<>();

        public Object invoke(Object proxy, Method method, Object[] arguments) {
            return rows.computeIfAbsent((String) arguments[0], key -> key + rows.size() % 100);
        }
    }

    static class Refused extends Exception {
        Refused(String why) { super(why); }
    }

    static int refuse(int depth) throws Refused {
        if (depth == 0)
            throw new Refused("at the bottom");
        try {
            return refuse(depth - 1) + 1;
        } finally {
            thrown++;
        }
    }

    static long thrown;

    static int exceptions(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try {
                sum += refuse(i % 12);
            } catch (Refused e) {
                sum += e.getMessage().length();
            }
        }
        return sum;
    }

    static int proxies(Store store, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += store.get("key" + i % 50).length();
        return sum;
    }

    public int doubled(int n) { return n * 2; }

    static int reflection(Method method, Mixed self, int n) throws ReflectiveOperationException {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += (Integer) method.invoke(self, i);
        return sum;
    }

    static byte[] zip(byte[] text) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DeflaterOutputStream deflater = new DeflaterOutputStream(out)) {
            deflater.write(text);
        }
        return out.toByteArray();
    }

    static int unzip(byte[] packed) throws IOException {
        byte[] room = new byte[4096];
        int sum = 0;
        try (InflaterInputStream in = new InflaterInputStream(new ByteArrayInputStream(packed))) {
            for (int count; (count = in.read(room)) > 0;)
                sum += count;
        }
        return sum;
    }

    static int files(Path file, byte[] text) throws IOException {
        Files.write(file, text);
        int sum = 0;
        try (BufferedReader in = Files.newBufferedReader(file)) {
            for (String line; (line = in.readLine()) != null;)
                sum += line.length();
        }
        return sum;
    }

    static final ReentrantLock lock = new ReentrantLock();

    static synchronized int locks(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            lock.lock();
            try {
                synchronized (lock) {
                    sum += i;
                }
            } finally {
                lock.unlock();
            }
        }
        return sum;
    }

    public static void main(String[] a) throws Exception {
        Path file = Paths.get(a[1], "mixed.txt");
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 400; i++)
            lines.append("line ").append(i * 7919 % 1000).append('\n');
        byte[] text = lines.toString().getBytes("UTF-8");
        Store store = (Store) Proxy.newProxyInstance(Mixed.class.getClassLoader(), new Class<?>[] { Store.class }, new Maps());
        Method method = Mixed.class.getMethod("doubled", int.class);
        Mixed self = new Mixed();
        long until = System.nanoTime() + Long.parseLong(a[0]) * 1000000L, sum = 0;
        while (System.nanoTime() < until)
            sum += exceptions(60) + proxies(store, 2000) + reflection(method, self, 2000) + unzip(zip(text)) + files(file, text) + locks(5000);
        System.out.println(sum + thrown);
    }
}

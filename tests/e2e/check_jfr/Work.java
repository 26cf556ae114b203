// SPDX-License-Identifier: Apache-2.0

import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;

/** Threads that compute, recurse, allocate and wait, for check_jfr.py. Argument: seconds. */
public class Work {
    static volatile long sink;
    static volatile Object kept;
    static long end;

    static void spin(int rounds) {
        long x = sink;
        for (int i = 0; i < rounds; i++) {
            x = x * 6364136223846793005L + i;
        }
        sink = x;
    }

    static int deep(int n) {
        if (n == 0) {
            spin(2_000_000);
            return 1;
        }
        return deep(n - 1) + 1;
    }

    static class Größe<T> {
        T value;

        void fill(int n) {
            List<Object> list = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                list.add(new byte[200 + i % 3000]);
            }
            kept = list;
            kept = new byte[3_000_000];
        }

        void fill(String s) {
            kept = s.repeat(1000);
        }

        static void rest() {
            try {
                Thread.sleep(2);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    static Thread start(String name, Runnable job) {
        Thread thread = new Thread(() -> {
            while (System.nanoTime() < end) {
                job.run();
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Größe<String> g = new Größe<>();
        List<Thread> threads = new ArrayList<>();
        threads.add(start("spin-1", () -> spin(1_000_000)));
        threads.add(start("tief 深い", () -> deep(200)));
        threads.add(start("alloc", () -> {
            g.fill(1000);
            g.fill("abc");
            Größe.rest();
        }));
        Thread waits = new Thread(() -> {
            try (ServerSocket socket = new ServerSocket(0)) {
                socket.accept();
            } catch (java.io.IOException e) {
                throw new RuntimeException(e);
            }
        }, "waits");
        waits.setDaemon(true);
        waits.start();
        for (Thread thread : threads) {
            thread.join();
        }
    }
}

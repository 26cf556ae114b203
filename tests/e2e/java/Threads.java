// SPDX-License-Identifier: Apache-2.0

/* Threads that compute, and whose names the kernel has not the whole of: four alike up to there, one that calls itself another way after each
 * round, one that ends after a second and is followed by another. */
public class Threads {
    static volatile long sum;

    static void compute(long milliseconds) {
        long end = System.nanoTime() + milliseconds * 1_000_000;
        while (System.nanoTime() < end)
            for (int i = 0; i < 1000; i++)
                sum += i * i;
    }

    static void start(String name, Runnable what) {
        Thread thread = new Thread(what, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void steady() {
        for (;;)
            compute(100);
    }

    static void renamed() {
        for (int i = 0;; i = 1 - i) {
            Thread.currentThread().setName(i == 0 ? "evenly renamed again and again" : "oddly renamed again and again");
            if (i == 0)
                even();
            else
                odd();
        }
    }

    static void even() {
        compute(2500);
    }

    static void odd() {
        compute(2500);
    }

    static void successor(int n) {
        start("successor in a row of many " + n, () -> {
            compute(1000);
            successor(n + 1);
        });
    }

    public static void main(String[] a) {
        for (int i = 1; i <= 4; i++)
            start("request-handler-pool-" + i, Threads::steady);
        start("caf\u00e9; [x] \u65e5\u672c\u8a9e tid=7]", Threads::steady);
        start("first", Threads::renamed);
        successor(1);
        System.out.println("up");
        steady();
    }
}

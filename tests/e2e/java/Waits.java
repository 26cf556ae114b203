// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/* Threads that wait in three ways, again and again, each below caller() and middle(). */
public class Waits {
    static final Object lock = new Object();

    static void park() {
        LockSupport.parkNanos(5_000_000);
    }

    static void object() throws Exception {
        synchronized (lock) {
            lock.wait(5);
        }
    }

    static void sleep() throws Exception {
        Thread.sleep(5);
    }

    static void middle(int way) throws Exception {
        if (way == 0)
            park();
        else if (way == 1)
            object();
        else
            sleep();
    }

    static void caller(int way) {
        try {
            while (true)
                middle(way);
        } catch (Exception e) {
            System.exit(1);
        }
    }

    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 3; i++) {
            int way = i;
            new Thread(() -> caller(way)).start();
        }
        Thread.sleep(600_000);
    }
}

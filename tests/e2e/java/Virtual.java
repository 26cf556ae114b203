// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.*;

/* Two hundred virtual threads that compute, yield, sleep, lock and hand things over, each below callers of its own. Java 21. */
public class Virtual {
    static final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>(16);
    static final ReentrantLock mutex = new ReentrantLock();
    static final AtomicLong sum = new AtomicLong();

    static void pause(int way, int turn) throws Exception {
        switch (way % 5) {
        case 0:
            Thread.yield();
            break;
        case 1:
            LockSupport.parkNanos(200_000);
            break;
        case 2:
            mutex.lock();
            try {
                sum.addAndGet(Load.turn(turn & 7));
            } finally {
                mutex.unlock();
            }
            break;
        case 3:
            queue.put(turn);
            break;
        default:
            sum.addAndGet(queue.take());
        }
    }

    static int down(int depth, int way, int turn) throws Exception {
        if (depth > 0)
            return down(depth - 1, way, turn) + 1;
        if (turn % 3 == 0)
            sum.addAndGet(Load.turn(turn & 7));
        pause(way, turn);
        return 0;
    }

    static void work(int way) {
        try {
            for (int turn = 0;; turn++)
                down(way % 13, way, turn);
        } catch (Exception e) {
            System.exit(1);
        }
    }

    public static void main(String[] a) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < 200; i++) {
            int way = i;
            start.invoke(null, (Runnable) () -> work(way));
        }
        Thread.sleep(600_000);
    }
}

// SPDX-License-Identifier: Apache-2.0
import java.lang.reflect.Method;
import java.util.*;
import java.util.concurrent.locks.*;

/* Fifty threads that wait for ever, in seven ways, each below callers of its own: compiled ones, inlined ones, recursive ones, lambdas,
 * reflection. Says "parked" when all do. */
public class Parked {
    static final Object lock = new Object(), held = new Object();
    static final ReentrantLock mutex = new ReentrantLock();
    static volatile int warm;

    interface Step { int go(int way, int depth) throws Exception; }

    static int wait(int way) throws Exception {
        if (way < 0)
            return warm++ & 1;
        switch (way) {
        case 0:
            LockSupport.park();
            break;
        case 1:
            synchronized (lock) {
                lock.wait();
            }
            break;
        case 2:
            Thread.sleep(3_600_000);
            break;
        case 3:
            synchronized (held) {
                warm++;
            }
            break;
        case 4:
            mutex.lock();
            break;
        case 5:
            new java.util.concurrent.CountDownLatch(1).await();
            break;
        default:
            System.in.read();
        }
        return way;
    }

    static int small(int way) throws Exception {
        return wait(way) + 1;
    }

    static int down(int way, int depth) throws Exception {
        return depth == 0
            ? small(way)
            : down(way, depth - 1) + 1;
    }

    public static int reflected(int way) throws Exception {
        return down(way, 3);
    }

    static int sorted(int way) {
        List<Integer> list = new ArrayList<>(Arrays.asList(3, 1));
        list.sort((a, b) -> {
            try {
                return small(way);
            } catch (Exception e) {
                return 0;
            }
        });
        return list.size();
    }

    static int run(int number, int way) throws Exception {
        Step deep = (w, depth) -> down(w, depth);
        Method method = Parked.class.getMethod("reflected", int.class);
        switch (number % 4) {
        case 0:
            return down(way, number);
        case 1:
            return deep.go(way, 2);
        case 2:
            return (Integer) method.invoke(null, way);
        default:
            return sorted(way);
        }
    }

    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 12_000; i++)
            run(i % 8, -1);
        mutex.lock();
        synchronized (held) {
            for (int i = 0; i < 49; i++) {
                int number = i;
                Thread thread = new Thread(() -> {
                    try {
                        run(number, number % 7);
                    } catch (Exception e) {
                        System.exit(1);
                    }
                }, "parked-" + number + (number % 2 == 0 ? "" : "-with-a-long-name"));
                thread.setDaemon(true);
                thread.start();
            }
            Thread.sleep(1000);
            System.out.println("parked");
            Thread.sleep(3_600_000);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
/* What a program of another language calls, and is called back by. */
public class Calls {
    public interface Back { int back(int n); }

    public static long turn(int n) { return Load.turn(n); }

    public static int twice(Back back, int n) { return once(back, n) + once(back, n + 1); }

    static int once(Back back, int n) { return back.back(n); }
}
